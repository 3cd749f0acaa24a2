"""A frontier: the sources of a relation, each at one version."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from dagster_streamtables.errors import HistoryUnavailable, LostRelation
from dagster_streamtables.runtime.delta.actions import committed_at, info_of
from dagster_streamtables.runtime.delta.data_files import missing_files
from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableLog
from dagster_streamtables.runtime.delta.source_change import change_between
from dagster_streamtables.runtime.model.table_catalog import TableCatalog

Frontier = Mapping[str, TableLog]
"""Source, by its name in the query → its log at the version that is read."""


def newest(catalog: TableCatalog, names: Iterable[str]) -> dict[str, TableLog]:
    """The sources as they are now.

    Raises:
        MissingSource: One does not exist.
    """
    return {name: catalog.existing(name) for name in names}


def at_version(name: str, now: TableLog, version: int) -> TableLog:
    """A source at a version that is not newer than `now`.

    Raises:
        HistoryUnavailable: The log no longer has it.
    """
    log = now if version == now.version else now.at(version)
    if log is None:
        raise unavailable(name, now, version, "the log was cleaned up")
    return log


def version_until(now: TableLog, time: float) -> int:
    """The newest version that was committed until a time, in seconds since 1970; -1 for none.

    As Delta's time travel does, it stops at the first version that is not later.
    """
    for version, commit in now.commits_back():
        committed = committed_at(info_of(commit))
        if committed is None:
            break
        if committed <= time:
            return version
    return -1


def require_same_table(name: str, now: TableLog | None, then: TableLog) -> TableLog:
    """
    Raises:
        LostRelation: A source was dropped, and perhaps created again.
    """
    if now is None or now.id != then.id:
        raise _missing_table(name, now, then.location)
    return now


def require_same_history(name: str, now: TableLog | None, then: Snapshot) -> TableLog:
    """Check that a source still has the version that was read last.

    Raises:
        LostRelation: It was dropped, and perhaps created again.
        HistoryUnavailable: It was restored from a copy, or put back, and has another history now.
    """
    if now is None or now.id != then.table.id:
        raise _missing_table(name, now, then.table.location)
    if not now.has(then):
        if now.commit_at(then.version) is None and now.version > then.version:
            raise unavailable(name, now, then.version, "the log was cleaned up")
        raise unavailable(name, now, then.version, "its files were put back from a copy")
    return now


def _missing_table(name: str, now: TableLog | None, location: str) -> LostRelation:
    again = "" if now is None else ", and another table was created in its place"
    return LostRelation(
        f'"{name}" was dropped{again}',
        where=location,
        why="the followed table no longer exists",
        fix="follow the new table from its beginning, with a snapshot",
    )


def unavailable(name: str, now: TableLog, version: int, cause: str) -> HistoryUnavailable:
    oldest = earliest(now)
    return HistoryUnavailable(
        f'version {version} of "{name}" is no longer available: {cause}',
        where=now.location,
        why=f"versions {oldest} to {now.version} can be read",
        fix="follow it from a newer version, with a snapshot; a slot keeps the history that it "
        "needs, as far as vacuums go through streamtables",
    )


def newest_commit(before: Frontier, after: Frontier) -> float | None:
    """When the last of the commits between two frontiers was made, in seconds since 1970."""
    moved = (log for name, log in after.items() if log.version != before[name].version)
    times = [time for log in moved if (time := log.committed_at) is not None]
    return max(times, default=None)


def newest_change(at: Frontier) -> float | None:
    """When the last commit was made that changed rows of a source, in seconds since 1970; None if a
    log does not tell."""
    times = [log.changed_at for log in at.values()]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def earliest(now: TableLog) -> int:
    """The oldest version whose rows and changes can still be read."""
    return bisect_left(range(now.version), True, key=lambda version: is_readable(now, version))


def is_readable(now: TableLog, version: int) -> bool:
    """Whether the log can rebuild a version, and all its files are still there."""
    if version == now.version:
        return True
    if now.at(version) is None:
        return False
    change = change_between(now, version)
    if change.lost:
        return False
    return not missing_files(now, change.without_feed.removed)
