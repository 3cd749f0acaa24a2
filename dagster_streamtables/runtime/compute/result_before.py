"""The result before a change: in the stored table, or held in this process.

At the root of a query, the result before is not computed again but read; see `strategy`. Of a
recomputed result, only the difference from it is written, so that readers of the table's changes
see no unchanged rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from deltalake.exceptions import DeltaError

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.runtime.compute.netting import add_weight, net_rows
from dagster_streamtables.runtime.compute.spark_relations import Relations
from dagster_streamtables.runtime.delta.arrow import pa, pc, storable
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.key_lookup import read_stored_rows
from dagster_streamtables.runtime.model.table_state import TableWithState


def difference(
    log: TableLog,
    rows: pa.Table,
    key: Sequence[str] | None,
    *,
    columns: Collection[str],
    limit: int,
) -> pa.Table | None:
    """The change that makes the stored rows equal to `rows`, the whole result, in the form that
    writers expect; None if they cannot be compared here.

    `key` is None for a bag, `columns` are the stored columns of the query, and `limit` is the
    number of stored rows that may be read into this process.
    """
    if set(rows.column_names) != set(columns) or (log.row_count or 0) > limit:
        return None
    try:
        held = read_stored_rows(log, {}, rows.column_names, limit=limit)
        if held is None:
            return None
        now = storable(rows).cast(held.schema)
    except (DeltaError, pa.ArrowException, OSError):
        return None
    both = pa.concat_tables([add_weight(now, 1), add_weight(held, -1)])
    change = net_rows(both)
    return change if key is None else _one_a_key(change, key)


def _one_a_key(change: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows to store, and for each key that no longer has one, a row with only the key."""
    came = change.filter(pc.greater(change.column(WEIGHT), 0))
    keys = net_rows(change.select([*key, WEIGHT]))
    gone = keys.filter(pc.less(keys.column(WEIGHT), 0))
    missing = [pa.nulls(gone.num_rows, field.type) for field in change.schema]
    columns = [
        gone.column(field.name) if field.name in (*key, WEIGHT) else nulls
        for field, nulls in zip(change.schema, missing, strict=True)
    ]
    return pa.concat_tables([came, pa.Table.from_arrays(columns, schema=change.schema)])


@dataclass(frozen=True)
class ResultInTable:
    """The result before in a Delta table."""

    stored: TableWithState

    @property
    def columns(self) -> Mapping[str, str]:
        """Column → type in Spark's spelling, with the hidden columns of the plan."""
        return self.stored.query_columns

    def rows(
        self, keys: Mapping[str, pa.ChunkedArray], columns: Sequence[str], limit: int
    ) -> pa.Table | None:
        """The rows of some keys, and perhaps of others; None if Spark has to read them."""
        return read_stored_rows(self.stored.log, keys, columns, limit=limit)

    def differing(self, rows: pa.Table, limit: int) -> pa.Table | None:
        """The change from the result before to `rows`; None if it cannot be found here."""
        return difference(self.stored.log, rows, None, columns=self.columns, limit=limit)

    def view(self, relations: Relations) -> str:
        """A name for all rows in Spark, in backticks."""
        return relations.with_hidden_columns(self.stored.log.snapshot)


@dataclass(frozen=True)
class ResultInMemory:
    """The result before in this process: groups, one row for each key. The methods are those of
    `ResultInTable`."""

    table: pa.Table
    columns: Mapping[str, str]
    key: tuple[str, ...]

    def rows(
        self, keys: Mapping[str, pa.ChunkedArray], columns: Sequence[str], limit: int
    ) -> pa.Table | None:
        return self.table.select(list(columns))

    def differing(self, rows: pa.Table, limit: int) -> pa.Table | None:
        return None

    def view(self, relations: Relations) -> str:
        return relations.local(self.table)

    def apply_change(self, change: pa.Table) -> tuple[ResultInMemory, pa.Table]:
        """The rows after a change of groups, and the change with the old rows of its keys.

        `change` is the result of `Fold` or `Regroup`: new rows, with the weight 1, each replacing
        the row of its key, and keys to delete, with -1.
        """
        touched = self._among(change)
        came = change.filter(pc.greater(change.column(WEIGHT), 0))
        came = came.select(self.table.column_names).cast(self.table.schema)
        went = self.table.filter(touched)
        kept = self.table.filter(pc.invert(touched))
        now = pa.concat_tables([kept, came]).combine_chunks()
        both = pa.concat_tables([add_weight(came, 1), add_weight(went, -1)])
        return ResultInMemory(now, self.columns, self.key), both

    def _among(self, change: pa.Table) -> pa.Array:
        """For each row, whether its key is among those of a change; NULL equals NULL."""
        count = self.table.num_rows
        own: pa.Array = pa.array([0] * count, pa.int64())
        theirs: pa.Array = pa.array([0] * change.num_rows, pa.int64())
        for name in self.key:
            # Numbers of the pairs found so far stay below the product of two row counts.
            pairs = [_key_numbers(self.table, change, name, side) for side in (self.table, change)]
            width = change.num_rows + 1
            own, theirs = (
                pc.add(pc.multiply(before, width), pc.fill_null(number, width - 1))
                for before, number in zip((own, theirs), pairs, strict=True)
            )
            known = pc.unique(theirs)
            own = pc.fill_null(pc.index_in(own, known), len(known)).cast(pa.int64())
            theirs = pc.index_in(theirs, known).cast(pa.int64())
        return pc.is_in(own, pc.unique(theirs))


ResultBefore = ResultInTable | ResultInMemory


def _key_numbers(held: pa.Table, change: pa.Table, name: str, side: pa.Table) -> pa.Array:
    """The number of each key among the distinct ones of a change; NULL for others."""
    type_ = held.schema.field(name).type
    known = pc.unique(change.column(name).combine_chunks().cast(type_))
    return pc.index_in(side.column(name).combine_chunks().cast(type_), known)
