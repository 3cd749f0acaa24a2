"""`Summary`: several refreshes of one table, or of one replication, told as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh, TableRefresh
from dagster_streamtables.runtime.model.report import Action, Refresh, Window

_VERSIONS = 200
_IDLE = (Action.NO_DATA, Action.SKIP)


@dataclass(frozen=True)
class Summary:
    """What happened to a table since the last report of it."""

    refresh: Refresh
    """The last refresh that did anything, with all windows joined and all rows added up."""
    until: Mapping[str, datetime]
    """Until when the last refresh read its sources."""
    count: int = 1
    """Number of refreshes."""
    rebuilt: str = ""
    """Why one of them made the table anew; empty if none did, or if it was the first of all."""

    @classmethod
    def of(cls, refresh: Refresh, until: Mapping[str, datetime]) -> Summary:
        """One refresh."""
        anew = refresh.action is Action.REINITIALIZE and refresh.version != 0
        return cls(refresh, until, rebuilt=refresh.reason if anew else "")

    def then(self, later: Summary) -> Summary:
        """This, and what happened after it."""
        one, two = self.refresh, later.refresh
        if two.action is Action.SKIP and one.action is not Action.SKIP:
            return replace(self, count=self.count + later.count)
        told = one if two.action in _IDLE and one.action not in _IDLE else two
        whole = one.action is not Action.SKIP
        joined = replace(
            told,
            version=two.version,
            data_version=two.data_version,
            started=two.started,
            data_timestamp=two.data_timestamp or one.data_timestamp,
            row_count=two.row_count if two.row_count is not None else one.row_count,
            size_bytes=two.size_bytes if two.size_bytes is not None else one.size_bytes,
            files=two.files if two.files is not None else one.files,
            read=two.read or one.read,
            seen=two.seen or one.seen,
            windows=_merge_windows(one.windows, two.windows) if whole else two.windows,
            inserted=one.inserted + two.inserted,
            deleted=one.deleted + two.deleted,
            fallback=two.fallback or one.fallback,
        )
        rebuilt = later.rebuilt or self.rebuilt
        return Summary(joined, later.until, self.count + later.count, rebuilt)


@dataclass(frozen=True)
class ReplicationSummary:
    """What happened to a replication since the last report of it."""

    refresh: ReplicationRefresh
    """The last refresh, with what those before it did to each table added."""
    began: datetime
    """When the last refresh began."""
    count: int = 1
    """Number of refreshes."""
    versions: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """By target, the newest Delta versions that they made."""

    @classmethod
    def of(cls, refresh: ReplicationRefresh, began: datetime) -> ReplicationSummary:
        """One refresh."""
        made = {t: (d.version,) for t, d in refresh.tables.items() if d.version is not None}
        return cls(refresh, began, versions=made)

    def then(self, later: ReplicationSummary) -> ReplicationSummary:
        """This, and what happened after it."""
        one, two = self.refresh.tables, later.refresh.tables
        tables = {name: _then(one.get(name), done) for name, done in two.items()}
        refresh = replace(later.refresh, tables=tables)
        versions = {
            name: (*self.versions.get(name, ()), *later.versions.get(name, ()))[-_VERSIONS:]
            for name in {*self.versions, *later.versions}
        }
        return ReplicationSummary(refresh, later.began, self.count + later.count, versions)


def _merge_windows(one: Mapping[str, Window], two: Mapping[str, Window]) -> dict[str, Window]:
    return {name: _window(one.get(name), window) for name, window in two.items()}


def _window(before: Window | None, after: Window) -> Window:
    if before is None:
        return after
    known = before.rows is not None and after.rows is not None
    rows = (before.rows or 0) + (after.rows or 0) if known else None
    return replace(after, before=before.before, rows=rows)


def _then(one: TableRefresh | None, two: TableRefresh) -> TableRefresh:
    if one is None:
        return two
    copies = [each for each in (one.copied, two.copied) if each is not None]
    return TableRefresh(
        two.name,
        sum(copies) if copies else None,
        one.inserted + two.inserted,
        one.updated + two.updated,
        one.deleted + two.deleted,
        dict(Counter(one.conflicts) + Counter(two.conflicts)),
        one.version if two.version is None else two.version,
        one.position if two.position is None else two.position,
    )
