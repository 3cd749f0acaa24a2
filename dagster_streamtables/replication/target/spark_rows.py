"""Rows of a target by Spark: read at a version, and sent to it in a staged table."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import write_deltalake

from dagster_streamtables.runtime.compute.change_reader import at_version
from dagster_streamtables.runtime.compute.row_files import AT_ONCE
from dagster_streamtables.runtime.compute.spark_relations import in_statement
from dagster_streamtables.runtime.delta.arrow import fs, pa, plain_schema
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_locations import is_remote
from dagster_streamtables.runtime.delta.table_schema import spark_name
from dagster_streamtables.runtime.spark.connect import arrow_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STAGED = "_replication_staged"
"""A folder of the target: Delta looks into none that begins with an underscore."""


def read_by_spark(
    spark: SparkSession, log: TableLog, names: Sequence[str], wanted: pa.Table | None = None
) -> Iterator[pa.RecordBatch]:
    """Columns of the rows at the version of a log, in plain types, a batch at a time; only rows
    that are equal to one of `wanted`, in its columns, if given."""
    rows = at_version(spark, log.snapshot.table, log.version)
    if wanted is not None:
        rows = _among(spark, rows, wanted)
    rows = rows.select(*[rows[spark_name(name)] for name in names])
    schema = plain_schema(pa.schema([log.arrow_schema.field(name) for name in names]))
    for part in arrow_batches(rows):
        for batch in part.to_batches():
            yield batch.cast(schema)


def _among(spark: SparkSession, rows: DataFrame, wanted: pa.Table) -> DataFrame:
    from pyspark.sql import functions as F

    names = [
        name
        for name, type_ in zip(wanted.column_names, wanted.schema.types, strict=True)
        if not pa.types.is_nested(type_) and not has_naive_times(type_)
    ]
    if not names:
        return rows
    some = wanted.select(names).group_by(names).aggregate([])
    keys = in_statement(spark, some.rename_columns([f"__st_k{i}" for i in range(len(names))]))
    same = [rows[spark_name(n)].eqNullSafe(F.col(f"__st_k{i}")) for i, n in enumerate(names)]
    return rows.join(keys, same, "left_semi")


@contextmanager
def stage_rows(
    spark: SparkSession, log: TableLog, owner: str, schema: pa.Schema, rows: Iterator[pa.Table]
) -> Iterator[DataFrame]:
    """Rows for Spark, until the end of the block: sent with a statement if they are few, else in a
    table inside the folder of the target, where Spark is known to read.

    Args:
        owner: The owner of the rows; no other process stages rows under its name meanwhile.
    """
    first: list[pa.Table] = [schema.empty_table()]
    most = -1 if any(map(has_naive_times, schema.types)) else AT_ONCE
    for some in rows:
        first.append(some)
        if sum(each.num_rows for each in first) > most:
            break
    else:
        yield in_statement(spark, pa.concat_tables(first))
        return
    _discard(log, owner)
    name = f"{owner}-{uuid.uuid4().hex}"
    place = f"{log.location}/{_STAGED}/{name}"
    batches = (batch for some in _chain(first, rows) for batch in some.to_batches())
    try:
        write_deltalake(
            place,
            pa.RecordBatchReader.from_batches(schema, batches),
            storage_options=dict(log.storage_options or {}) or None,
        )
        yield spark.read.format("delta").load(place)
    finally:
        _discard(log, name)


def has_naive_times(type_: pa.DataType) -> bool:
    """Spark takes them for times in the zone of the session if they come with a statement."""
    return "timestamp[us]" in str(type_)


def _chain(first: list[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    while first:
        yield first.pop(0)
    yield from rest


def _discard(log: TableLog, owner: str) -> None:
    """Delete the staged rows of an owner, also those of a process that was killed."""
    files = log.files
    selector = fs.FileSelector(_STAGED, recursive=True, allow_not_found=True)
    with suppress(OSError):  # it is in nobody's way, and the next time is another chance
        for info in files.get_file_info(selector):
            inside = info.path.partition(f"{_STAGED}/")[2]
            if info.is_file and inside.startswith(owner):
                files.delete_file(info.path)
        if not is_remote(log.location):  # the empty folders remain
            place = Path(log.location) / _STAGED
            for folder in place.glob(f"{owner}*"):
                shutil.rmtree(folder, ignore_errors=True)
            place.rmdir()
