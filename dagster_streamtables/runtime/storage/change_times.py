"""The column `changed_at` of a stored table: the time of each row's last change.

    write      Every row has the time of the refresh.
    replace    A row keeps its time if a stored row has the same values in all visible columns of
               the query, and in the key. The others have the time of the refresh.
    change     Of a table with a key: a row keeps its time unless a visible column changes.
               Of a bag: inserted copies have the time of the refresh; the others keep theirs.

Copies of a row differ only in their times. If a row loses copies, the ones with the earliest times
stay. A row that is deleted and inserted again in one refresh is unchanged. Rows are equal as in
`netting`: NaN equals NaN, NULL equals NULL, and -0.0 differs from 0.0.

The writers do `change`; this module prepares the rows of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.compute.netting import grouping_clauses, same
from dagster_streamtables.runtime.compute.spark_relations import OutputRows, Relations
from dagster_streamtables.runtime.delta.arrow import np, pa
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import spark_name, types_of
from dagster_streamtables.runtime.model.definition import visible_types
from dagster_streamtables.runtime.spark.connect import arrow_rows
from dagster_streamtables.runtime.storage.commit_target import ChangedAt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COPY, _ROW = "__st_copy", "__st_row"


def add_time(rows: OutputRows, at: ChangedAt) -> OutputRows:
    """The rows, all with the time of the refresh."""
    local = None if rows.local is None else local_at(rows.local, at)
    return OutputRows(local, lambda: _in_spark_at(rows.in_spark(), at))


def local_at(rows: pa.Table, at: ChangedAt) -> pa.Table:
    """Rows in this process with the time of the refresh."""
    return _with_column(rows, at, np.full(rows.num_rows, _microseconds(at), np.int64))


def keep_times(rows: OutputRows, at: ChangedAt, log: TableLog, relations: Relations) -> OutputRows:
    """The rows that replace those of a table: stored ones with their times."""
    if not at.stored:
        return add_time(rows, at)
    if rows.local is None:
        return OutputRows(None, lambda: _keep_in_spark(rows.in_spark(), at, log, relations))
    local = _keep_here(rows.local, at, log, relations)
    return OutputRows(local, lambda: relations.to_spark(local))


def _keep_here(rows: pa.Table, at: ChangedAt, log: TableLog, relations: Relations) -> pa.Table:
    """Spark finds the stored rows; the result keeps its order, by which files can be skipped."""
    numbers = pa.array(range(rows.num_rows), pa.int64())
    view = relations.local(rows.append_column(_ROW, numbers))
    types = types_of(relations.sql(f"SELECT * FROM {view}"))
    del types[_ROW]
    pairs = _Pairs.of(types, at, log, relations)
    if pairs is None:
        return local_at(rows, at)
    found = arrow_rows(relations.sql(pairs.sql(view, f"r.{_ROW}", join="JOIN")))
    times = np.full(rows.num_rows, _microseconds(at), np.int64)
    kept = found.column(at.name).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    times[found.column(_ROW).to_numpy()] = kept.to_numpy()
    return _with_column(rows, at, times)


def _keep_in_spark(
    rows: DataFrame, at: ChangedAt, log: TableLog, relations: Relations
) -> DataFrame:
    types = types_of(rows)
    pairs = _Pairs.of(types, at, log, relations)
    if pairs is None:
        return _in_spark_at(rows, at)
    shown = ", ".join(f"r.{spark_name(name)}" for name in types)
    return relations.sql(pairs.sql(relations.create_view(rows), shown, join="LEFT JOIN"))


@dataclass(frozen=True)
class _Pairs:
    """Rows of a result and the stored rows that are equal to them, paired copy by copy."""

    at: ChangedAt
    stored: str
    """A relation with the stored rows."""
    types: Mapping[str, str]
    """The columns in which the rows of a pair are equal, and their types."""

    @classmethod
    def of(
        cls, types: Mapping[str, str], at: ChangedAt, log: TableLog, relations: Relations
    ) -> _Pairs | None:
        """None if the stored rows lack a column, or have another type."""
        own = visible_types(types)
        compared = {name: type_ for name, type_ in types.items() if name in own or name in at.key}
        stored = {name.lower(): type_ for name, type_ in log.columns.items()}
        if any(stored.get(name.lower()) != type_ for name, type_ in compared.items()):
            return None
        return cls(at, relations.with_hidden_columns(log.snapshot), compared)

    def sql(self, rows: str, shown: str, *, join: str) -> str:
        """A query of the columns `shown` of the relation `rows`, as ``r``, and the time.

        `join` is JOIN for the paired rows only, LEFT JOIN for all.
        """
        at, time = self.at, spark_name(self.at.stored)
        before = self._with_copy_numbers(self.stored, "s", f"s.{time} NULLS LAST")
        return (
            f"SELECT {shown}, coalesce(s.{time}, {at.sql}) AS {spark_name(at.name)} "
            f"FROM {self._with_copy_numbers(rows, 'r', 'NULL')} {join} {before} "
            f"ON r.{_COPY} = s.{_COPY} AND {same(self.types, 'r', 's')}"
        )

    def _with_copy_numbers(self, relation: str, alias: str, order: str) -> str:
        _, keys = grouping_clauses(self.types, alias)
        number = f"row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS {_COPY}"
        return f"(SELECT {alias}.*, {number} FROM {relation} {alias}) {alias}"


def _in_spark_at(rows: DataFrame, at: ChangedAt) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.withColumn(at.name, F.expr(at.sql))


def _with_column(rows: pa.Table, at: ChangedAt, microseconds: np.ndarray) -> pa.Table:
    times = pa.array(microseconds, pa.int64()).cast(pa.timestamp("us", "UTC"))
    return rows.append_column(at.name, times)


def _microseconds(at: ChangedAt) -> int:
    moment = pa.scalar(datetime.fromisoformat(at.now), pa.timestamp("us", "UTC"))
    return moment.value
