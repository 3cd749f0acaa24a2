"""The history that sources of stream tables keep for the next refreshes.

A refresh reads the commits after its frontier, the rows that they changed, and often the rows
before. Delta deletes both: log entries, ``delta.logRetentionDuration`` after they were written (at
a checkpoint), and unused files, ``delta.deletedFileRetentionDuration`` after a commit removed them
(at a VACUUM). A refresh that comes too late rebuilds the table, which is correct and costs a run of
its query.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.log_cache import Logs
from dagster_streamtables.runtime.delta.names import Names
from dagster_streamtables.runtime.errors.tables import missing
from dagster_streamtables.runtime.model.state import Seen, state_of
from dagster_streamtables.runtime.observe.health import (
    SourceHealth,
    files_kept_for,
    health_of,
    out_of_use_since,
)
from dagster_streamtables.runtime.refresh.intermediate import location_of
from dagster_streamtables.runtime.storage import upkeep
from dagster_streamtables.setting import Range, checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Files are older than the commit that names them, by the duration of its job.
_MARGIN = 86400


@dataclass(frozen=True)
class Vacuumed:
    """What a vacuum did, or would do."""

    hours: int
    """Files that have been unused for longer than this are deleted."""
    held_since: float | None
    """If stream tables need more than was requested: since when, in seconds since 1970."""
    files: int
    """Number of deleted files; in a dry run, of those that would be deleted, up to 1000."""


class Retention:
    """The stream tables below one root, by their logs, and the history that they need."""

    def __init__(self, names: Names, logs: Logs, session: Callable[[str], SparkSession]) -> None:
        self._names = names
        self._logs = logs
        self._session = session

    def stream_tables(self) -> list[str]:
        """Their names, sorted, without those of other roots that read a source by path.

        Includes tables that cannot be read, since they may be stream tables.
        """
        found = self._names.tables(self._logs.storage_options)
        return sorted(name for name in found if self._may_be_one(name))

    def _may_be_one(self, name: str) -> bool:
        try:
            return self._log_of(name) is not None
        except DamagedTable:
            return True

    def of(self, table: str) -> list[SourceHealth]:
        """The sources of a stream table, sorted by name; none before its first refresh."""
        return [self._health(table, name, seen) for name, seen in self._seen(table).items()]

    def sources(self, table: str) -> tuple[str, ...]:
        """The sources that a stream table read last, by the names in its query."""
        return tuple(self._seen(table))

    @checked
    def vacuum(
        self, name: str, *, keep: Annotated[timedelta, Range(0)] | None = None, dry: bool = False
    ) -> Vacuumed:
        """Delete the unused files of a table that no stream table needs. For a stream table, also
        those of its intermediate tables.

        Args:
            name: A source or a stream table.
            keep: How long unused files are kept; None for the table's own setting.
            dry: Delete nothing; return what would be deleted.

        Raises:
            MissingSource: There is no such table.
        """
        log = self._newest(name)
        done = self._vacuumed(name, log, self.needed_since(name), keep, dry)
        below = [
            self._vacuumed(name, each, since, keep, dry)
            for each, since in self._intermediates(name, log)
        ]
        return replace(done, files=done.files + sum(each.files for each in below))

    def _vacuumed(
        self, name: str, log: TableLog, since: float | None, keep: timedelta | None, dry: bool
    ) -> Vacuumed:
        wanted = files_kept_for(log) if keep is None else keep.total_seconds()
        needed = 0.0 if since is None else time.time() - since + _MARGIN
        hours = math.ceil(max(wanted, needed) / 3600)
        paths = upkeep.vacuum(self._session(name), log, hours=hours, dry=dry)
        return Vacuumed(
            hours=hours,
            held_since=since if needed > wanted else None,
            files=len(paths) if dry else upkeep.deleted_files(self._again(log)),
        )

    def _intermediates(self, name: str, log: TableLog) -> Iterator[tuple[TableLog, float | None]]:
        """The intermediate tables of a stream table, and since when it needs their old files."""
        state = state_of(name, log)
        for each, kept in (state.intermediates if state is not None else {}).items():
            below = self._logs.newest(location_of(log.location, each))
            if below is not None and below.id == kept.id:
                yield below, out_of_use_since(below, kept.version, below.version)

    def _again(self, log: TableLog) -> TableLog:
        return self._logs.newest(log.location) or log

    def needed_since(self, source: str) -> float | None:
        """Since when, in seconds since 1970, stream tables need files that a source has removed.

        None if no stream table reflects a version with a removed file.
        """
        log = self._newest(source)
        found = (
            self._health(table, name, seen)
            for table in self.stream_tables()
            for name, seen in self._seen(table).items()
            if self._names.location(name) == log.location
        )
        times = [
            out_of_use_since(log, health.frontier, log.version)
            for health in found
            if not health.lost
        ]
        return min((time_ for time_ in times if time_ is not None), default=None)

    def _newest(self, name: str) -> TableLog:
        log = self._logs.newest(self._names.location(name))
        if log is None:
            raise missing(name, self._names.location(name))
        return log

    def _log_of(self, name: str) -> TableLog | None:
        log = self._logs.newest(self._names.location(name))
        return log if log is not None and state_of(name, log) is not None else None

    def _seen(self, table: str) -> Mapping[str, Seen]:
        log = self._log_of(table)
        state = None if log is None else state_of(table, log)
        return {} if state is None else state.sources

    def _health(self, table: str, name: str, seen: Seen) -> SourceHealth:
        log = self._logs.newest(self._names.location(name))
        return health_of(table, name, seen, log)
