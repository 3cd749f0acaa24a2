"""The relations that a plan's SQL reads: views of versions of tables, and local rows.

`Views`: a source before and after is a temporary view of its version. Reading ``VERSION AS OF``
would rebuild the old snapshot in each statement; a view keeps it. The version *after* of this
refresh is *before* in the next, so the newest two are kept.

A small change enters as local rows, which are never computed twice. `in_statement` sends them along
with a statement: the planner knows their exact size, and itself evaluates projections and filters.
But Spark converts them row by row wherever they are read: grouping 170,000 rows takes 0.9 s this
way, and 0.25 s from a file (`RowFiles`), including writing it.

`Relations`: both, under names unique to one refresh or comparison. Threads may share a session: two
relations of one name, or a version that is dropped while it is read, would give wrong rows.
"""

from __future__ import annotations

import enum
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import Bounds, Text, at_time
from dagster_streamtables.errors import QueryPosition
from dagster_streamtables.runtime.compute.change_reader import at_version
from dagster_streamtables.runtime.compute.row_files import RowFile, RowFiles
from dagster_streamtables.runtime.delta.arrow import has_variant_columns, pa
from dagster_streamtables.runtime.delta.data_files import is_utf8
from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableIdentity, TableLog
from dagster_streamtables.runtime.delta.key_lookup import bounds
from dagster_streamtables.runtime.delta.table_schema import digest, spark_name
from dagster_streamtables.runtime.errors.spark_errors import place_of
from dagster_streamtables.runtime.errors.table_errors import lost_version
from dagster_streamtables.runtime.spark.connect import arrow_rows, query
from dagster_streamtables.runtime.spark.parquet_scan import from_files
from dagster_streamtables.runtime.spark.session import VIEWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ReadMode(enum.Enum):
    """How a version is read, and which columns."""

    SEEN = "seen"
    """Through Delta: the visible columns."""
    OWN = "own"
    """Through Delta: all columns, including the hidden ones of a stream table."""
    FILES = "files"
    """From the data files if they suffice, otherwise through Delta: the visible columns."""


class Views:
    """The views of versions in one Spark session, for one stream table.

    Threads may share it, and a session may be shared by the `Views` of several stream tables.
    """

    def __init__(self, spark: SparkSession, owner: str, files: RowFiles) -> None:
        self.spark = spark
        self.files = files
        self._owner = owner
        self._kept: dict[tuple[TableIdentity, ReadMode], list[Snapshot]] = {}
        self._users: Counter[str] = Counter()
        self._lock = threading.Lock()

    def use(self, snapshot: Snapshot, reading: ReadMode, rows: Callable[[], DataFrame]) -> str:
        """The name of a view, which exists until each `use` was followed by a `leave`.

        `rows` returns the rows if the view does not exist yet.
        """
        view = self._name(snapshot, reading)
        with self._lock:
            kept = self._kept.setdefault((snapshot.table, reading), [])
            if snapshot not in kept:
                rows().createOrReplaceTempView(view)
                kept.append(snapshot)
            self._users[view] += 1
        return view

    def leave(self, views: Iterable[str]) -> None:
        """Release views, and drop those that are unused and no later refresh will need."""
        with self._lock:
            self._users.subtract(views)
            for (_, reading), kept in self._kept.items():
                # Unused versions that are read through Delta are snapshots in memory.
                spare = 2 if reading is ReadMode.FILES else 0
                for snapshot in kept[: max(0, len(kept) - spare)]:
                    view = self._name(snapshot, reading)
                    if self._users[view] <= 0:
                        del self._users[view]
                        kept.remove(snapshot)
                        self.spark.catalog.dropTempView(view)

    def _name(self, snapshot: Snapshot, reading: ReadMode) -> str:
        table = snapshot.table
        about = f"{self._owner}#{table.location}#{table.id}#{snapshot.commit}"
        named = digest(about.encode())[:12]
        return f"{VIEWS}{named}_v{snapshot.version}_{reading.value}"


_opening = threading.Lock()


def views_of(spark: SparkSession, owner: str, files: RowFiles) -> Views:
    """The views of a stream table in a session, shared by this process.

    They refer to the session, so only an attribute of the session itself lets both be freed.
    """
    with _opening:
        opened = vars(spark).setdefault("_streamtables_views", {})
        views = opened.setdefault(owner, Views(spark, owner, files))
        views.files = files  # whose credentials may be newer
        return views


def in_statement(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows as a local relation.

    A timestamp without a zone stays one. Without a schema Spark makes it an instant of the
    session's zone, where 02:30 may not exist, and an hour later is an hour of the clock.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(rows.schema)
    if rows.num_rows:
        return spark.createDataFrame(rows, schema)
    # Spark reads no column types from a table without rows.
    nulls = pa.table([pa.nulls(1, each) for each in rows.schema.types], rows.schema.names)
    return spark.createDataFrame(nulls, schema).where("false")


class Relations:
    """The relations of one refresh or comparison, under unique names until it is closed."""

    def __init__(self, views: Views) -> None:
        self.spark = views.spark
        self.compiled = False
        """Whether every statement over them must be compiled."""
        self.query: Text | None = None
        """The author's query as Spark runs it."""
        self._views = views
        self._used: dict[tuple[Snapshot, ReadMode], str] = {}
        self._local: dict[str, tuple[DataFrame, pa.Table]] = {}
        self._bounds: dict[tuple[str, str], Bounds | None] = {}
        self._own: list[str] = []
        self._kept: list[DataFrame] = []
        self._files: list[RowFile] = []

    def close(self) -> None:
        """Drop the named rows, and release the views of versions."""
        while self._files:
            self._files.pop().delete()
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
        return self._version(
            snapshot, ReadMode.SEEN, lambda: _visible_columns(self._at_version(snapshot))
        )

    def scan(self, log: TableLog, version: int) -> str:
        """As `at`, read in the cheapest way; `log` is at that version or a later one.

        Raises:
            LostHistory: The version no longer exists.
        """
        snapshot = log.snapshot_at(version)
        if snapshot is None:
            raise lost_version(log.location, version)

        def rows() -> DataFrame:
            found = from_files(self.spark, log, version)
            return _visible_columns(self._at_version(snapshot)) if found is None else found

        return self._version(snapshot, ReadMode.FILES, rows)

    def over(self, text: Text, tables: Mapping[str, Snapshot], now: str) -> Text:
        """A user's query over versions of its tables, at a time.

        A table that occurs twice becomes two views: of one view, Spark would renumber the columns,
        and lose those that USING and NATURAL JOIN hide.
        """
        times = Counter(tables[name] for name in text.mentions)
        return text.over(
            lambda name: (self.at if times[tables[name]] == 1 else self._again)(tables[name]),
            more=at_time(text, now),
        )

    def place_of(self, error: Exception) -> QueryPosition | str:
        """The position of an error of Spark in the author's query; empty if unknown."""
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
        return self._version(snapshot, ReadMode.OWN, lambda: self._at_version(snapshot))

    def _version(self, snapshot: Snapshot, reading: ReadMode, rows: Callable[[], DataFrame]) -> str:
        key = snapshot, reading
        if key not in self._used:
            self._used[key] = self._views.use(snapshot, reading, rows)
        return f"`{self._used[key]}`"

    def _at_version(self, snapshot: Snapshot) -> DataFrame:
        return at_version(self.spark, snapshot.table, snapshot.version)

    def local(self, rows: pa.Table) -> str:
        """A name, in backticks, for local rows that statements of `sql` may read."""
        name = f"{VIEWS}{uuid.uuid4().hex}"
        self._local[name] = self.to_spark(rows), rows
        return f"`{name}`"

    def to_spark(self, rows: pa.Table) -> DataFrame:
        """Local rows in Spark, until `close`."""
        file = self._views.files.write(self.spark, rows)
        if file is None:
            return in_statement(self.spark, rows)
        self._files.append(file)
        return file.rows

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
        """The ranges of a column's values; None if the rows are not local. A plan requests them at
        each join that the rows pass."""
        rows = self.rows(view)
        if rows is None:
            return None
        if (view, column) not in self._bounds:
            # A query may spell a column differently from the log.
            spelled = {name.lower(): name for name in rows.column_names}
            self._bounds[view, column] = bounds(rows.column(spelled[column.lower()]))
        return self._bounds[view, column]

    def sql(self, text: str, *, gathered: bool = True) -> DataFrame:
        """The rows of a query that reads relations named here. `gathered`: local rows are in one
        partition, so that grouping and joining them needs no shuffle."""
        # The names are random, so no literal contains one.
        read = {name: rows for name, (rows, _) in self._local.items() if f"`{name}`" in text}
        named = {name: rows.coalesce(1) if gathered else rows for name, rows in read.items()}
        return query(self.spark, text, named)

    def materialize(
        self, rows: DataFrame, *, limit: int, most: int | None = None
    ) -> tuple[str | None, int]:
        """A name for a query's rows, computed once and now, and their number; None if empty.

        At most `limit` rows come to this process. More stay in Spark, as do rows with a VARIANT or
        a text that is not UTF-8. Counting stops at one more than `most`.
        """
        enough = rows if most is None else rows.limit(most + 1)
        here = arrow_rows(enough.limit(limit + 1))
        if not here.num_rows:
            return None, 0
        if here.num_rows <= limit and not has_variant_columns(here.schema) and is_utf8(here):
            return self.local(here), here.num_rows
        kept = self.cache(enough)
        return self.create_view(kept), kept.count()

    def cache(self, rows: DataFrame) -> DataFrame:
        """A query's rows, which Spark computes once and keeps until `close`."""
        self._kept.append(rows.persist())
        return self._kept[-1]

    def create_view(self, rows: DataFrame) -> str:
        """The name, in backticks, of a view of a query's rows; nothing is computed."""
        name = f"{VIEWS}{uuid.uuid4().hex}"
        rows.createOrReplaceTempView(name)
        self._own.append(name)
        return f"`{name}`"


@dataclass(frozen=True)
class OutputRows:
    """The rows to write."""

    local: pa.Table | None
    """The rows, if they came to this process."""
    in_spark: Callable[[], DataFrame]
    """The same rows in Spark, called only if Spark writes them."""


def _visible_columns(rows: DataFrame) -> DataFrame:
    """Without the hidden columns of a stream table."""
    return rows.select(rows.colRegex("`(?s)(?!__st_).+`"))  # a name may contain a line break
