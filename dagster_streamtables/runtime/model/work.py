"""What a refresh of a stream table would have to do: one answer for whoever asks.

The sensor, a worker, automation conditions and the status ask the same function, which looks at
what `refresh.decide` looks at. It compares what the table stores, never what somebody remembers of
it; and commits, never their numbers: a table that is written anew each night has the same number
each night.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.model.fingerprint import meaning_in
from dagster_streamtables.runtime.model.state import SourceState, StreamTableState

REDEFINED = "its definition changed"


@dataclass(frozen=True)
class HeadWithState:
    """The end of a stream table's log, and its newest state."""

    head: Head
    state: StreamTableState
    committed: int
    """The version with `state`."""
    disturbed: bool
    """Whether somebody else changed rows after that, as far as commits tell; see `read_state`."""


@dataclass(frozen=True)
class RefreshWork:
    """What there is to do; nothing, without reasons."""

    reasons: tuple[str, ...] = ()
    """Each a clause, such as `its definition changed`."""
    redefined: bool = False
    """Whether its rows are those of another definition."""


def refresh_work(
    stored: HeadWithState | None,
    meaning: str,
    newest: Mapping[str, Head | None],
    seen: Mapping[str, Head] | None = None,
) -> RefreshWork:
    """What a refresh of a table would have to do.

    Args:
        stored: The table; None if it was never refreshed.
        meaning: That of its declaration.
        newest: The newest commit of each source; None for one that does not exist.
        seen: Commits that a later refresh looked at without committing, by table: of sources, and
            of the table itself. It found nothing to do there.
    """
    if stored is None:
        return RefreshWork(("it was never refreshed",))
    state, seen = stored.state, seen or {}
    moved = [
        name
        for name, head in newest.items()
        if head is None or not (_reflects(state.sources.get(name), head) or seen.get(name) == head)
    ]
    redefined = meaning_in(state.query) not in ("", meaning)
    older = not (state.compared and meaning_in(state.query))
    disturbed = stored.disturbed and seen.get(state.table) != stored.head
    reasons = [
        *([REDEFINED] if redefined else []),
        *(["an older version wrote it"] if older else []),
        *([f"somebody else changed its rows after version {stored.committed}"] * disturbed),
        *(_source_reason(name, newest[name], state.sources.get(name)) for name in moved),
    ]
    return RefreshWork(tuple(reasons), redefined)


def _reflects(seen: SourceState | None, head: Head) -> bool:
    return seen is not None and Head(seen.version, seen.commit) == head


def _source_reason(name: str, head: Head | None, seen: SourceState | None) -> str:
    if head is None:
        return f'"{name}" does not exist'
    if seen is None:
        return f'it never read "{name}"'
    if head.version <= seen.version:
        return f'"{name}" was written anew, and is at version {head.version}'
    return f'"{name}" is at version {head.version}, and it reflects {seen.version}'
