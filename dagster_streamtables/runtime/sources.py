"""Versions of tables → the relations that a plan's SQL reads.

A source before and after is a temporary view over a DataFrame that keeps its snapshot: reading
``VERSION AS OF`` would build the old snapshot again in each statement. The version that is *after*
in this refresh is *before* in the next, so a session keeps the newest two of each table.

A small change enters as a local relation: of exact size to the planner, and never computed twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.capture import at_version
from dagster_streamtables.runtime.delta_log import Place

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_KEPT = 2


class Relations:
    """The views of one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._versions: dict[tuple[Place, bool], list[int]] = {}

    def at(self, place: Place, version: int) -> str:
        """The name of a view of a table at a version, in backticks: what a reader of it sees."""
        return self._view(place, version, own=False)

    def stored(self, place: Place, version: int) -> str:
        """The same with the columns that a stream table keeps for itself."""
        return self._view(place, version, own=True)

    def _view(self, place: Place, version: int, *, own: bool) -> str:
        view = _name(place, version, own)
        versions = self._versions.setdefault((place, own), [])
        if version not in versions:
            rows = at_version(self.spark, place, version)
            rows = rows if own else rows.select(rows.colRegex("`(?!__st_).+`"))
            rows.createOrReplaceTempView(view)
            versions.append(version)
            self._forget(place, own)
        return f"`{view}`"

    def local(self, name: str, rows: pa.Table) -> str:
        """The name of a view of local rows, in backticks."""
        # In one partition, what is grouped or joined needs no shuffle, and a shuffle is what costs.
        local = self.spark.createDataFrame(rows if rows.num_rows else _one_null_row(rows.schema))
        return self.named(name, (local if rows.num_rows else local.where("false")).coalesce(1))

    def named(self, name: str, rows: DataFrame) -> str:
        """The name of a view of a query's rows, in backticks; nothing is computed."""
        rows.createOrReplaceTempView(name)
        return f"`{name}`"

    def _forget(self, place: Place, own: bool) -> None:
        versions = self._versions[place, own]
        while len(versions) > _KEPT:
            self.spark.catalog.dropTempView(_name(place, versions.pop(0), own))


def _one_null_row(schema: pa.Schema) -> pa.Table:
    """Spark takes no column types from a table without rows."""
    import pyarrow as pa

    return pa.table([pa.nulls(1, field.type) for field in schema], names=schema.names)


def _name(place: Place, version: int, own: bool) -> str:
    digest = hashlib.sha256(f"{place.location}#{place.id}".encode()).hexdigest()[:12]
    return f"st_{digest}_v{version}{'_own' if own else ''}"


def bound(sql: str, relations: Mapping[str, str]) -> str:
    """SQL with its relation names exchanged for the views that stand for them.

    >>> bound("SELECT `id` FROM `sales.orders@after`", {"sales.orders@after": "`v7`"})
    'SELECT `id` FROM `v7`'
    """
    for name, view in relations.items():
        sql = sql.replace(f"`{name}`", view)
    return sql
