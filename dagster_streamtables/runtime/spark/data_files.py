"""A version of a table read from its data files, which the log names, by Spark's Parquet reader.

Through Delta, a version that no statement has read before is a snapshot to build, and every scan
lists its files by a job of Spark's: for a small change, most of what a refresh takes. Where a table
is nothing but Parquet files and a schema, neither is needed. Whatever proves a table right reads it
through Delta.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.definition import visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_FILES = 100
"""Spark asks for each file by itself, and beyond so many by a job: see the settings."""

# With these, a file still holds the rows of the table under the names of its columns.
_RULES = ("appendOnly", "invariants", "checkConstraints", "allowColumnDefaults")
_COMPUTED = ("generatedColumns", "identityColumns", "timestampNtz", "changeDataFeed")
_KEPT = ("domainMetadata", "rowTracking", "clustering", "v2Checkpoint", "inCommitTimestamp")
_LOOKED_AT = ("columnMapping", "deletionVectors", "vacuumProtocolCheck")
_HARMLESS = frozenset((*_RULES, *_COMPUTED, *_KEPT, *_LOOKED_AT))
# Spark takes a path for a pattern, and the log writes some characters as codes.
PLAIN_PATH = re.compile(r"[\w./-]+")


def from_files(spark: SparkSession, log: TableLog, version: int) -> DataFrame | None:
    """What a reader sees of a table at a version; None where it takes Delta.

    Elsewhere than on this machine it does: a store would have to be asked for each file.

    Args:
        spark: The session.
        log: Of the table, at some version.
        version: The version that is read.
    """
    if not log.location.startswith("/"):
        return None
    then = log if log.version == version else log.at(version)
    paths = data_files(then) if then is not None else None
    return rows_of_files(spark, then, paths) if then is not None and paths is not None else None


def data_files(log: TableLog) -> list[str] | None:
    """The paths of the files that hold the rows, no more and no fewer; None where it takes Delta.

    That is so for deletion vectors, partitions, and mapped or widened columns, and for columns
    about which the schema says more than a type (CHAR, collations).
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

    seen = visible(log.columns)
    fields = [field for field in log.fields if field["name"] in seen]
    reader = spark.read.schema(StructType.fromJson({"type": "struct", "fields": fields}))
    return reader.option("ignoreMissingFiles", "false").parquet(*paths)


def _says_more(log: TableLog) -> bool:
    """Whether a column, or a part of one, has more to it than its type and what it is for."""

    def metadata(node: Any) -> bool:
        if isinstance(node, dict):
            told: Any = node.get("metadata")
            return bool(told and set(told) - {"comment"}) or any(map(metadata, node.values()))
        return isinstance(node, list) and any(map(metadata, node))

    return metadata(log.fields)
