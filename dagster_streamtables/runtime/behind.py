"""Since when does a stream table not reflect a source? Its log and that of the source know.

A table is as fresh as it can be while no source has rows that it does not reflect, however long ago
that was. So age counts from the first commit that it lacks, and not from its last refresh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dagster_streamtables.runtime.delta_log import TableLog
from dagster_streamtables.runtime.state import Seen, State
from dagster_streamtables.runtime.window import change_between


@dataclass(frozen=True)
class Behind:
    """A source with rows that a stream table does not reflect."""

    source: str
    frontier: int
    """The version that the table reflects."""
    newest: int
    since: float | None
    """When the first commit that it lacks was made, in seconds since 1970; None if the log no
    longer tells."""


def behind(state: State, sources: Mapping[str, TableLog]) -> list[Behind]:
    """The sources that a stream table does not reflect.

    Args:
        state: Of the stream table.
        sources: Their newest versions; one that is not there is left out.
    """
    return [
        each
        for name, log in sources.items()
        if name in state.sources
        for each in _behind(name, state.sources[name], log)
    ]


def _behind(name: str, seen: Seen, log: TableLog) -> Iterator[Behind]:
    if seen.id != log.id or seen.version > log.version:
        yield Behind(name, seen.version, log.version, None)
        return
    for version in range(seen.version + 1, log.version + 1):
        change = change_between(log, version - 1, version)
        if change.lost or change.moved:
            since = None if change.lost else log.time_of(version)
            yield Behind(name, seen.version, log.version, since)
            return
