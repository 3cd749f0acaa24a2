"""Read a version of a table from the data files that its log names, with Spark's Parquet reader.

Through Delta, Spark builds a snapshot of each version that no statement has read before, and every
scan lists its files in a job: for a small change, most of the time of a refresh. If a table is only
Parquet files and a schema, neither is needed. Checks always read through Delta.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dagster_streamtables.runtime.delta.delta_log import TableLog
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
    """The visible rows of a table at a version; None if they must be read through Delta.

    That includes tables in an object store, where each file would be a request.

    Args:
        spark: The session.
        log: The table's log, at any version.
        version: The version to read.
    """
    if not log.location.startswith("/"):
        return None
    then = log if log.version == version else log.at(version)
    paths = data_files(then) if then is not None else None
    return rows_of_files(spark, then, paths) if then is not None and paths is not None else None


def data_files(log: TableLog) -> list[str] | None:
    """The paths of the files with exactly the table's rows; None if it takes Delta to read them.

    It does for deletion vectors, partitions, mapped or widened columns, and columns whose schema
    has more than a type (CHAR, collations).
    """
    if log.partitions or log.maps_columns or not log.features <= _HARMLESS or _says_more(log):
        return None
    if log.vector_rows != 0:
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


def _says_more(log: TableLog) -> bool:
    """Whether a column, or a field in one, has metadata other than a comment."""

    def metadata(node: Any) -> bool:
        if isinstance(node, dict):
            told: Any = node.get("metadata")
            return bool(told and set(told) - {"comment"}) or any(map(metadata, node.values()))
        return isinstance(node, list) and any(map(metadata, node))

    return metadata(log.fields)
