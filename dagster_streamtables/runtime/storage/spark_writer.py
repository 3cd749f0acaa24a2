"""Commit a large change with Spark, or to a table that delta-rs cannot write.

Does what `delta_rs_writer` does, in SQL. A change that only inserts rows is an append; every other
one is one MERGE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.runtime.compute.netting import grouping_clauses, same
from dagster_streamtables.runtime.compute.spark_relations import Relations
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import has_variants, spark_name, types_of
from dagster_streamtables.runtime.model.definition import visible_types
from dagster_streamtables.runtime.spark.spark_commits import (
    Commit,
    CommitMark,
    require_safe_commits,
)
from dagster_streamtables.runtime.storage.commit_target import (
    PROPERTIES,
    ChangedAt,
    CommitResult,
    CommitTarget,
    MissingRow,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOT_STORED = "a deleted row is not stored"


def write(spark: SparkSession, target: CommitTarget, rows: DataFrame) -> CommitResult:
    """Create the table, or replace all its rows and columns."""
    options = {"overwriteSchema": "true", **PROPERTIES}
    _commit(spark, target).overwrite(_of_plain_types(rows), options)
    return CommitResult(0, 0, "spark")


def replace(spark: SparkSession, target: CommitTarget, rows: DataFrame) -> CommitResult:
    """Replace all rows by `rows`."""
    _allow_types(spark, target, rows)
    return write(spark, target, rows)


def _allow_types(spark: SparkSession, target: CommitTarget, rows: DataFrame) -> None:
    """Allow timestamps without a time zone and variants, by a property, if the rows have any: Delta
    allows them by itself only in a new table."""
    types = types_of(rows).values()
    wanted = {
        "timestampNtz": any("timestamp_ntz" in each for each in types),
        "variantType": has_variants(types),
    }
    named = [f"'delta.feature.{each}' = 'supported'" for each, needed in wanted.items() if needed]
    if named:
        require_safe_commits(spark, target.location)
        place = f"delta.{spark_name(target.location)}"
        spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ({', '.join(named)})")


def _of_plain_types(rows: DataFrame) -> DataFrame:
    """The columns without the metadata of their sources: a CHAR(5) would stay one, only for Spark,
    and UNION ALL would apply the CHAR(5) of its first side to the other."""
    from pyspark.sql import functions as F

    names = rows.columns
    return rows.select(*[F.col(spark_name(name)).alias(name, metadata={}) for name in names])


def change(
    relations: Relations, log: TableLog, target: CommitTarget, rows: DataFrame
) -> CommitResult:
    """Commit a change, to a bag or to a table with a key."""
    view = relations.create_view(rows)
    types = {name: log.columns[name] for name in rows.columns if name != WEIGHT}
    if target.key is None:
        return write_bag(
            relations.spark, target, view, types, relations.with_hidden_columns(log.snapshot)
        )
    return write_keyed(relations.spark, target, target.key, view, types)


def write_bag(
    spark: SparkSession, target: CommitTarget, change: str, types: Mapping[str, str], stored: str
) -> CommitResult:
    """Insert and delete copies of rows.

    `change` is a view of distinct rows, at least one, with the numbers of copies as weights, and
    `stored` a relation with the present rows of the table.
    """
    weights = f"MIN({WEIGHT}) AS least, SUM({WEIGHT}) AS came"
    [(least, came)] = spark.sql(f"SELECT {weights} FROM {change}").collect()
    names = list(types)
    if least > 0:
        return _append(spark, target, change, names, came)
    at = target.changed_at
    time = "" if at is None else f", NULL AS {spark_name(at.name)}"
    gone = f"SELECT {_list(names)}{time}, true AS __goes FROM {change} WHERE {WEIGHT} < 0"
    source = f"{_again(at, change, types, stored)} UNION ALL {gone}"
    return _merge(spark, target, source, f"s.__goes AND {same(types, 't', 's')}", names)


def _again(at: ChangedAt | None, change: str, types: Mapping[str, str], stored: str) -> str:
    """A query of the copies to insert: new ones, and the remaining ones of rows that lose some."""
    shown, keys = grouping_clauses(types, "c")
    held, copy, time = "COUNT(s.__st_one) AS __st_stored", "array_repeat(1, __st_copies)", ""
    if at is not None:
        name = spark_name(at.name)
        held += f", sort_array(collect_list(coalesce(s.{name}, {at.sql}))) AS __st_times"
        earliest = "slice(__st_times, 1, __st_copies)"
        copy = f"IF({WEIGHT} > 0, array_repeat({at.sql}, __st_copies), {earliest})"
        time = f", __st_copy AS {name}"
    counted = (
        f"SELECT {shown}, any_value(c.{WEIGHT}) AS {WEIGHT}, {held} FROM {change} c "
        f"LEFT JOIN (SELECT *, 1 AS __st_one FROM {stored}) s "
        f"ON c.{WEIGHT} < 0 AND {same(types, 's', 'c')} GROUP BY {keys}"
    )
    copies = (
        f"CASE WHEN __st_stored + {WEIGHT} < 0 "
        f"THEN raise_error('{_NOT_STORED}') "
        f"ELSE CAST(__st_stored + {WEIGHT} AS INT) END"
    )
    return (
        f"SELECT {_list(list(types))}{time}, false AS __goes "
        f"FROM (SELECT *, {copies} AS __st_copies FROM ({counted})) "
        f"LATERAL VIEW explode({copy}) AS __st_copy"
    )


def write_keyed(
    spark: SparkSession,
    target: CommitTarget,
    key: Sequence[str],
    change: str,
    types: Mapping[str, str],
) -> CommitResult:
    """Store and delete the rows of the keys in the view `change`."""
    names = list(types)
    source = f"SELECT {_list(names)}{_time(target)}, {WEIGHT} < 0 AS __goes FROM {change}"
    match = " AND ".join(f"t.{spark_name(n)} <=> s.{spark_name(n)}" for n in key) or "true"
    updates = {spark_name(name): f"s.{spark_name(name)}" for name in names}
    if target.changed_at is not None:
        time, unchanged = spark_name(target.changed_at.name), same(visible_types(types), "t", "s")
        updates[time] = f"CASE WHEN {unchanged} THEN t.{time} ELSE s.{time} END"
    return _merge(spark, target, source, match, names, updates)


def advance(spark: SparkSession, target: CommitTarget) -> CommitResult:
    """Commit a new frontier without rows."""
    _commit(spark, target).advance()
    return CommitResult(0, 0, "spark")


def _commit(spark: SparkSession, target: CommitTarget) -> Commit:
    """The commit of a refresh: its sequence makes it only once."""
    mark = CommitMark(target.application, target.state.sequence, target.state.to_json())
    return Commit(spark, target.location, mark, target.file_rows)


def _append(
    spark: SparkSession, target: CommitTarget, change: str, names: Sequence[str], came: int
) -> CommitResult:
    """Insert rows, each repeated by its weight; none is deleted."""
    copies = f"explode(array_repeat(1, CAST({WEIGHT} AS INT))) AS __st_copy"
    rows = spark.sql(f"SELECT {_list(names)}{_time(target)} FROM {change} LATERAL VIEW {copies}")
    _commit(spark, target).append(rows)
    return CommitResult(came, 0, "spark")


def _merge(
    spark: SparkSession,
    target: CommitTarget,
    source: str,
    match: str,
    names: Sequence[str],
    updates: Mapping[str, str] | None = None,
) -> CommitResult:
    """Merge a query of rows, whose column ``__goes`` marks rows to delete, where they `match` a
    stored row. `names` are the columns of the user's query, and `updates` their new values in a
    stored row; None for a bag, which only inserts."""
    names = names if target.changed_at is None else [*names, target.changed_at.name]
    values = ", ".join(f"s.{spark_name(n)}" for n in names)
    clauses = ["WHEN MATCHED AND s.__goes THEN DELETE"]
    if updates:
        sets = ", ".join(f"t.{name} = {value}" for name, value in updates.items())
        clauses.append(f"WHEN MATCHED AND NOT s.__goes THEN UPDATE SET {sets}")
    clauses.append(
        f"WHEN NOT MATCHED AND NOT s.__goes THEN INSERT ({_list(names)}) VALUES ({values})"
    )
    try:
        done = _commit(spark, target).merge(source, match, clauses)
    except Exception as error:
        if _NOT_STORED in str(error):
            raise MissingRow from error
        raise
    if done is None:
        return CommitResult(0, 0, "spark")
    updated, deleted, inserted = (
        int(done[f"num_{kind}_rows"]) for kind in ("updated", "deleted", "inserted")
    )
    return CommitResult(inserted + updated, deleted + updated, "spark")


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(spark_name, names))


def _time(target: CommitTarget) -> str:
    """The time of the refresh, to follow a list of columns; empty without a column for it."""
    at = target.changed_at
    return "" if at is None else f", {at.sql} AS {spark_name(at.name)}"
