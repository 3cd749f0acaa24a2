"""`RowFiles`: many local rows reach Spark in a file.

Rows that are sent along with a statement are part of its plan: Spark sends them to each task, and
converts them one by one wherever it reads them.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake.exceptions import DeltaError

from dagster_streamtables.runtime.delta.arrow import fs, pa, pq
from dagster_streamtables.runtime.delta.table_locations import files_below, is_remote
from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.environment import temporary
from dagster_streamtables.runtime.spark.parquet_scan import PLAIN_PATH
from dagster_streamtables.runtime.spark.session import shares_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 5_000
"""Up to this many rows are sent along with a statement, and Spark may evaluate them while planning,
without a job; more go into a file, if possible."""
FOLDER = "_streamtables/rows"
_FORGOTTEN = 86_400
"""Seconds after which no refresh reads a file of rows."""


@dataclass(frozen=True)
class RowFile:
    """Rows in a file, which is the caller's to delete."""

    rows: DataFrame
    path: str
    """Below the folder of `files`."""
    files: Any

    def delete(self) -> None:
        """Delete the file, unless Spark's server deleted it at a restart."""
        with suppress(OSError, DeltaError):
            self.files.delete_file(self.path)


class RowFiles:
    """Writes files of rows: into a temporary folder for a Spark of this machine, below the root of
    the lake for any other. Threads may share it."""

    def __init__(self, root: str = "", storage_options: Mapping[str, str] | None = None) -> None:
        """Args: root: Of the lake, a path or a URI; empty for a Spark of this machine only."""
        self._root, self._options = root.removeprefix("file://").rstrip("/"), storage_options

    def write(self, spark: SparkSession, rows: pa.Table) -> RowFile | None:
        """Rows in a file; None if they must be sent along with a statement.

        They must be if they are few, if Parquet would change a type, if the file cannot be written,
        and if Spark would read its path as a pattern.
        """
        if rows.num_rows <= AT_ONCE or not _is_lossless(rows.schema):
            return None
        from pyspark.errors import PySparkException

        here = shares_files(spark)
        if not (here or self._root):
            return None
        folder = f"{self._root}/{FOLDER}"
        if here:
            folder = str(temporary() if is_connect(spark) else tempfile.gettempdir())
        # Of a URI, Spark reads a pattern in the path only, not in `container@account`.
        if not PLAIN_PATH.fullmatch(folder.split("/", 3)[-1] if is_remote(folder) else folder):
            return None
        name = f"streamtables-{uuid.uuid4().hex}.parquet"
        with suppress(OSError, DeltaError, PySparkException):
            files = _open_temporary(folder, name) if here else self._below_root
            return _write(spark, rows, folder, files, name)
        return None

    @cached_property
    def _below_root(self) -> Any:
        """The folder below the root, without the files that killed processes left."""
        if not is_remote(self._root):
            (Path(self._root) / FOLDER).mkdir(parents=True, exist_ok=True)
        files = files_below(f"{self._root}/{FOLDER}", self._options)
        with suppress(OSError, DeltaError):  # whoever may not list may write
            for each in files.get_file_info(fs.FileSelector("", allow_not_found=True)):
                if each.is_file and each.mtime_ns / 1e9 < time.time() - _FORGOTTEN:
                    files.delete_file(each.path)
        return files


def _open_temporary(folder: str, name: str) -> Any:
    """A temporary folder, which may be public, with a file for its owner alone."""
    Path(folder).mkdir(exist_ok=True)
    (Path(folder) / name).touch(mode=0o600, exist_ok=False)
    return files_below(folder, None)


def _write(spark: SparkSession, rows: pa.Table, folder: str, files: Any, name: str) -> RowFile:
    plain = rows.rename_columns(_plain_names(rows.schema))
    try:
        # It is read at once, whole: compression and statistics would only cost time.
        with files.open_output_stream(name) as stream:
            pq.write_table(
                plain, stream, compression="none", use_dictionary=False, write_statistics=False
            )
        return RowFile(_read(spark, rows.schema, f"{folder}/{name}"), name, files)
    except BaseException:
        with suppress(OSError, DeltaError):
            files.delete_file(name)
        raise


def _read(spark: SparkSession, schema: pa.Schema, path: str) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    types = zip(_plain_names(schema), schema.types, strict=True)
    reader = spark.read.schema(from_arrow_schema(pa.schema(list(types))))
    # Days before 1582 in the same calendar as in a local relation.
    reader = reader.option("datetimeRebaseMode", "CORRECTED")
    # A setting of the server must not leave rows out.
    reader = reader.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false")
    return reader.parquet(path).toDF(*schema.names)


def _plain_names(schema: pa.Schema) -> list[str]:
    """Distinct names for Spark, since the names of the rows may differ only in case."""
    return [f"c{number}" for number in range(len(schema))]


def _is_lossless(schema: pa.Schema) -> bool:
    """Whether Parquet returns the same columns as a local relation."""
    types = pa.types
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
