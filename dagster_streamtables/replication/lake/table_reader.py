"""`TableReader`: the published changes of one table, commit by commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import (
    DamagedTable,
    HistoryUnavailable,
    LostRelation,
    RejectedQuery,
)
from dagster_streamtables.replication.lake.publication import (
    missing_changes_error,
    missing_version_error,
)
from dagster_streamtables.replication.lake.publication_rows import PublicationRows, flag, with_flags
from dagster_streamtables.replication.lake.publication_rules import (
    PublicationRule,
    PublicationView,
    apply_rule,
)
from dagster_streamtables.replication.model.replication_model import (
    Operation,
    PublishedTable,
    TableChanges,
    change_schema,
)
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.delta.actions import CommitOperation, operation_of
from dagster_streamtables.runtime.delta.arrow import np, pa, times_as_numbers
from dagster_streamtables.runtime.delta.data_files import missing_files
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import change_between, has_row_changes
from dagster_streamtables.runtime.errors.error_translation import translate_errors
from dagster_streamtables.runtime.errors.table_errors import LostHistory


@dataclass(frozen=True)
class RowChanges:
    """The changes of the rows of one commit.

    A commit has deleted and inserted rows. Two of one key are an update of that row. Without a key,
    or if the key itself changed, one row is deleted and another inserted: in a commit with the
    operation UPDATE they are published as updates are, in another as deletes and inserts.
    """

    shown: PublicationView
    rows: pa.Table
    """The columns that are read, the flags, and the weight."""
    updates: bool = False
    """Whether the operation of the commit is UPDATE."""

    def to_changes(self) -> pa.Table:
        """The columns of `change_schema` but for the transaction. Deletes come first and inserts
        last, so that at no moment two rows have one key."""
        old, new = self._pairs
        before, after = (
            self._filter_mask(Operation.UPDATE, old),
            self._filter_mask(Operation.UPDATE, new),
        )
        gone = np.concatenate([self._alone(Operation.DELETE, -1, old), old[before & ~after]])
        came = np.concatenate([self._alone(Operation.INSERT, 1, new), new[after & ~before]])
        return self._change_table(gone, new[before & after], came)

    def _copies(self, sign: int) -> np.ndarray:
        """The indices of the deleted or inserted rows, one for each copy."""
        weights = self.rows.column(WEIGHT).to_numpy() * sign
        found = np.flatnonzero(weights > 0)
        return np.repeat(found, weights[found])

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The indices of the old rows and of the new rows of updates."""
        old, new = self._copies(-1), self._copies(1)
        pairs: list[tuple[int, int]] = []
        if self.shown.key and len(old) and len(new):
            waiting: defaultdict[Any, list[int]] = defaultdict(list)
            for index, key in zip(old.tolist(), self._keys(old), strict=True):
                waiting[key].append(index)
            for index, key in zip(new.tolist(), self._keys(new), strict=True):
                if waiting.get(key):
                    pairs.append((waiting[key].pop(), index))
        found = np.array(pairs, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _keys(self, indices: np.ndarray) -> Iterator[tuple[Any, ...]]:
        keys = self.rows.select(list(self.shown.key or ())).take(indices)
        return zip(*(times_as_numbers(each).to_pylist() for each in keys.columns), strict=True)

    def _alone(self, operation: Operation, sign: int, paired: np.ndarray) -> np.ndarray:
        """The published rows that are no part of an update."""
        copies = np.bincount(self._copies(sign), minlength=self.rows.num_rows)
        left = copies - np.bincount(paired, minlength=self.rows.num_rows)
        alone = np.repeat(np.arange(self.rows.num_rows), left)
        return alone[self._filter_mask(Operation.UPDATE if self.updates else operation, alone)]

    def _filter_mask(self, operation: Operation, indices: np.ndarray) -> np.ndarray:
        """Which of some rows are published for an operation."""
        where = self.shown.rule.filters.get(operation)
        if not where:
            return np.full(len(indices), where is not None)
        number = self.shown.rule.all_filters.index(where)
        return self.rows.column(flag(number)).to_numpy().astype(bool)[indices]

    def _change_table(self, gone: np.ndarray, updated: np.ndarray, came: np.ndarray) -> pa.Table:
        table, n = self.shown.published, len(gone) + len(updated) + len(came)
        ops = ["delete"] * len(gone) + ["update"] * len(updated) + ["insert"] * len(came)
        there = self.rows.select(table.schema.names).cast(table.schema)
        old = _structs(there.select(list(table.key_columns)), gone, behind=n - len(gone))
        new = _structs(there, np.concatenate([updated, came]), before=len(gone))
        return build_changes(table, ops, old, new)


def truncate_change(table: PublishedTable) -> pa.Table:
    """A truncate, as `RowChanges.to_changes` gives changes of rows."""
    schema = change_schema(table)
    nothing = [pa.nulls(1, schema.field(name).type) for name in ("old", "new")]
    return build_changes(table, ["truncate"], *nothing)


def build_changes(table: PublishedTable, ops: Sequence[str], old: Any, new: Any) -> pa.Table:
    schema = change_schema(table)
    schema = schema.remove(schema.get_field_index("transaction"))
    unchanged = pa.nulls(len(ops), schema.field("unchanged").type)
    return pa.Table.from_arrays([pa.array(ops, pa.string()), old, new, unchanged], schema=schema)


def _structs(rows: pa.Table, indices: np.ndarray, *, before: int = 0, behind: int = 0) -> Any:
    """Some rows as structs, with NULLs before or after them."""
    fields = [field.with_nullable(True) for field in rows.schema]
    columns = [column.combine_chunks() for column in rows.take(indices).columns]
    columns = [c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns]
    found = pa.StructArray.from_arrays(columns, fields=fields)
    return pa.chunked_array([pa.nulls(before, found.type), found, pa.nulls(behind, found.type)])


@dataclass(frozen=True)
class _Commit:
    version: int
    deed: CommitOperation
    rows: pa.Table | None
    """The changed rows; None for a truncate."""


@dataclass
class TableReader:
    """Reads the commits of one table, one at each call."""

    access: Access
    slot: str
    rule: PublicationRule
    last: TableLog
    """At the version up to which everything was read."""
    newest: TableLog
    local_only: bool
    """Whether commits that a replication made are left out."""
    ended: bool = False
    """Whether the next commit has other columns, so that it belongs to another batch."""
    _shown: PublicationView | None = None
    _commits: list[_Commit] = field(default_factory=list[_Commit])

    @property
    def over(self) -> bool:
        return self.ended or self.last.version >= self.newest.version

    @property
    def due(self) -> float:
        """When the next commit was made, by its writer's clock."""
        return self._next_operation.committed_at or 0.0

    def read_next(self) -> int:
        """Read the next commit, unless the batch ends here.

        Returns:
            The number of its changes, some of which filters may leave out.

        Raises:
            LostSlot: It can no longer be read.
            PublisherProblem: The publication no longer fits the table.
        """
        log, deed = self._next_log(), self._next_operation
        now = self._view_at(log)
        if self._commits and now != self._shown:
            self.ended = True
            return 0
        found = self._commit(now, log, deed)
        self.last, self._shown = log, now
        self.__dict__.pop("_next_operation", None)
        if found is None:
            return 0
        self._commits.append(found)
        return 1 if found.rows is None else found.rows.num_rows

    def changes(self) -> TableChanges | None:
        """All that was read; None if nothing was published."""
        if not self._commits or self._shown is None:
            return None
        table = self._shown.published
        positions: list[int] = []
        parts: list[pa.Table] = []
        for commit, rows in zip(self._commits, self._changes_by_commit(self._shown), strict=True):
            if rows.num_rows:
                number = pa.array([len(positions)] * rows.num_rows, pa.int32())
                parts.append(rows.add_column(1, "transaction", number))
                positions.append(commit.version)
        if not parts:
            return None
        rows = pa.concat_tables(parts).cast(change_schema(table))
        return TableChanges(table, tuple(positions), rows)

    def _changes_by_commit(self, shown: PublicationView) -> Iterator[pa.Table]:
        """The published changes of each commit; see `RowChanges.to_changes`."""
        parts = [each.rows for each in self._commits if each.rows is not None]
        if self.rule.all_filters and PublicationRows(self.access, shown, self.last).later:
            parts = with_flags(self.access, shown, parts) if parts else []
        flagged = iter(parts)
        for each in self._commits:
            if each.rows is None:
                yield truncate_change(shown.published)
            else:
                rows = next(flagged).combine_chunks()
                yield RowChanges(shown, rows, each.deed.updates).to_changes()

    def _commit(self, now: PublicationView, log: TableLog, deed: CommitOperation) -> _Commit | None:
        if deed.replicated and self.local_only:
            return None
        if deed.truncates:
            there = Operation.TRUNCATE in self.rule.operations
            return _Commit(log.version, deed, None) if there else None
        with self._readable():
            rows = self._rows(now, log)
        return None if rows is None else _Commit(log.version, deed, rows)

    def _rows(self, now: PublicationView, log: TableLog) -> pa.Table | None:
        if not self.rule.filters or not has_row_changes(log, self.last.version):
            return None
        self._require_types(now, log)
        change = change_between(log, self.last.version)
        files = [*change.added, *change.removed, *(file for file, _ in change.fed)]
        if gone := missing_files(log, files):  # Spark would be started only to find out
            raise LostHistory(f"{log.location}/{gone[0]} was deleted")
        changed = PublicationRows(self.access, now, log).change(self.last)
        parts = [each for each in changed if each.num_rows]
        return pa.concat_tables(parts) if parts else None

    def _require_types(self, now: PublicationView, log: TableLog) -> None:
        for name in {*now.read, *now.looked_at}:
            was, is_ = self.last.columns.get(name), log.columns[name]
            if was not in (None, is_):
                why = f'column "{name}" became {is_}, and rows were written with it'
                raise missing_changes_error(self.slot, self.rule.table, why)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Raise `LostSlot` if the needed files or versions were deleted."""
        try:
            with translate_errors():
                yield
        except (LostHistory, DamagedTable, HistoryUnavailable, LostRelation) as error:
            raise missing_changes_error(self.slot, self.rule.table, str(error)) from error
        except RejectedQuery as error:
            if self.last.columns == self._next_log().columns:
                raise
            # Its rows before the commit have no such column, and Spark had to read them.
            why = "its columns changed in a commit that also changed rows"
            raise missing_changes_error(self.slot, self.rule.table, why) from error

    @cached_property
    def _next_operation(self) -> CommitOperation:
        """The operation of the next commit."""
        version = self.last.version + 1
        [(_, commit)] = self.newest.commits(version - 1, version)
        if commit is None:
            raise missing_version_error(self.slot, self.rule.table, version)
        return operation_of(commit)

    def _next_log(self) -> TableLog:
        version = self.last.version + 1
        if version == self.newest.version:
            return self.newest
        log = self.newest.at(version)
        if log is None:
            raise missing_version_error(self.slot, self.rule.table, version)
        return log

    def _view_at(self, log: TableLog) -> PublicationView:
        if self._shown is not None and log.columns == self.last.columns:
            return self._shown
        return apply_rule(self.rule, log)
