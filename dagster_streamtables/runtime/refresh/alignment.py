"""Choose one consistent frontier if a query reads a source through several paths.

Tables B and C read A, and D reads both. If B reflects version 5 of A and C version 7, a reader of D
would see a state that A never had. So D reads C at a version that reflects version 5, if C has one;
otherwise D waits for B. A query that reads B and A itself reads A at version 5.

Versions also agree if no commit between them changed a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableLog
from dagster_streamtables.runtime.delta.source_change import has_row_changes
from dagster_streamtables.runtime.model.table_state import SourceState, StreamTableState

_STEPS = 100
"""Number of versions of a stream table that are examined to find one that agrees."""


@dataclass(frozen=True)
class Alignment:
    """The versions that a refresh reads."""

    logs: Mapping[str, TableLog]
    waiting: str | None = None
    """What the refresh waits for, if newer versions do not agree; otherwise empty."""


@dataclass(frozen=True)
class TableLookup:
    """How alignment reads tables."""

    newest: Callable[[str], TableLog | None]
    at: Callable[[str, int], TableLog | None]
    """A table at a version; None if that version can no longer be loaded."""
    state: Callable[[str, TableLog], StreamTableState | None]
    """What a version of a stream table reflects; None for any other table."""
    renamed: Callable[[str], str | None] = lambda id: None
    """The present name of a table, by its id; None if there is no such table."""

    def present(self, name: str, seen: SourceState) -> tuple[str, TableLog | None]:
        """A table that a state names, under its present name."""
        newest = self.newest(name)
        now = self.renamed(seen.id) if newest is None else None
        return (name, newest) if now is None else (now, self.newest(now))


Reflected = Mapping[str, Snapshot]
"""Table at any depth below → the version of it that is reflected."""


@dataclass(frozen=True)
class _Conflict:
    table: str
    behind: str
    ahead: str
    low: int
    high: int

    def __str__(self) -> str:
        return (
            f'"{self.behind}" reflects version {self.low} of "{self.table}", and "{self.ahead}" '
            f'version {self.high}; waiting for "{self.behind}"'
        )


def align(
    logs: Mapping[str, TableLog], consumed: Mapping[str, int] | None, lookup: TableLookup
) -> Alignment:
    """The newest versions of the sources that agree with each other, from the newest ones, and
    those that the last refresh read, which agree: `consumed`, None before the first."""
    versions = {name: log.version for name, log in logs.items()}
    if len(logs) < 2 or versions == consumed:
        return Alignment(logs)
    if not any(lookup.state(name, log) for name, log in logs.items()):
        return Alignment(logs)
    chosen, waiting = dict(logs), None
    below = {name: _collect_versions(name, log, lookup) for name, log in chosen.items()}
    while (conflict := _conflict(below, lookup)) is not None:
        waiting = waiting or str(conflict)
        name = conflict.ahead
        floor = 0 if consumed is None else consumed.get(name, 0)
        older = _older(name, chosen[name], conflict, floor, lookup)
        if older is None:
            kept = {each: lookup.at(each, version) for each, version in (consumed or {}).items()}
            return Alignment({n: log for n, log in kept.items() if log is not None}, waiting)
        chosen[name] = older
        below[name] = _collect_versions(name, older, lookup)
    return Alignment(chosen, waiting)


def _collect_versions(name: str, log: TableLog, lookup: TableLookup) -> dict[str, Snapshot]:
    found = {name: log.snapshot}
    state = lookup.state(name, log)
    for name_then, seen in (state.sources if state is not None else {}).items():
        below, newest = lookup.present(name_then, seen)
        found[below] = seen.snapshot("" if newest is None else newest.location)
        if newest is None or not newest.has(found[below]) or lookup.state(below, newest) is None:
            continue
        then = lookup.at(below, seen.version)
        if then is not None:
            found |= _collect_versions(below, then, lookup)
    return found


def _conflict(below: Mapping[str, Reflected], lookup: TableLookup) -> _Conflict | None:
    """The first table that two sources reflect at versions with different rows."""
    lowest: dict[str, tuple[str, Snapshot]] = {}
    for name, tables in below.items():
        for table, snapshot in tables.items():
            other, low = lowest.setdefault(table, (name, snapshot))
            if snapshot == low or not _differ(table, snapshot, low, lookup):
                continue
            sides = sorted([(low.version, other), (snapshot.version, name)])
            return _Conflict(table, sides[0][1], sides[1][1], sides[0][0], sides[1][0])
    return None


def _differ(table: str, one: Snapshot, two: Snapshot, lookup: TableLookup) -> bool:
    newest = lookup.newest(table)
    if newest is None or not (newest.has(one) and newest.has(two)):
        return True
    low, high = sorted([one.version, two.version])
    return has_row_changes(newest, low, high)


def _older(
    name: str, log: TableLog, conflict: _Conflict, floor: int, lookup: TableLookup
) -> TableLog | None:
    """The newest version of the source ahead that reflects no more than the source behind."""
    if name == conflict.table:
        return lookup.at(name, conflict.low) if conflict.low >= floor else None
    for version in range(log.version - 1, max(floor, log.version - _STEPS) - 1, -1):
        older = lookup.at(name, version)
        if older is None or older.id != log.id or lookup.state(name, older) is None:
            return None
        below = _collect_versions(name, older, lookup).get(conflict.table)
        if below is None or below.version <= conflict.low:
            return older
    return None
