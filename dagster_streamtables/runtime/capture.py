"""The change of a source as rows: a table in this process while it is small, else Spark's.

Both have the columns that the query uses and `WEIGHT`, 1 for a row that came and -1 for one that
went. A change may be un-netted and may repeat rows; whoever needs it otherwise nets it.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltalake.exceptions import DeltaError

from dagster_streamtables.compiler.operators import WEIGHT
from dagster_streamtables.runtime.arrow import plain_schema
from dagster_streamtables.runtime.calls import arrow_rows
from dagster_streamtables.runtime.delta_log import Place, TableLog
from dagster_streamtables.runtime.quote import spark_name
from dagster_streamtables.runtime.window import DataFile, SourceChange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


def small_change(
    log: TableLog, change: SourceChange, columns: Sequence[str], *, limit: int
) -> pa.Table | None:
    """The change, read here and netted; None where it has more than `limit` rows or needs Spark.

    Spark is needed for what delta-rs and pyarrow do not read: files under deletion vectors, and
    renamed columns. Without a feed all rows of the files that came or went come here, and cancel.
    """
    import pyarrow as pa

    if log.maps_columns:
        return None
    try:
        if change.capture == "snapshots":
            return _differing(log, change, columns, limit)
        if change.rows is None or change.rows > limit:
            return None
        read = _feed if change.capture == "feed" else _appended
        return read(log, change, columns)
    except (DeltaError, pa.ArrowException, OSError):
        # Spark may be able to; if not, its error names the file.
        return None


def adds_up(log: TableLog, change: SourceChange, rows: pa.Table | DataFrame) -> bool:
    """Whether the rows that came and went make up the difference of the table's row counts."""
    if change.capture != "feed" or change.held is None or log.row_count is None:
        return True
    return change.held + _net(rows) == log.row_count


def _net(rows: Any) -> int:
    """The sum of the weights; of what Spark reads, by a statement that reads one column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(rows, pa.Table):
        return pc.sum(rows.column(WEIGHT)).as_py() or 0
    return arrow_rows(rows.groupBy().sum(WEIGHT)).column(0)[0].as_py() or 0


def copies(rows: pa.Table) -> int:
    """Rows that came and rows that went."""
    import pyarrow.compute as pc

    return pc.sum(pc.abs(rows.column(WEIGHT))).as_py() or 0


def _feed(log: TableLog, change: SourceChange, columns: Sequence[str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    read = log.table.load_cdf(
        starting_version=change.before + 1,
        ending_version=change.after,
        columns=[*columns, "_change_type"],
    )
    rows = pa.table(read)
    kinds = rows.column("_change_type").cast(pa.string())
    names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    weight = pc.take(pa.array(weights, pa.int64()), pc.index_in(kinds, pa.array(names)))
    return netted(_with_weight(_typed(log, rows, columns), weight))


def _appended(log: TableLog, change: SourceChange, columns: Sequence[str]) -> pa.Table:
    return _rows_of(log, change.added, columns, 1)


def _differing(
    log: TableLog, change: SourceChange, columns: Sequence[str], limit: int
) -> pa.Table | None:
    """The rows of the files that one end has and the other has not, netted."""
    import pyarrow as pa

    if change.lost or change.vectors or _nested(_schema(log, columns)):
        return None
    if any(set(log.partitions) - file.partition.keys() for file in change.removed):
        # Older writers do not say in which partition a file was that went.
        return None
    if _count(log, (*change.added, *change.removed), most=limit) is None:
        return None
    came, went = _rows_of(log, change.added, columns, 1), _rows_of(log, change.removed, columns, -1)
    rows = netted(pa.concat_tables([came, went]))
    return rows if rows.num_rows <= limit else None


def _count(log: TableLog, files: Sequence[DataFile], *, most: int) -> int | None:
    """Rows in all the files; None if they are more than `most`."""
    total = 0
    for file in files:
        total += log.rows_in(file.path) if file.rows is None else file.rows
        if total > most:
            return None
    return total


def _rows_of(
    log: TableLog, files: Sequence[DataFile], columns: Sequence[str], weight: int
) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: list[pa.Table] = []
    counts: list[int] = []
    for file in files:
        stored = [name for name in columns if name not in file.partition]
        with log.files.open_input_file(file.path) as stream:
            opened = pq.ParquetFile(stream)
            there = set(opened.schema_arrow.names)
            rows = opened.read(columns=[name for name in stored if name in there])
            count = opened.metadata.num_rows
        parts.append(_completed(log, rows, file.partition, columns, count))
        counts.append(count)
    rows = pa.concat_tables(parts) if parts else _schema(log, columns).empty_table()
    return _with_weight(rows, pa.repeat(pa.scalar(weight, pa.int64()), sum(counts)))


def _with_weight(rows: pa.Table, weight: pa.Array | pa.ChunkedArray) -> pa.Table:
    # A query such as SELECT COUNT(*) uses no column, and a table without columns has no rows.
    import pyarrow as pa

    return rows.append_column(WEIGHT, weight) if rows.num_columns else pa.table({WEIGHT: weight})


def _completed(
    log: TableLog,
    rows: pa.Table,
    partition: Mapping[str, str | None],
    columns: Sequence[str],
    count: int,
) -> pa.Table:
    """The rows of one file with the columns that the file does not hold."""
    import pyarrow as pa

    schema = _schema(log, columns)
    arrays: list[object] = []
    for name in columns:
        type_ = schema.field(name).type
        if name in partition:
            value = pa.array([partition[name] or None] * count, pa.string())
            arrays.append(value.cast(type_))
        elif name in rows.column_names:
            arrays.append(rows.column(name).cast(type_))
        else:
            arrays.append(pa.nulls(count, type_))
    return pa.Table.from_arrays(arrays, schema=schema)


def _schema(log: TableLog, columns: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    whole = pa.schema(log.table.schema().to_arrow())
    return plain_schema(pa.schema([whole.field(name) for name in columns]))


def _typed(log: TableLog, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    return rows.select(list(columns)).cast(_schema(log, columns))


def netted(rows: pa.Table) -> pa.Table:
    """Equal rows with their weights added up, and no row of weight 0.

    An update that left the used columns as they were is two rows that cancel here, and then the
    source need not be looked at further. Nested columns are left as they are: pyarrow cannot group
    by them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = [name for name in rows.column_names if name != WEIGHT]
    if not keys:
        total = pc.sum(rows.column(WEIGHT)).as_py() or 0
        return pa.table({WEIGHT: pa.array([total] if total else [], pa.int64())})
    if _nested(rows.schema):
        return rows
    grouped = rows.group_by(keys, use_threads=False).aggregate([(WEIGHT, "sum")])
    totals = grouped.rename_columns([*keys, WEIGHT]).select([*keys, WEIGHT])
    return totals.filter(pc.not_equal(totals.column(WEIGHT), 0))


def _nested(schema: pa.Schema) -> bool:
    import pyarrow as pa

    return any(pa.types.is_nested(field.type) for field in schema)


_WHOLE = ("boolean", "tinyint", "smallint", "int", "bigint", "decimal")
_ALIKE = frozenset((*_WHOLE, "string", "binary", "date", "timestamp", "timestamp_ntz"))


def netted_here(types: Mapping[str, str]) -> bool:
    """Whether rows of these types are equal here where they are equal in Spark.

    The zeros and the NaNs of floats are not, and pyarrow groups by nothing nested.
    """
    return all(type_.partition("(")[0] in _ALIKE for type_ in types.values())


def large_change(
    spark: SparkSession, log: TableLog, change: SourceChange, columns: Sequence[str]
) -> DataFrame:
    """The change as Spark reads it; netted for ``snapshots``, where carried-over rows cancel."""
    if change.capture == "feed":
        return _feed_in_spark(spark, log, change, columns)
    came = _rows_of_files(spark, log, change.after, [f.path for f in change.added], columns, 1)
    if change.capture == "appended":
        return came
    gone = [f.path for f in change.removed]
    went = _rows_of_files(spark, log, change.before, gone, columns, -1)
    from pyspark.sql import functions as F

    keys = [F.col(spark_name(name)) for name in columns]
    total = F.sum(WEIGHT).alias(WEIGHT)
    return came.unionAll(went).groupBy(*keys).agg(total).where(f"{WEIGHT} <> 0")


def _feed_in_spark(
    spark: SparkSession, log: TableLog, change: SourceChange, columns: Sequence[str]
) -> DataFrame:
    feed = (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", change.before + 1)
        .option("endingVersion", change.after)
        .option("fs.streamtables.table", log.id)
        .load(log.location)
    )
    weight = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END"
    return feed.selectExpr(*map(spark_name, columns), f"CAST({weight} AS BIGINT) AS {WEIGHT}")


def _rows_of_files(
    spark: SparkSession,
    log: TableLog,
    version: int,
    paths: Sequence[str],
    columns: Sequence[str],
    weight: int,
) -> DataFrame:
    from pyspark.sql import functions as F

    # The name of a data file holds a UUID; its folder is written differently by each writer.
    names = [path.rsplit("/", 1)[-1] for path in paths]
    return (
        at_version(spark, log.place, version)
        .where(F.col("_metadata.file_name").isin(names))
        .selectExpr(*map(spark_name, columns), f"CAST({weight} AS BIGINT) AS {WEIGHT}")
    )


def at_version(spark: SparkSession, place: Place, version: int) -> DataFrame:
    """The rows of a Delta table at a version; the DataFrame keeps its snapshot.

    Spark keeps logs by path, and by the options that begin with ``fs.``. A table that was dropped
    and created again has its predecessor's path and, soon, its versions: its id among the options
    keeps the two apart.
    """
    reader = spark.read.format("delta").option("fs.streamtables.table", place.id)
    return reader.option("versionAsOf", version).load(place.location)
