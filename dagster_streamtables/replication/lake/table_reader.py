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
from dagster_streamtables.replication.lake.publication import lost_table
from dagster_streamtables.replication.lake.row_changes import RowChanges, truncated
from dagster_streamtables.replication.lake.shown_rows import ShownRows, with_flags
from dagster_streamtables.replication.lake.shown_table import Rule, ShownTable, shown
from dagster_streamtables.replication.model.publisher import (
    Operation,
    TableChanges,
    Transaction,
    change_schema,
)
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.delta.actions import Deed, deed_of
from dagster_streamtables.runtime.delta.data_files import missing_files
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


@dataclass(frozen=True)
class _Commit:
    version: int
    deed: Deed
    rows: pa.Table | None
    """The rows that it changed; None for a truncate."""


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
    _commits: list[_Commit] = field(default_factory=list[_Commit])

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
            The number of its changes, of which filters may leave out some.

        Raises:
            LostSlot: It can no longer be read.
            PublisherProblem: The publication does not fit the table any more.
        """
        log, deed = self._next_log(), self._deed
        now = self._shown_at(log)
        if self._commits and now != self._shown:
            self.ended = True
            return 0
        found = self._commit(now, log, deed)
        self.last, self._shown = log, now
        self.__dict__.pop("_deed", None)
        if found is None:
            return 0
        self._commits.append(found)
        return 1 if found.rows is None else found.rows.num_rows

    def changes(self) -> TableChanges | None:
        """All that was read; None if nothing was published."""
        import pyarrow as pa

        if not self._commits or self._shown is None:
            return None
        table = self._shown.published
        transactions: list[Transaction] = []
        parts: list[pa.Table] = []
        for commit, rows in zip(self._commits, self._published(self._shown), strict=True):
            if rows.num_rows:
                number = pa.array([len(transactions)] * rows.num_rows, pa.int32())
                parts.append(rows.add_column(1, "transaction", number))
                transactions.append(_transaction(commit))
        if not parts:
            return None
        rows = pa.concat_tables(parts).cast(change_schema(table))
        return TableChanges(table, tuple(transactions), rows)

    def _published(self, shown: ShownTable) -> Iterator[pa.Table]:
        """What is published of each commit; see `RowChanges.published`."""
        parts = [each.rows for each in self._commits if each.rows is not None]
        if self.rule.all_filters and ShownRows(self.access, shown, self.last).later:
            parts = with_flags(self.access, shown, parts) if parts else []
        flagged = iter(parts)
        for each in self._commits:
            if each.rows is None:
                yield truncated(shown.published)
            else:
                rows = next(flagged).combine_chunks()
                yield RowChanges(shown, rows, each.deed.updates).published()

    def _commit(self, now: ShownTable, log: TableLog, deed: Deed) -> _Commit | None:
        if deed.replicated and self.local_only:
            return None
        if deed.truncates:
            there = Operation.TRUNCATE in self.rule.operations
            return _Commit(log.version, deed, None) if there else None
        with self._readable():
            rows = self._rows(now, log)
        return None if rows is None else _Commit(log.version, deed, rows)

    def _rows(self, now: ShownTable, log: TableLog) -> pa.Table | None:
        import pyarrow as pa

        if not self.rule.filters or not rows_moved(log, self.last.version):
            return None
        self._require_types(now, log)
        _require_files(log, change_between(log, self.last.version))
        changed = ShownRows(self.access, now, log).change(self.last)
        parts = [each for each in changed if each.num_rows]
        return pa.concat_tables(parts) if parts else None

    def _require_types(self, now: ShownTable, log: TableLog) -> None:
        for name in {*now.read, *now.looked_at}:
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


def _transaction(commit: _Commit) -> Transaction:
    at = commit.deed.committed_at
    return Transaction(commit.version, None if at is None else datetime.fromtimestamp(at, UTC))


def _require_files(log: TableLog, change: SourceChange) -> None:
    """Find out here what is gone: Spark would be started only to tell.

    Raises:
        LostHistory: A file that is to be read was deleted.
    """
    files = [*change.added, *change.removed, *(file for file, _ in change.fed)]
    if gone := missing_files(log, files):
        raise LostHistory(f"{log.location}/{gone[0]} was deleted")
