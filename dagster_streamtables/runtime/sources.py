"""Versions of tables → the relations that a plan's SQL reads.

A source before and after is a temporary view over a DataFrame that keeps its snapshot: reading
``VERSION AS OF`` would build the old snapshot again in each statement. The version that is *after*
in this refresh is *before* in the next, so a plan's newest two of each table are kept.

A small change enters as local rows: of known size to the planner, and never computed twice.
Threads that refresh over one session meet in it: two relations of one name, or a version that
is dropped while it is read, would be wrong rows.
"""

from __future__ import annotations

import enum
import hashlib
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import Bounds, Text
from dagster_streamtables.runtime.calls import arrow_rows, query
from dagster_streamtables.runtime.capture import at_version
from dagster_streamtables.runtime.data_files import from_files
from dagster_streamtables.runtime.delta_log import Place, TableLog
from dagster_streamtables.runtime.handed import discard, in_file, in_statement
from dagster_streamtables.runtime.leftovers import VIEWS
from dagster_streamtables.runtime.quote import spark_name
from dagster_streamtables.runtime.ranges import bounds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Rows = Callable[["SparkSession"], "DataFrame"]


class Reading(enum.Enum):
    """How a version is read, and what of it."""

    SEEN = "seen"
    """By Delta: what a reader sees."""
    OWN = "own"
    """By Delta: with the columns that a stream table keeps for itself."""
    FILES = "files"
    """From its data files where they are the table, else by Delta: what a reader sees."""

    @property
    def kept(self) -> int:
        """How many versions stay when nobody reads them: Delta's are snapshots in memory."""
        return 2 if self is Reading.FILES else 0


class Views:
    """The views of versions in one Spark session, on behalf of one stream table.

    Threads may share it, and a session may be shared by the `Views` of several stream tables.
    """

    def __init__(self, spark: SparkSession, owner: str) -> None:
        self.spark = spark
        self._owner = owner
        self._versions: dict[tuple[Place, Reading], list[int]] = {}
        self._users: Counter[str] = Counter()
        self._lock = threading.Lock()

    def use(self, place: Place, version: int, reading: Reading, rows: Rows) -> str:
        """The name of a view, which stays until as many have left it as came to use it.

        Args:
            place: The table.
            version: Of the table.
            reading: How it is read.
            rows: Makes the rows, for a view that is not there yet.
        """
        view = self._name(place, version, reading)
        with self._lock:
            versions = self._versions.setdefault((place, reading), [])
            if version not in versions:
                rows(self.spark).createOrReplaceTempView(view)
                versions.append(version)
            self._users[view] += 1
        return view

    def leave(self, views: Iterable[str]) -> None:
        """Drop what nobody uses any more and no later refresh will."""
        with self._lock:
            self._users.subtract(views)
            for (place, reading), versions in self._versions.items():
                for version in versions[: max(0, len(versions) - reading.kept)]:
                    view = self._name(place, version, reading)
                    if self._users[view] <= 0:
                        del self._users[view]
                        versions.remove(version)
                        self.spark.catalog.dropTempView(view)

    def _name(self, place: Place, version: int, reading: Reading) -> str:
        about = f"{self._owner}#{place.location}#{place.id}"
        digest = hashlib.sha256(about.encode()).hexdigest()[:12]
        return f"{VIEWS}{digest}_v{version}_{reading.value}"


_opened: dict[tuple[str, SparkSession], Views] = {}
_opening = threading.Lock()


def views_of(spark: SparkSession, owner: str) -> Views:
    """The views of a stream table in a session, the same ones for all that this process runs."""
    with _opening:
        return _opened.setdefault((owner, spark), Views(spark, owner))


class Relations:
    """What one refresh or comparison reads, under names that are its own until it is closed."""

    def __init__(self, views: Views) -> None:
        self.spark = views.spark
        self._views = views
        self._used: dict[tuple[Place, int, Reading], str] = {}
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
        while self._kept:  # while the views that they read are there
            self._kept.pop().unpersist()
        while self._own:
            self.spark.catalog.dropTempView(self._own.pop())
        while self._files:
            discard(self._files.pop())
        self._views.leave(self._used.values())
        self._used.clear()
        self._local.clear()
        self._bounds.clear()

    def at(self, place: Place, version: int) -> str:
        """The name of a view of a table at a version, in backticks: what a reader of it sees."""

        def rows(spark: SparkSession) -> DataFrame:
            return _seen(at_version(spark, place, version))

        return self._version(place, version, Reading.SEEN, rows)

    def scanned(self, log: TableLog, version: int) -> str:
        """The same, read in the cheapest way; `log` is that of the table at some version."""

        def rows(spark: SparkSession) -> DataFrame:
            found = from_files(spark, log, version)
            return _seen(at_version(spark, log.place, version)) if found is None else found

        return self._version(log.place, version, Reading.FILES, rows)

    def over(self, text: Text, tables: Mapping[str, tuple[Place, int]]) -> str:
        """A user's text over versions of the tables that it names.

        A table that it mentions again is a view of its own each time. Where one view stands twice
        in a statement, Spark gives the columns of one of them other identities, and forgets those
        that USING and NATURAL JOIN hide.
        """
        times = Counter(tables[name] for name in text.mentions)
        return text.over(
            lambda name: (self.at if times[tables[name]] == 1 else self._again)(*tables[name])
        )

    def _again(self, place: Place, version: int) -> str:
        from pyspark.sql import functions as F

        rows = self.spark.table(self.at(place, version).strip("`"))
        return self.named(rows.select(*[F.col(spark_name(n)).alias(n) for n in rows.columns]))

    def stored(self, place: Place, version: int) -> str:
        """The same with the columns that a stream table keeps for itself, by Delta."""
        return self._version(
            place, version, Reading.OWN, lambda spark: at_version(spark, place, version)
        )

    def _version(self, place: Place, version: int, reading: Reading, rows: Rows) -> str:
        key = place, version, reading
        if key not in self._used:
            self._used[key] = self._views.use(place, version, reading, rows)
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

    def few(self, views: Iterable[str], most: int) -> bool:
        """Whether the rows of all these names are local ones, and no more than `most` of any."""
        found = [self.rows(view) for view in views]
        return all(rows is not None and rows.num_rows <= most for rows in found)

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
        read = {name: rows for name, (rows, _) in self._local.items() if f"`{name}`" in text}
        named = {name: rows.coalesce(1) if gathered else rows for name, rows in read.items()}
        return query(self.spark, text, named)

    def made(self, rows: DataFrame, *, limit: int) -> str | None:
        """A name for a query's rows, computed now and once; None if there are none.

        Args:
            rows: The query.
            limit: So many may come to this process; more stay in Spark.
        """
        here = arrow_rows(rows.limit(limit + 1))
        if here.num_rows <= limit:
            return self.local(here) if here.num_rows else None
        return self.named(self.kept(rows))

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
    return rows.select(rows.colRegex("`(?!__st_).+`"))


def mentions(sql: str, name: str) -> bool:
    """Whether SQL reads the relation of a name."""
    return spark_name(name) in sql


def bound(sql: str, relations: Mapping[str, str]) -> str:
    """SQL with its relation names exchanged for the views that stand for them.

    >>> bound("SELECT `id` FROM `sales.orders@after`", {"sales.orders@after": "`v7`"})
    'SELECT `id` FROM `v7`'
    """
    for name, view in relations.items():
        sql = sql.replace(spark_name(name), view)
    return sql
