"""Read a version of a table from the data files that its log names, with Spark's Parquet reader.

Through Delta, Spark builds a snapshot of each new version, and every scan lists its files in a job:
for a small change, most of the time of a refresh. A table that is only Parquet files and a schema
needs neither. Checks always read through Delta.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import metadata_in
from dagster_streamtables.runtime.model.definition import visible_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_FILES = 100
"""Spark looks up single files up to this number, and lists more in a job: see the settings."""

# With these features, a file still holds the table's rows under the names of its columns.
_RULES = ("appendOnly", "invariants", "checkConstraints", "allowColumnDefaults")
_COMPUTED = ("generatedColumns", "identityColumns", "timestampNtz", "changeDataFeed")
_KEPT = ("domainMetadata", "rowTracking", "clustering", "v2Checkpoint", "inCommitTimestamp")
_LOOKED_AT = ("columnMapping", "deletionVectors", "vacuumProtocolCheck")
_HARMLESS = frozenset((*_RULES, *_COMPUTED, *_KEPT, *_LOOKED_AT))
# Spark reads a path as a pattern, and the log encodes some characters.
PLAIN_PATH = re.compile(r"[\w./-]+")


def from_files(spark: SparkSession, log: TableLog, version: int) -> DataFrame | None:
    """The visible rows of a table at a version; None if they must be read through Delta, as in an
    object store, where each file would be a request. `log` is at any version."""
    if not log.location.startswith("/"):
        return None
    then = log if log.version == version else log.at(version)
    paths = data_files(then) if then is not None else None
    return rows_of_files(spark, then, paths) if then is not None and paths is not None else None


def data_files(log: TableLog) -> list[str] | None:
    """The paths of the files with exactly the table's rows; None if only Delta reads them: because
    of deletion vectors, partitions, mapped or widened columns, CHAR or collations."""
    if log.partitions or log.maps_columns or not log.features <= _HARMLESS or log.vector_rows != 0:
        return None
    if any(set(metadata) - {"comment"} for metadata in metadata_in(log.fields)):
        return None
    names = log.adds.column("path").to_pylist() if log.adds.num_rows else []
    if not 0 < len(names) <= MOST_FILES:
        return None
    paths = [f"{log.location}/{name}" for name in names]
    plain = all(PLAIN_PATH.fullmatch(path) for path in paths)
    return paths if plain else None


def rows_of_files(spark: SparkSession, log: TableLog, paths: list[str]) -> DataFrame:
    """The visible columns of the rows in these files."""
    from pyspark.sql.types import StructType

    seen = visible_types(log.columns)
    fields = [field for field in log.fields if field["name"] in seen]
    reader = spark.read.schema(StructType.fromJson({"type": "struct", "fields": fields}))
    return reader.option("ignoreMissingFiles", "false").parquet(*paths)
