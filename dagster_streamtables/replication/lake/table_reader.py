"""`TableReader`: the published changes of one table, commit by commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.errors import (
    DamagedTable,
    HistoryUnavailable,
    LostRelation,
    RejectedQuery,
)
from dagster_streamtables.replication.lake.errors import lost_table
from dagster_streamtables.replication.lake.row_changes import RowChanges, truncated
from dagster_streamtables.replication.lake.rules import Rule
from dagster_streamtables.replication.lake.shown_rows import ShownRows
from dagster_streamtables.replication.lake.shown_table import ShownTable, shown
from dagster_streamtables.replication.model.batch import TableChanges, Transaction, change_schema
from dagster_streamtables.replication.model.published_table import Operation
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.delta.deed import Deed, deed_of
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import (
    SourceChange,
    change_between,
    rows_moved,
)
from dagster_streamtables.runtime.errors.tables import LostHistory
from dagster_streamtables.runtime.errors.translate import explained

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class TableReader:
    """Reads the commits of one table, each when it is asked to."""

    access: Access
    slot: str
    rule: Rule
    key: Sequence[str] | None
    """That of a stream table."""
    last: TableLog
    """At the version up to which everything was read."""
    newest: TableLog
    local_only: bool
    """Whether commits that a replication made are left out."""
    ended: bool = False
    """Whether the columns are others in the next commit, so that it belongs to another batch."""
    _shown: ShownTable | None = None
    _transactions: list[Transaction] = field(default_factory=list[Transaction])
    _rows: list[pa.Table] = field(default_factory=list["pa.Table"])

    @property
    def over(self) -> bool:
        return self.ended or self.last.version >= self.newest.version

    @property
    def due(self) -> float:
        """When the next commit was made, by its writer's clock."""
        return self._deed.committed_at or 0.0

    def read_next(self) -> int:
        """Read the next commit, unless the batch ends here.

        Returns:
            The number of published changes.

        Raises:
            LostSlot: It can no longer be read.
            PublisherProblem: The publication does not fit the table that it left.
        """
        log, deed = self._next_log(), self._deed
        now = self._shown_at(log)
        if self._rows and self._shown is not None and now.published != self._shown.published:
            self.ended = True
            return 0
        found = self._changes(now, log, deed)
        self.last, self._shown = log, now
        self.__dict__.pop("_deed", None)
        if found is None or not found.num_rows:
            return 0
        self._add(found, log.version, deed)
        return found.num_rows

    def changes(self) -> TableChanges | None:
        """All that was read; None if nothing was published."""
        import pyarrow as pa

        if not self._rows or self._shown is None:
            return None
        table = self._shown.published
        rows = pa.concat_tables(self._rows).cast(change_schema(table))
        return TableChanges(table, tuple(self._transactions), rows)

    def _add(self, rows: pa.Table, version: int, deed: Deed) -> None:
        import pyarrow as pa

        at = deed.committed_at
        stamp = None if at is None else datetime.fromtimestamp(at, UTC)
        number = pa.array([len(self._transactions)] * rows.num_rows, pa.int32())
        self._rows.append(rows.add_column(1, pa.field("transaction", pa.int32(), False), number))
        self._transactions.append(Transaction(version, stamp))

    def _changes(self, now: ShownTable, log: TableLog, deed: Deed) -> pa.Table | None:
        if deed.replicated and self.local_only:
            return None
        if deed.truncates:
            there = Operation.TRUNCATE in self.rule.operations
            return truncated(now.published) if there else None
        with self._readable():
            return self._row_changes(now, log, deed)

    def _row_changes(self, now: ShownTable, log: TableLog, deed: Deed) -> pa.Table | None:
        import pyarrow as pa

        if not self.rule.filters or not rows_moved(log, self.last.version):
            return None
        self._require_types(now, log)
        _require_files(log, change_between(log, self.last.version))
        rows = ShownRows(self.access, now, log)
        parts = [each for each in rows.change(self.last) if each.num_rows]
        if not parts:
            return None
        changed = pa.concat_tables(parts).combine_chunks()
        return RowChanges(now, changed, rows.flags, deed.updates).published()

    def _require_types(self, now: ShownTable, log: TableLog) -> None:
        for name in now.read:
            was, is_ = self.last.columns.get(name), log.columns[name]
            if was not in (None, is_):
                why = f'column "{name}" became {is_}, and rows were written with it'
                raise lost_table(self.slot, self.rule.table, why)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """
        Raises:
            LostSlot: The files or versions that are needed are gone.
        """
        try:
            with explained():
                yield
        except (LostHistory, DamagedTable, HistoryUnavailable, LostRelation) as error:
            raise lost_table(self.slot, self.rule.table, str(error)) from error
        except RejectedQuery as error:
            if self.last.columns == self._next_log().columns:
                raise
            # Its rows before the commit have no such column, and Spark had to read them.
            why = "its columns changed in a commit that also changed rows"
            raise lost_table(self.slot, self.rule.table, why) from error

    @cached_property
    def _deed(self) -> Deed:
        """What the next commit says that it did."""
        version = self.last.version + 1
        [(_, commit)] = self.newest.commits(version - 1, version)
        if commit is None:
            why = f"the log was cleaned up: version {version} is gone"
            raise lost_table(self.slot, self.rule.table, why)
        return deed_of(commit)

    def _next_log(self) -> TableLog:
        version = self.last.version + 1
        if version == self.newest.version:
            return self.newest
        log = self.newest.at(version)
        if log is None:
            why = f"the log was cleaned up: version {version} is gone"
            raise lost_table(self.slot, self.rule.table, why)
        return log

    def _shown_at(self, log: TableLog) -> ShownTable:
        if self._shown is not None and log.columns == self.last.columns:
            return self._shown
        return shown(self.rule, log, self.key)


def _require_files(log: TableLog, change: SourceChange) -> None:
    """Find out here what is gone: Spark would be started only to tell.

    Raises:
        LostHistory: A file that is to be read was deleted.
    """
    files = [*change.added, *change.removed, *(file for file, _ in change.fed)]
    paths = [file.path for file in files if "://" not in file.path]
    gone = [info.path for info in log.files.get_file_info(paths) if info.type.name == "NotFound"]
    if gone:
        raise LostHistory(f"{log.location}/{gone[0]} was deleted")
