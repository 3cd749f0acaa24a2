"""Versions of tables → the relations that a plan's SQL reads.

A source before and after is a view of its version; see `version_views`. A small change enters as
local rows: the planner knows their size, and they are never computed twice.
Threads may share a session: two relations of one name, or a version that is dropped while it is
read, would give wrong rows.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import Bounds, Text, at_time
from dagster_streamtables.errors import QueryPosition
from dagster_streamtables.runtime.compute.capture import at_version
from dagster_streamtables.runtime.compute.local_rows import discard, in_file, in_statement
from dagster_streamtables.runtime.compute.version_views import ReadMode, Rows, Views
from dagster_streamtables.runtime.delta.arrow import has_variants
from dagster_streamtables.runtime.delta.data_rows import is_utf8
from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableLog
from dagster_streamtables.runtime.delta.key_ranges import bounds
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.errors.query_places import place_of
from dagster_streamtables.runtime.errors.tables import lost_version
from dagster_streamtables.runtime.spark.connect import arrow_rows, query
from dagster_streamtables.runtime.spark.data_files import from_files
from dagster_streamtables.runtime.spark.session_cleanup import VIEWS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class Relations:
    """The relations of one refresh or comparison, under unique names until it is closed."""

    def __init__(self, views: Views) -> None:
        self.spark = views.spark
        self.compiled = False
        """Whether no statement over them is to be interpreted."""
        self.query: Text | None = None
        """The author's query as Spark runs it."""
        self._views = views
        self._used: dict[tuple[Snapshot, ReadMode], str] = {}
        self._local: dict[str, tuple[DataFrame, pa.Table]] = {}
        self._bounds: dict[tuple[str, str], Bounds | None] = {}
        self._own: list[str] = []
        self._kept: list[DataFrame] = []
        self._files: list[Path] = []

    def __enter__(self) -> Relations:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the named rows, and release the views of versions."""
        while self._files:
            discard(self._files.pop())
        while self._kept:  # while the views that they read still exist
            self._kept.pop().unpersist()
        while self._own:
            self.spark.catalog.dropTempView(self._own.pop())
        self._views.leave(self._used.values())
        self._used.clear()
        self._local.clear()
        self._bounds.clear()

    def at(self, snapshot: Snapshot) -> str:
        """The name, in backticks, of a view of a table's visible columns at a version."""

        def rows(spark: SparkSession) -> DataFrame:
            return _visible_columns(at_version(spark, snapshot.table, snapshot.version))

        return self._version(snapshot, ReadMode.SEEN, rows)

    def scan(self, log: TableLog, version: int) -> str:
        """As `at`, read in the cheapest way.

        Args:
            log: The table's log, at that version or a later one.
            version: The version to read.

        Raises:
            LostHistory: The version no longer exists.
        """
        snapshot = log.snapshot_at(version)
        if snapshot is None:
            raise lost_version(log.location, version)

        def rows(spark: SparkSession) -> DataFrame:
            found = from_files(spark, log, version)
            return (
                _visible_columns(at_version(spark, snapshot.table, version))
                if found is None
                else found
            )

        return self._version(snapshot, ReadMode.FILES, rows)

    def over(self, text: Text, tables: Mapping[str, Snapshot], now: str) -> Text:
        """A user's query over versions of its tables, at a time.

        A table that occurs twice becomes two views. If one view occurs twice in a statement, Spark
        renumbers the columns of one of them, and loses those that USING and NATURAL JOIN hide.
        """
        times = Counter(tables[name] for name in text.mentions)
        return text.over(
            lambda name: (self.at if times[tables[name]] == 1 else self._again)(tables[name]),
            more=at_time(text, now),
        )

    def place_of(self, error: Exception) -> QueryPosition | str:
        """Where an error of Spark is in the author's query; empty if that is unknown."""
        return "" if self.query is None else place_of(error, self.query)

    @property
    def views(self) -> set[str]:
        """The names of all created views."""
        return {*self._used.values(), *(name.strip("`") for name in self._own)}

    def _again(self, snapshot: Snapshot) -> str:
        from pyspark.sql import functions as F

        rows = self.spark.table(self.at(snapshot).strip("`"))
        return self.create_view(rows.select(*[F.col(spark_name(n)).alias(n) for n in rows.columns]))

    def with_hidden_columns(self, snapshot: Snapshot) -> str:
        """As `at`, with the hidden columns of a stream table, read through Delta."""

        def rows(spark: SparkSession) -> DataFrame:
            return at_version(spark, snapshot.table, snapshot.version)

        return self._version(snapshot, ReadMode.OWN, rows)

    def _version(self, snapshot: Snapshot, reading: ReadMode, rows: Rows) -> str:
        key = snapshot, reading
        if key not in self._used:
            self._used[key] = self._views.use(snapshot, reading, rows)
        return f"`{self._used[key]}`"

    def local(self, rows: pa.Table) -> str:
        """A name, in backticks, for local rows that statements of `sql` may read."""
        name = f"{VIEWS}{uuid.uuid4().hex}"
        self._local[name] = self.to_spark(rows), rows
        return f"`{name}`"

    def to_spark(self, rows: pa.Table) -> DataFrame:
        """Local rows in Spark, until `close`."""
        found = in_file(self.spark, rows)
        if found is None:
            return in_statement(self.spark, rows)
        handed, path = found
        self._files.append(path)
        return handed

    def rows(self, view: str) -> pa.Table | None:
        """The local rows of a name; None if its rows are not local."""
        _, rows = self._local.get(view.strip("`"), (None, None))
        return rows

    def largest(self, views: Iterable[str]) -> int | None:
        """The largest number of rows of these names; None if the rows of one are not local."""
        found = [self.rows(view) for view in views]
        counts = [rows.num_rows for rows in found if rows is not None]
        return max(counts, default=0) if len(counts) == len(found) else None

    def bounds(self, view: str, column: str) -> Bounds | None:
        """The ranges of a column's values; None if the rows are not local.

        Cached, since a plan asks for them at each join that the rows pass.
        """
        rows = self.rows(view)
        if rows is None:
            return None
        if (view, column) not in self._bounds:
            # A query may spell a column differently from the log.
            spelled = {name.lower(): name for name in rows.column_names}
            self._bounds[view, column] = bounds(rows.column(spelled[column.lower()]))
        return self._bounds[view, column]

    def sql(self, text: str, *, gathered: bool = True) -> DataFrame:
        """The rows of a query that reads relations named here.

        Args:
            text: The query.
            gathered: Whether local rows are in one partition: grouping and joining them then needs
                no expensive shuffle. A query that reads each row separately needs no partitions.
        """
        # The names are random, so no literal contains one.
        read = {name: rows for name, (rows, _) in self._local.items() if f"`{name}`" in text}
        named = {name: rows.coalesce(1) if gathered else rows for name, rows in read.items()}
        return query(self.spark, text, named)

    def materialize(
        self, rows: DataFrame, *, limit: int, most: int | None = None
    ) -> tuple[str | None, int]:
        """A name for a query's rows, computed now and only once, and their number; None if empty.

        Args:
            rows: The query.
            limit: Number of rows that may come to this process; more stay in Spark, and those
                with a VARIANT or a text that is no UTF-8.
            most: Above this, counting stops at one more.
        """
        enough = rows if most is None else rows.limit(most + 1)
        here = arrow_rows(enough.limit(limit + 1))
        if here.num_rows <= limit and _can_collect(here):
            return (self.local(here) if here.num_rows else None), here.num_rows
        kept = self.cache(enough)
        return self.create_view(kept), kept.count()

    def cache(self, rows: DataFrame) -> DataFrame:
        """A query's rows, which Spark computes once and caches until `close`."""
        self._kept.append(rows.persist())
        return self._kept[-1]

    def create_view(self, rows: DataFrame) -> str:
        """The name, in backticks, of a view of a query's rows; nothing is computed."""
        name = f"{VIEWS}{uuid.uuid4().hex}"
        rows.createOrReplaceTempView(name)
        self._own.append(name)
        return f"`{name}`"


def _can_collect(rows: pa.Table) -> bool:
    return not (rows.num_rows and has_variants(rows.schema)) and is_utf8(rows)


def _visible_columns(rows: DataFrame) -> DataFrame:
    """Without the hidden columns of a stream table."""
    return rows.select(rows.colRegex("`(?s)(?!__st_).+`"))  # a name may contain a line break
