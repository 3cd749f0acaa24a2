"""Which replications write to the same table."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.runtime.delta.names import Names


def overlaps(
    name: str, states: Mapping[str, State], names: Names, tables: Collection[str] = ()
) -> list[str]:
    """Warnings: which other replications write to a target of one, each in a sentence.

    Args:
        name: The replication.
        states: All replications.
        names: Of the lake.
        tables: Its published tables that matter; all if none are named.
    """
    mine = _targets(states[name], names, tables)
    return [
        f'replication "{other}" writes to "{target}", too'
        for other, state in states.items()
        if other != name
        for location, target in _targets(state, names).items()
        if location in mine
    ]


def _targets(state: State, names: Names, tables: Collection[str] = ()) -> dict[str, str]:
    """By location, the names of the tables that it writes to."""
    found = [
        each
        for name, each in state.tables.items()
        if each.state is not TableState.REMOVED and (not tables or name in tables)
    ]
    return {names.location(each.target): each.target for each in found}
