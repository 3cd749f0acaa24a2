"""Local rows for Spark: sent along with a statement, or in a file.

The planner knows the exact size of rows in a statement, and itself evaluates what reads each row
separately. But it converts them row by row, again at every place that reads them: grouping 170,000
rows takes 0.9 s this way, and 0.25 s from a file, including writing it.
"""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.data_files import PLAIN_PATH
from dagster_streamtables.runtime.spark.home import temporary
from dagster_streamtables.runtime.spark.session import shares_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 5_000
"""Up to this many rows are sent along with a statement, and Spark may evaluate them while planning,
without a job; more go into a file, if possible."""


def in_statement(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows as a local relation.

    A timestamp without a zone stays one. Without a schema Spark makes it an instant of the
    session's zone, where 02:30 may not exist, and an hour later is an hour of the clock.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(rows.schema)
    if rows.num_rows:
        return spark.createDataFrame(rows, schema)
    return spark.createDataFrame(_one_null_row(rows.schema), schema).where("false")


def in_file(spark: SparkSession, rows: pa.Table) -> tuple[DataFrame, Path] | None:
    """The rows in a file, which the caller must delete; None if they must be a local relation.

    They must be if they are few; if Spark runs on another machine, without the file; for types that
    Parquet would change; if the file cannot be written; and in a folder whose name Spark would read
    as a pattern.
    """
    if rows.num_rows <= AT_ONCE or not _is_lossless(rows.schema) or not shares_files(spark):
        return None
    folder = temporary() if is_connect(spark) else Path(tempfile.gettempdir())
    path = folder / f"streamtables-{uuid.uuid4().hex}.parquet"
    if not PLAIN_PATH.fullmatch(str(path)):
        return None
    try:
        _write(rows, path)
    except OSError:
        discard(path)
        return None
    return _read(spark, rows.schema, path), path


def discard(path: Path) -> None:
    """Delete a file of rows, unless Spark's server did so at its restart."""
    with contextlib.suppress(OSError):
        path.unlink()


def _write(rows: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o600, exist_ok=False)  # with Spark in this process, the folder is public
    # It is read at once, whole, on this machine: compression and statistics would only cost time.
    plain = rows.rename_columns(_plain_names(rows.schema))
    pq.write_table(plain, path, compression="none", use_dictionary=False, write_statistics=False)


def _read(spark: SparkSession, schema: pa.Schema, path: Path) -> DataFrame:
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    types = zip(_plain_names(schema), schema.types, strict=True)
    reader = spark.read.schema(from_arrow_schema(pa.schema(list(types))))
    # Days before 1582 in the same calendar as in a local relation.
    reader = reader.option("datetimeRebaseMode", "CORRECTED").option("ignoreMissingFiles", "false")
    return reader.parquet(str(path)).toDF(*schema.names)


def _plain_names(schema: pa.Schema) -> list[str]:
    """Distinct names for Spark, since the names of the rows may differ only in case."""
    return [f"c{number}" for number in range(len(schema))]


def _is_lossless(schema: pa.Schema) -> bool:
    """Whether Parquet returns the same columns as a local relation."""
    from pyarrow import types

    alike = (
        types.is_boolean,
        types.is_signed_integer,
        types.is_floating,
        types.is_decimal128,
        types.is_string,
        types.is_binary,
        types.is_date32,
    )
    return all(
        any(is_one(each) for is_one in alike) or (types.is_timestamp(each) and each.unit == "us")
        for each in schema.types
    )


def _one_null_row(schema: pa.Schema) -> pa.Table:
    """Spark reads no column types from a table without rows."""
    import pyarrow as pa

    return pa.table([pa.nulls(1, field.type) for field in schema], names=schema.names)
