"""Versions of tables → the relations that a plan's SQL reads.

A source before and after is a view of its version; see `version_views`. A small change enters as
local rows: of known size to the planner, and never computed twice.
Threads that refresh over one session meet in it: two relations of one name, or a version that
is dropped while it is read, would be wrong rows.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import Bounds, Text, at_time
from dagster_streamtables.runtime.compute.capture import at_version
from dagster_streamtables.runtime.compute.local_rows import discard, in_file, in_statement
from dagster_streamtables.runtime.compute.version_views import Reading, Rows, Views
from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableLog
from dagster_streamtables.runtime.delta.key_ranges import bounds
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.errors.tables import lost_version
from dagster_streamtables.runtime.spark.connect import arrow_rows, query
from dagster_streamtables.runtime.spark.data_files import from_files
from dagster_streamtables.runtime.spark.session_cleanup import VIEWS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class Relations:
    """What one refresh or comparison reads, under names that are its own until it is closed."""

    def __init__(self, views: Views) -> None:
        self.spark = views.spark
        self._views = views
        self._used: dict[tuple[Snapshot, Reading], str] = {}
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
        """Drop the rows that were named; let the views of versions go."""
        while self._files:
            discard(self._files.pop())
        while self._kept:  # while the views that they read are there
            self._kept.pop().unpersist()
        while self._own:
            self.spark.catalog.dropTempView(self._own.pop())
        self._views.leave(self._used.values())
        self._used.clear()
        self._local.clear()
        self._bounds.clear()

    def at(self, snapshot: Snapshot) -> str:
        """The name of a view of a table at a version, in backticks: what a reader of it sees."""

        def rows(spark: SparkSession) -> DataFrame:
            return _seen(at_version(spark, snapshot.table, snapshot.version))

        return self._version(snapshot, Reading.SEEN, rows)

    def scanned(self, log: TableLog, version: int) -> str:
        """The same, read in the cheapest way.

        Args:
            log: Of the table, at that version or a later one.
            version: The version that is read.

        Raises:
            LostHistory: It is no longer there.
        """
        snapshot = log.snapshot_at(version)
        if snapshot is None:
            raise lost_version(log.location, version)

        def rows(spark: SparkSession) -> DataFrame:
            found = from_files(spark, log, version)
            return _seen(at_version(spark, snapshot.table, version)) if found is None else found

        return self._version(snapshot, Reading.FILES, rows)

    def over(self, text: Text, tables: Mapping[str, Snapshot], now: str) -> str:
        """A user's text over versions of the tables that it names, at a time.

        A table that it mentions again is a view of its own each time. Where one view stands twice
        in a statement, Spark gives the columns of one of them other identities, and forgets those
        that USING and NATURAL JOIN hide.
        """
        times = Counter(tables[name] for name in text.mentions)
        return text.over(
            lambda name: (self.at if times[tables[name]] == 1 else self._again)(tables[name]),
            more=at_time(text, now),
        )

    @property
    def views(self) -> set[str]:
        """The names of all views that were made."""
        return {*self._used.values(), *(name.strip("`") for name in self._own)}

    def _again(self, snapshot: Snapshot) -> str:
        from pyspark.sql import functions as F

        rows = self.spark.table(self.at(snapshot).strip("`"))
        return self.named(rows.select(*[F.col(spark_name(n)).alias(n) for n in rows.columns]))

    def stored(self, snapshot: Snapshot) -> str:
        """The same with the columns that a stream table keeps for itself, by Delta."""

        def rows(spark: SparkSession) -> DataFrame:
            return at_version(spark, snapshot.table, snapshot.version)

        return self._version(snapshot, Reading.OWN, rows)

    def _version(self, snapshot: Snapshot, reading: Reading, rows: Rows) -> str:
        key = snapshot, reading
        if key not in self._used:
            self._used[key] = self._views.use(snapshot, reading, rows)
        return f"`{self._used[key]}`"

    def local(self, rows: pa.Table) -> str:
        """A name for local rows, in backticks, which statements by `sql` may read."""
        name = f"{VIEWS}{uuid.uuid4().hex}"
        self._local[name] = self.handed(rows), rows
        return f"`{name}`"

    def handed(self, rows: pa.Table) -> DataFrame:
        """Local rows in Spark, until this is closed."""
        found = in_file(self.spark, rows)
        if found is None:
            return in_statement(self.spark, rows)
        handed, path = found
        self._files.append(path)
        return handed

    def rows(self, view: str) -> pa.Table | None:
        """The local rows of a name; None if its rows are not local ones."""
        _, rows = self._local.get(view.strip("`"), (None, None))
        return rows

    def largest(self, views: Iterable[str]) -> int | None:
        """The most rows that any of these names has; None where the rows of one are not local."""
        found = [self.rows(view) for view in views]
        counts = [rows.num_rows for rows in found if rows is not None]
        return max(counts, default=0) if len(counts) == len(found) else None

    def bounds(self, view: str, column: str) -> Bounds | None:
        """Where the values of a column lie; None if the rows are not local ones.

        A plan asks at each join through which they come, and is told what was found at the first.
        """
        rows = self.rows(view)
        if rows is None:
            return None
        if (view, column) not in self._bounds:
            # A query may spell a column otherwise than the log.
            spelled = {name.lower(): name for name in rows.column_names}
            self._bounds[view, column] = bounds(rows.column(spelled[column.lower()]))
        return self._bounds[view, column]

    def sql(self, text: str, *, gathered: bool = True) -> DataFrame:
        """The rows of a query that reads what was named here.

        Args:
            text: The query.
            gathered: Local rows are in one partition: what is grouped or joined then needs no
                shuffle, and a shuffle is what costs. A query that looks at each row by itself
                needs no partitions at all.
        """
        # Names that were drawn by lot here: no literal holds one.
        read = {name: rows for name, (rows, _) in self._local.items() if f"`{name}`" in text}
        named = {name: rows.coalesce(1) if gathered else rows for name, rows in read.items()}
        return query(self.spark, text, named)

    def made(
        self, rows: DataFrame, *, limit: int, most: int | None = None
    ) -> tuple[str | None, int]:
        """A name for a query's rows, computed now and once, and their number; None for no rows.

        Args:
            rows: The query.
            limit: So many may come to this process; more stay in Spark.
            most: Where there are more, one more than so many is enough to tell.
        """
        enough = rows if most is None else rows.limit(most + 1)
        here = arrow_rows(enough.limit(limit + 1))
        if here.num_rows <= limit:
            return (self.local(here) if here.num_rows else None), here.num_rows
        kept = self.kept(enough)
        return self.named(kept), kept.count()

    def kept(self, rows: DataFrame) -> DataFrame:
        """A query's rows, which Spark computes once and holds until this is closed."""
        self._kept.append(rows.persist())
        return self._kept[-1]

    def named(self, rows: DataFrame) -> str:
        """The name of a view of a query's rows, in backticks; nothing is computed."""
        name = f"{VIEWS}{uuid.uuid4().hex}"
        rows.createOrReplaceTempView(name)
        self._own.append(name)
        return f"`{name}`"


def _seen(rows: DataFrame) -> DataFrame:
    """Without the columns that a stream table keeps for itself."""
    return rows.select(rows.colRegex("`(?s)(?!__st_).+`"))  # a name may hold a line break
