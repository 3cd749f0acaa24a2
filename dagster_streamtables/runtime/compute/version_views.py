"""Temporary views of versions of tables, in one Spark session for one stream table.

Reading ``VERSION AS OF`` would rebuild the old snapshot in each statement; a view keeps it. The
version *after* of this refresh is *before* in the next, so the newest two are kept.
"""

from __future__ import annotations

import enum
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableIdentity
from dagster_streamtables.runtime.delta.types import digest
from dagster_streamtables.runtime.spark.session_cleanup import VIEWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = Callable[["SparkSession"], "DataFrame"]


class ReadMode(enum.Enum):
    """How a version is read, and which columns."""

    SEEN = "seen"
    """Through Delta: the visible columns."""
    OWN = "own"
    """Through Delta: all columns, including the hidden ones of a stream table."""
    FILES = "files"
    """From the data files if they suffice, otherwise through Delta: the visible columns."""

    @property
    def spare_versions(self) -> int:
        """Number of unused versions to keep: those of Delta are snapshots in memory."""
        return 2 if self is ReadMode.FILES else 0


class Views:
    """The views of versions in one Spark session, for one stream table.

    Threads may share it, and a session may be shared by the `Views` of several stream tables.
    """

    def __init__(self, spark: SparkSession, owner: str) -> None:
        self.spark = spark
        self._owner = owner
        self._kept: dict[tuple[TableIdentity, ReadMode], list[Snapshot]] = {}
        self._users: Counter[str] = Counter()
        self._lock = threading.Lock()

    def use(self, snapshot: Snapshot, reading: ReadMode, rows: Rows) -> str:
        """The name of a view, which exists until each `use` was followed by a `leave`.

        Args:
            snapshot: The version to read.
            reading: How to read it.
            rows: Creates the rows, if the view does not exist yet.
        """
        view = self._name(snapshot, reading)
        with self._lock:
            kept = self._kept.setdefault((snapshot.table, reading), [])
            if snapshot not in kept:
                rows(self.spark).createOrReplaceTempView(view)
                kept.append(snapshot)
            self._users[view] += 1
        return view

    def leave(self, views: Iterable[str]) -> None:
        """Release views, and drop those that are unused and no later refresh will need."""
        with self._lock:
            self._users.subtract(views)
            for (_, reading), kept in self._kept.items():
                for snapshot in kept[: max(0, len(kept) - reading.spare_versions)]:
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


_opened: dict[tuple[str, SparkSession], Views] = {}
_opening = threading.Lock()


def views_of(spark: SparkSession, owner: str) -> Views:
    """The views of a stream table in a session, shared by everything that this process runs."""
    with _opening:
        return _opened.setdefault((owner, spark), Views(spark, owner))
