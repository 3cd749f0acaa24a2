"""The rows of a source's change: a table in this process if it is small, otherwise in Spark.

Both have the columns that the query uses and `WEIGHT`, 1 for an inserted row and -1 for a deleted
one. A change may repeat rows and is not necessarily netted; the caller nets it if necessary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from deltalake.exceptions import DeltaError

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.runtime.compute.netting import (
    add_weight,
    has_nested,
    net_rows,
    net_rows_in_spark,
)
from dagster_streamtables.runtime.delta.arrow import pa, pc
from dagster_streamtables.runtime.delta.data_files import (
    DataFile,
    OnlySpark,
    is_exact_in_partitions,
    live_files,
    pads,
    rows_of,
    schema_of,
)
from dagster_streamtables.runtime.delta.delta_log import TableIdentity, TableLog
from dagster_streamtables.runtime.delta.source_change import Capture, SourceChange
from dagster_streamtables.runtime.delta.table_schema import has_variants, spark_name
from dagster_streamtables.runtime.errors.table_errors import replaced_in_catalog
from dagster_streamtables.runtime.spark.connect import arrow_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import DataType, StructType

_REPLACED = "contains({}, '\\uFFFD')"
_MOVED = "{0} >= TIMESTAMP_NTZ '1582-10-14' AND {0} < TIMESTAMP_NTZ '1582-10-17'"
"""A day more at both ends, for the zone of the session."""


def doubt(schema: StructType) -> str:
    """SQL that is true for rows of a feed with a doubtful value; empty if none can be."""
    return _any(_of_value(each.dataType, spark_name(each.name)) for each in schema)


def _of_value(type_: DataType, value: str) -> str:
    from pyspark.sql import types

    match type_:
        case types.StringType():
            return _REPLACED.format(value)
        case types.DateType() | types.TimestampType():
            return _MOVED.format(f"CAST({value} AS TIMESTAMP_NTZ)")
        case types.StructType():
            return _any(_of_value(e.dataType, f"{value}.{spark_name(e.name)}") for e in type_)
        case types.ArrayType():
            return _of_elements(type_.elementType, value)
        case types.MapType():
            keys = _of_elements(type_.keyType, f"map_keys({value})")
            return _any([keys, _of_elements(type_.valueType, f"map_values({value})")])
        case _:
            return ""


def _of_elements(type_: DataType, values: str) -> str:
    inner = _of_value(type_, "x")
    return inner and f"exists({values}, x -> {inner})"


def _any(conditions: Iterable[str]) -> str:
    return " OR ".join(f"({each})" for each in conditions if each)


_PLAIN = re.compile(r"[\w.-]+", re.ASCII)
_KIND = "_change_type"
_WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


def small_change(
    log: TableLog, change: SourceChange, columns: Sequence[str], *, limit: int
) -> pa.Table | None:
    """The change, read here and netted; None if it has more than `limit` rows or needs Spark: for
    deletion vectors, renamed columns, a VARIANT, and everything in `data_files`.

    Without a feed, all rows of the added and removed files are read here, and cancel.
    """
    if log.maps_columns or change.vectors or pads(log, columns):
        return None
    if not all(is_exact_in_partitions(log.columns[name]) for name in log.partitions):
        return None
    if has_variants(log.columns[name] for name in columns):
        return None
    if any(set(log.partitions) - file.partition.keys() for file, _ in change.fed):
        # Older writers do not record the partition of a removed file.
        return None
    try:
        if change.capture is Capture.SNAPSHOTS:
            return _differing(log, change, columns, limit)
        if change.rows is None or change.rows > limit:
            return None
        if change.capture is Capture.FEED:
            return _feed(log, change, columns)
        return _rows_of(log, change.added, columns, 1)
    except (OnlySpark, DeltaError, pa.ArrowException, OSError):
        # Spark may read it; if not, its error names the file.
        return None


def is_true(log: TableLog, change: SourceChange, rows: pa.Table | DataFrame) -> bool:
    """Whether a change read from a feed is the whole change: some writers record only the new rows
    of an update, and the weights do not add up to the difference of the row counts."""
    if change.capture is not Capture.FEED:
        return True
    held, now = change.held, log.row_count
    net, doubtful = _weight_and_doubt(rows, counted=held is not None and now is not None)
    return not doubtful and (held is None or now is None or held + net == now)


def _weight_and_doubt(rows: Any, *, counted: bool) -> tuple[int, bool]:
    """The sum of the weights, and whether a value is in doubt; in Spark, by one statement."""
    if isinstance(rows, pa.Table):
        return pc.sum(rows.column(WEIGHT)).as_py() or 0, False
    doubtful = doubt(rows.schema)
    if not doubtful and not counted:
        return 0, False
    asked = f"coalesce(bool_or({doubtful or 'false'}), false)"
    answer = arrow_rows(rows.selectExpr(f"coalesce(SUM({WEIGHT}), 0)", asked))
    net, found = (column[0].as_py() for column in answer.columns)
    return net, found


def copies(rows: pa.Table) -> int:
    """The number of inserted and deleted rows."""
    return pc.sum(pc.abs(rows.column(WEIGHT))).as_py() or 0


def _feed(log: TableLog, change: SourceChange, columns: Sequence[str]) -> pa.Table:
    """The feed, from its files: delta-rs would read other timestamps than Spark."""
    parts = [add_weight(schema_of(log, columns).empty_table(), 1)]
    parts += [_read_feed_file(log, file, weight, columns) for file, weight in change.fed]
    return net_rows(pa.concat_tables(parts))


def _read_feed_file(
    log: TableLog, file: DataFile, weight: int | None, columns: Sequence[str]
) -> pa.Table:
    if weight is not None:
        return _rows_of(log, [file], columns, weight)
    rows = rows_of(log, file, columns, _KIND)
    kinds = rows.column(_KIND).cast(pa.string())
    names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    each = pc.take(pa.array(weights, pa.int64()), pc.index_in(kinds, pa.array(names)))
    return add_weight(rows.drop_columns([_KIND]), each)


def _differing(
    log: TableLog, change: SourceChange, columns: Sequence[str], limit: int
) -> pa.Table | None:
    """The rows of the files that only one end has, netted."""
    if change.lost or has_nested(schema_of(log, columns)):
        return None
    if _count(log, (*change.added, *change.removed), most=limit) is None:
        return None
    came, went = _rows_of(log, change.added, columns, 1), _rows_of(log, change.removed, columns, -1)
    rows = net_rows(pa.concat_tables([came, went]))
    return rows if rows.num_rows <= limit else None


def _count(log: TableLog, files: Sequence[DataFile], *, most: int) -> int | None:
    """Number of rows in all the files; None if it exceeds `most`."""
    total = 0
    for file in files:
        total += log.rows_in(file.path) if file.rows is None else file.rows
        if total > most:
            return None
    return total


def _rows_of(
    log: TableLog, files: Sequence[DataFile], columns: Sequence[str], weight: int
) -> pa.Table:
    parts = [add_weight(schema_of(log, columns).empty_table(), 1)]
    for file in files:
        rows = rows_of(log, file, columns)
        count = rows.num_rows if columns else log.rows_in(file.path)
        parts.append(add_weight(rows, pa.repeat(pa.scalar(weight, pa.int64()), count)))
    return pa.concat_tables(parts)


def large_change(
    spark: SparkSession, log: TableLog, change: SourceChange, columns: Sequence[str]
) -> DataFrame:
    """The change, read by Spark; netted for ``snapshots``, so that carried-over rows cancel."""
    if change.capture is Capture.FEED:
        return _feed_in_spark(spark, log, change, columns)
    names = _names(change)
    came = _rows_of_files(spark, log, change.after, names, columns, 1)
    if change.capture is Capture.APPENDED and names is not None and _alone(log, change, names):
        return came
    went = _rows_of_files(spark, log, change.before, names, columns, -1)
    return net_rows_in_spark(came.unionAll(went), {name: log.columns[name] for name in columns})


def _feed_in_spark(
    spark: SparkSession, log: TableLog, change: SourceChange, columns: Sequence[str]
) -> DataFrame:
    reader = (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", change.before + 1)
        .option("endingVersion", change.after)
    )
    feed = _read(spark, reader, log.snapshot.table)
    weight = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END"
    return feed.selectExpr(*map(spark_name, columns), f"CAST({weight} AS BIGINT) AS {WEIGHT}")


def _names(change: SourceChange) -> list[str] | None:
    """The names of the added and removed files; None if Spark may spell one differently."""
    names = {file.name for file in (*change.added, *change.removed)}
    return sorted(names) if all(map(_PLAIN.fullmatch, names)) else None


def _alone(log: TableLog, change: SourceChange, names: Sequence[str]) -> bool:
    """Whether no file with one of these names existed before."""
    added = {file.path for file in change.added}
    before = (file.name for path, file in live_files(log).items() if path not in added)
    return set(names).isdisjoint(before)


def _rows_of_files(
    spark: SparkSession,
    log: TableLog,
    version: int,
    names: Sequence[str] | None,
    columns: Sequence[str],
    weight: int,
) -> DataFrame:
    """The rows of a version in files of some names, or in all.

    Spark and the log spell paths differently, so files are found by name at both ends: unchanged
    files of that name in other folders (after CONVERT TO DELTA, each partition may have a
    part-00000) cancel.
    """
    rows = at_version(spark, log.snapshot.table, version)
    if names is not None:
        # Not F.col("_metadata.file_name"), which may be a column of the table.
        file = rows.metadataColumn("_metadata")
        rows = rows.where(file["file_name"].isin(list(names)))
    weighted = f"CAST({weight} AS BIGINT) AS {WEIGHT}"
    return rows.selectExpr(*map(spark_name, columns), weighted)


def at_version(spark: SparkSession, table: TableIdentity, version: int) -> DataFrame:
    """The rows of a Delta table at a version; the DataFrame keeps its snapshot."""
    return _read(spark, spark.read.format("delta").option("versionAsOf", version), table)


def _read(spark: SparkSession, reader: DataFrameReader, table: TableIdentity) -> DataFrame:
    """The rows of a table; by its name where its catalog refuses its path.

    Spark caches logs by path and by the options that begin with ``fs.``, so the id among the
    options distinguishes a table that was dropped and recreated.

    Raises:
        ConflictingCommit: The catalog has another table of the name since it was asked.
    """
    reader = reader.option("fs.streamtables.table", table.id)
    name = table.name_in_spark
    if name is None:
        return reader.load(table.location)
    rows = reader.table(name)
    [said] = spark.sql(f"DESCRIBE DETAIL {name}").collect()
    if said["id"] != table.id:
        raise replaced_in_catalog(name)
    return rows
