"""What the sources of stream tables still keep of the history that the next refreshes need.

A refresh reads the commits after its frontier, the rows that they changed, and often the rows of
before. Delta lets two things go: the entries of the log, ``delta.logRetentionDuration`` after they
were written (at a checkpoint), and the files that a commit put out of use,
``delta.deletedFileRetentionDuration`` after that (at a VACUUM). A stream table that comes too late
is built anew, which is right, and costs a run of its query.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.runtime import upkeep
from dagster_streamtables.runtime.delta_log import Logs, TableLog
from dagster_streamtables.runtime.intermediate import location_of
from dagster_streamtables.runtime.missing import missing
from dagster_streamtables.runtime.names import Names
from dagster_streamtables.runtime.state import Seen, state_of
from dagster_streamtables.runtime.window import SourceChange, change_between

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILES = "delta.deletedFileRetentionDuration", "interval 1 week"
_LOG = "delta.logRetentionDuration", "interval 30 days"
_UNITS = {
    "week": 7 * 86400, "day": 86400, "hour": 3600, "minute": 60, "second": 1,
    "millisecond": 1e-3, "microsecond": 1e-6,
}  # fmt: skip
_PART = re.compile(rf"(\d+)\s*({'|'.join(_UNITS)})s?\b", re.IGNORECASE)
# Files are older than the commit that names them, by as long as its job ran.
_MARGIN = 86400
_LOOKED_FOR = 100  # files of before; asking for each of a million would take minutes


@dataclass(frozen=True)
class SourceHealth:
    """One source of one stream table: how far the table is behind, and how long it may be."""

    table: str
    source: str
    frontier: int
    """The version of the source that the stream table reflects."""
    newest: int
    bytes_behind: int | None
    """Of the files that came after the frontier; None where the log no longer tells."""
    capture: str
    """How the window would be read now; see `window`."""
    seconds_left: float | None
    """Until what the next refresh needs may go; below 0, it may go any time; None: nothing is."""
    lost: str
    """Why the next refresh must build the table anew; empty where it need not."""
    behind_since: float | None = None
    """When the first version was committed whose rows the table does not reflect, in seconds since
    1970; None where it reflects all."""

    @property
    def versions_behind(self) -> int:
        return self.newest - self.frontier

    def warning(self, before: timedelta) -> str:
        """What to tell about history that is gone, or may be so long before; empty for nothing."""
        if self.lost:
            return f'"{self.source}": {self.lost}, so the next refresh builds the table anew'
        if self.seconds_left is None or self.seconds_left >= before.total_seconds():
            return ""
        hours = max(0.0, self.seconds_left / 3600)
        return (
            f'"{self.source}" need not keep version {self.frontier} for more than {hours:.0f} '
            "hours; refresh the table before that"
        )


@dataclass(frozen=True)
class Vacuumed:
    """What a vacuum did, or would do."""

    hours: int
    """Files that went out of use longer ago than this are deleted."""
    held_since: float | None
    """Where stream tables hold more than was asked for: since when, in seconds since 1970."""
    files: int
    """Deleted; of a dry run, those that would be, up to 1000."""


class Retention:
    """The stream tables below one root, known by their logs, and the history that they need."""

    def __init__(self, names: Names, logs: Logs, session: Callable[[str], SparkSession]) -> None:
        self._names = names
        self._logs = logs
        self._session = session

    def stream_tables(self, *, damaged: bool = True) -> list[str]:
        """Their names, sorted. Those of another root that read a source by path are not seen.

        Args:
            damaged: Raise where a table cannot be read, which may be one; else leave it out.

        Raises:
            DamagedTable: A table below the root cannot be read.
        """
        found = self._names.tables(self._logs.storage_options)
        return sorted(name for name in found if self._is_stream_table(name, damaged))

    def _is_stream_table(self, name: str, damaged: bool) -> bool:
        try:
            return self._log_of(name) is not None
        except DamagedTable:
            if damaged:
                raise
            return False

    def of(self, table: str) -> list[SourceHealth]:
        """The sources of a stream table, sorted by name; none before its first refresh."""
        return [self._health(table, name, seen) for name, seen in self._seen(table).items()]

    def sources(self, table: str) -> tuple[str, ...]:
        """What a stream table read last, by the names in its query."""
        return tuple(self._seen(table))

    def vacuum(self, name: str, *, keep: timedelta | None = None, dry: bool = False) -> Vacuumed:
        """Delete the files of a table that are out of use, but none that a stream table needs; of
        a stream table, those of its intermediate tables, too.

        Args:
            name: A source or a stream table.
            keep: How long files stay that are out of use; None for the table's own setting.
            dry: Delete nothing; say what would be deleted.

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
        wanted = _seconds(log, *_FILES) if keep is None else keep.total_seconds()
        needed = 0.0 if since is None else time.time() - since + _MARGIN
        hours = math.ceil(max(wanted, needed) / 3600)
        paths = upkeep.vacuum(self._session(name), log, hours=hours, dry=dry)
        return Vacuumed(
            hours=hours,
            held_since=since if needed > wanted else None,
            files=len(paths) if dry else upkeep.deleted_files(self._again(log)),
        )

    def _intermediates(self, name: str, log: TableLog) -> Iterator[tuple[TableLog, float | None]]:
        """The intermediate tables of a stream table, and since when it needs what they were."""
        state = state_of(name, log)
        for each, kept in (state.intermediates if state is not None else {}).items():
            below = self._logs.newest(location_of(log.location, each))
            if below is not None and below.id == kept.id:
                yield below, _out_of_use_since(below, kept.version, below.version)

    def _again(self, log: TableLog) -> TableLog:
        return self._logs.newest(log.location) or log

    def needed_since(self, source: str) -> float | None:
        """Since when, in seconds since 1970, some stream table needs what a source put out of use.

        None where no stream table reflects a version of which a file went out of use.
        """
        log = self._newest(source)
        found = (
            self._health(table, name, seen)
            for table in self.stream_tables()
            for name, seen in self._seen(table).items()
            if self._names.location(name) == log.location
        )
        times = [
            _out_of_use_since(log, health.frontier, health.newest)
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
        if log is None:
            gone = f'there is no table "{name}"'
            return SourceHealth(table, name, seen.version, seen.version, None, "", None, gone)
        change = change_between(log, seen.version)
        return SourceHealth(
            table=table,
            source=name,
            frontier=seen.version,
            newest=log.version,
            bytes_behind=_bytes(log, change),
            capture=change.capture,
            seconds_left=_seconds_left(log, change),
            lost=_lost(log, change, seen),
            behind_since=_behind_since(log, change, seen),
        )


def _behind_since(log: TableLog, change: SourceChange, seen: Seen) -> float | None:
    same = seen.id == log.id
    if same and not change.moved:
        return None
    # A table that was put in the place of a longer one of its id: nothing in it is newer.
    begin = -1 if not same else min(change.before, change.after)
    for version, commit in log.commits(begin, change.after):
        if any(_has_rows(action) for action in commit or ()):
            return log.time_of(version)
    return log.committed_at


def _has_rows(action: Mapping[str, Any]) -> bool:
    """Whether rows came or went with an action of a commit."""
    add, remove = action.get("add"), action.get("remove")
    if add is not None:
        return add.get("dataChange", True) and _rows(add) != 0
    return "cdc" in action or (remove is not None and remove.get("dataChange", True))


def _rows(add: Mapping[str, Any]) -> int | None:
    return json.loads(add.get("stats") or "{}").get("numRecords")


def _seconds_left(log: TableLog, change: SourceChange) -> float | None:
    if change.before >= change.after:
        return None
    at, since = log.time_of(change.before), _out_of_use_since(log, change.before, change.after)
    ends = [at + _seconds(log, *_LOG)] if at is not None else []
    ends += [since + _seconds(log, *_FILES)] if since is not None else []
    return min(ends) - time.time() if ends else None


def _out_of_use_since(log: TableLog, before: int, after: int) -> float | None:
    """When the first of the files that a window needs went out of use, or was made for the feed."""
    for version, commit in log.commits(before, after):
        if any("remove" in action or "cdc" in action for action in commit or ()):
            return log.time_of(version)
    return None


def _seconds(log: TableLog, setting: str, default: str) -> float:
    """A setting that is an interval, in seconds.

    Delta takes what Spark takes for an interval, but for months and years.
    """
    parts = _PART.findall(log.settings.get(setting, default)) or _PART.findall(default)
    return sum(int(number) * _UNITS[unit.lower()] for number, unit in parts)


def _lost(log: TableLog, change: SourceChange, seen: Seen) -> str:
    if seen.id != log.id:
        return "it was dropped and created again"
    if change.before > change.after:
        return f"it is at version {change.after}, before the {change.before} read last"
    if change.lost:
        return "the log no longer has all commits of the window"
    if not change.moved:
        return ""
    removed = (file.path for file in change.without_feed.removed[:_LOOKED_FOR])
    paths = [path for path in removed if "://" not in path]
    gone = [info.path for info in log.files.get_file_info(paths) if info.type.name == "NotFound"]
    return f"{len(gone)} files of version {change.before} are gone" if gone else ""


def _bytes(log: TableLog, change: SourceChange) -> int | None:
    if change.lost:
        return None
    return sum(
        action["add"]["size"]
        for _, commit in log.commits(change.before, change.after)
        for action in commit or ()
        if action.get("add", {}).get("dataChange")
    )
