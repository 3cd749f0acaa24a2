"""What a replication may do to others: write to the same table, or send rows round in a circle."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lifecycle.from_lake import FromLake
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.lifecycle.store import Store
from dagster_streamtables.runtime.delta.names import Names
from dagster_streamtables.runtime.lake import Lake


def overlaps(name: str, states: Mapping[str, State], names: Names) -> list[str]:
    """Warnings: which other replications write to a target of one, each in a sentence."""
    mine = _targets(states[name], names)
    return [
        f'replication "{other}" writes to "{target}", too'
        for other, state in states.items()
        if other != name
        for location, target in _targets(state, names).items()
        if location in mine
    ]


def require_no_circle(
    replication: Replication,
    published: Collection[str],
    lake: Lake,
    options: Mapping[str, str] | None,
) -> None:
    """
    Args:
        replication: One that is about to begin.
        published: The names of its tables.
        lake: It subscribes.
        options: The storage options of the publisher's lake; None for those of the lake.

    Raises:
        InvalidDefinition: A row would come back to where it came from.
    """
    source = replication.publisher
    if not isinstance(source, FromLake):
        return
    if source.root == lake.root:
        _require_others(replication, published, lake.access.catalog.names)
    theirs = Store(source.root, lake.storage_options if options is None else options)
    for name, state in theirs.all().items():
        back = state.replication.publisher
        if not isinstance(back, FromLake) or back.root != lake.root or source.root == lake.root:
            continue
        returned = _returned(replication, state, published, lake, Names(source.root))
        if returned and "any" in (source.origin, back.origin):
            raise InvalidDefinition(
                f'replication "{replication.name}" and "{name}" of {source.root} would send rows '
                "round in a circle",
                why=f"each reads what the other writes, such as {min(returned)}",
                fix='give both origin="none", by which each leaves out what a replication wrote',
            )


def _returned(
    replication: Replication, back: State, published: Collection[str], lake: Lake, theirs: Names
) -> set[str]:
    """The tables of the other lake that are written from what is made of them here."""
    here = lake.access.catalog.names
    written = {(here.location(n), theirs.location(e.target)) for n, e in back.tables.items()}
    return {
        name
        for name in published
        if (here.location(replication.target(name)), theirs.location(name)) in written
    }


def _require_others(replication: Replication, published: Collection[str], names: Names) -> None:
    for name in published:
        if names.location(name) == names.location(replication.target(name)):
            raise InvalidDefinition(
                f'replication "{replication.name}" has "{name}" as its own target',
                why="it reads from the lake that it writes to",
                fix="give the targets another schema, or names: targets={…}",
            )


def _targets(state: State, names: Names) -> dict[str, str]:
    """By location, the names of the tables that it writes to."""
    found = [each for each in state.tables.values() if each.state is not TableState.REMOVED]
    return {names.location(each.target): each.target for each in found}
