"""Rows of this process as Spark reads them: along with a statement, or from a file beside it.

Along with a statement they are of exact size to the planner, which works out by itself what looks
at each row alone. But it takes them apart row by row, and again at every place that reads them: to
group 170,000 rows takes 0.9 seconds so, and 0.25 from a file, writing it included.
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
"""Rows that go along with a statement, and that Spark may make while it plans, without a job; more
go by a file, if they can."""


def in_statement(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows as a local relation."""
    if rows.num_rows:
        return spark.createDataFrame(rows)
    return spark.createDataFrame(_one_null_row(rows.schema)).where("false")


def in_file(spark: SparkSession, rows: pa.Table) -> tuple[DataFrame, Path] | None:
    """The rows in a file, which is the caller's to delete; None where it takes a local relation.

    That is so for few rows; for Spark on another machine, which would not find the file; for types
    that Parquet would give back otherwise; where the file cannot be written; and for a folder that
    Spark would take for a pattern.
    """
    if rows.num_rows <= AT_ONCE or not _is_kept(rows.schema) or not shares_files(spark):
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
    """Delete a file of rows, if Spark's server did not when it started again."""
    with contextlib.suppress(OSError):
        path.unlink()


def _write(rows: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o600, exist_ok=False)  # the folder of a session in this process is everybody's
    # Read at once, whole, and on this machine: what makes a file small or easy to skip costs more.
    plain = rows.rename_columns(_numbered(rows.schema))
    pq.write_table(plain, path, compression="none", use_dictionary=False, write_statistics=False)


def _read(spark: SparkSession, schema: pa.Schema, path: Path) -> DataFrame:
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    types = zip(_numbered(schema), schema.types, strict=True)
    reader = spark.read.schema(from_arrow_schema(pa.schema(list(types))))
    # The calendar of days before 1582 is that of the local relation.
    reader = reader.option("datetimeRebaseMode", "CORRECTED").option("ignoreMissingFiles", "false")
    return reader.parquet(str(path)).toDF(*schema.names)


def _numbered(schema: pa.Schema) -> list[str]:
    """Names that differ to Spark where those of the rows may differ in case only."""
    return [f"c{number}" for number in range(len(schema))]


def _is_kept(schema: pa.Schema) -> bool:
    """Whether Parquet gives back the columns as a local relation has them.

    A timestamp without a zone would become one with a zone, or not, by the settings of the session.
    """
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
        any(is_one(each) for is_one in alike)
        or (types.is_timestamp(each) and each.tz is not None and each.unit == "us")
        for each in schema.types
    )


def _one_null_row(schema: pa.Schema) -> pa.Table:
    """Spark takes no column types from a table without rows."""
    import pyarrow as pa

    return pa.table([pa.nulls(1, field.type) for field in schema], names=schema.names)
