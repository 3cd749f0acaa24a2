"""Checks before a replication changes: its declaration, a skip, a circle, a shared target."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

from dagster_streamtables.errors import InvalidDefinition, RefusedOperation, StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replication_report import TableState
from dagster_streamtables.replication.lifecycle.replication_state import (
    Progress,
    ReplicationState,
    Skip,
    Store,
)
from dagster_streamtables.replication.postgres.logical_slots import lsn_of
from dagster_streamtables.runtime.delta.table_locations import TableNames
from dagster_streamtables.runtime.lake import Lake


def alter_state(state: ReplicationState, replication: Replication) -> ReplicationState:
    """Raise `RefusedOperation` if it would have another slot, or another kind of publisher, or if
    it would change a publication that it has not created."""
    before = state.replication
    another = type(before.publisher) is not type(replication.publisher)
    if another or before.slot_name != replication.slot_name:
        raise RefusedOperation(
            f'replication "{replication.name}" cannot change '
            + ("its kind of publisher" if another else "its slot"),
            why="its positions are of the one that it has",
            fix="drop it, and create it again: it copies its tables anew",
        )
    made = replication.slot_name
    if (
        replication.publisher.publication_members is not None
        and made in before.publisher.publications
    ):
        raise RefusedOperation(
            f'replication "{replication.name}" cannot name tables',
            why=f'the publication for them would be named "{made}", and one of that name exists, '
            "which the replication has not made",
            fix="add the tables to that publication: ALTER PUBLICATION … ADD TABLE",
        )
    tables = {
        name: each
        if each.state is TableState.REMOVED or replication.target(name) == before.target(name)
        else Progress(replication.target(name))
        for name, each in state.tables.items()
    }
    enabled = state.enabled
    if before.enabled != replication.enabled:
        enabled = replication.enabled and state.slot is not None
    return replace(state, replication=replication, tables=tables, enabled=enabled)


def require_position(state: ReplicationState, position: int | str, table: str | None) -> Skip:
    """
    Raises:
        InvalidDefinition: The text is not a position.
        RefusedOperation: It is applied already, or belongs to no known table, or to several.
    """
    at = _number(position)
    names = [n for n, each in state.tables.items() if each.state is not TableState.REMOVED]
    if table is not None and table not in names:
        raise RefusedOperation(
            f'"{table}" is not a table whose changes can be skipped',
            why=f"the replication has {', '.join(sorted(names)) or 'none'}",
            fix="name it as the publisher does, with its schema",
        )
    by_table = state.replication.publisher.counts_by_table
    if table is None and by_table and len(names) > 1:
        raise RefusedOperation(
            f"position {at} is one of several tables",
            why="a lake numbers the versions of each table by themselves",
            fix=f"name the table, one of {', '.join(sorted(names))}",
        )
    chosen = (names[0] if names else None) if table is None and by_table else table
    applied = [
        position for name, position in state.slot_positions.items() if chosen in (None, name)
    ]
    if applied and min(applied) >= at:
        raise RefusedOperation(
            f"position {at} is applied already",
            why=f"the replication is at {min(applied)}",
            fix="give the position that the error of the transaction tells",
        )
    return Skip(at, chosen)


def _number(position: int | str) -> int:
    text = str(position)
    if re.fullmatch(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}", text):
        return lsn_of(text)
    if not re.fullmatch(r"\d+", text):
        raise InvalidDefinition(
            f'"{text}" is not a position',
            fix="give the number that the error of the transaction tells, or an LSN such as "
            "0/16B3748",
        )
    return int(text)


_MOST = 20
"""Lakes on the way of a row that are looked at."""


def require_no_circle(
    replication: Replication,
    published: Collection[str],
    lake: Lake,
    options: Mapping[str, str] | None,
) -> None:
    """
    Args:
        replication: It is about to begin, or to change.
        published: The names of its tables.
        lake: The subscribing lake.
        options: The storage options of the publisher's lake; None for those of the lake.

    Raises:
        InvalidDefinition: A row would come back to where it came from.
    """
    source = replication.publisher
    if source.lake_root is None:
        return
    here, there = lake.access.catalog.names, TableNames(source.lake_root)
    states_of = cache(partial(_read_states, lake.storage_options if options is None else options))
    for name in sorted(published):
        begin, end = there.own_location(name), here.own_location(replication.target(name))
        if begin == end:
            raise InvalidDefinition(
                f'replication "{replication.name}" has "{name}" as its own target',
                why="it reads from the lake that it writes to",
                fix="give the targets another schema: --target-schema; or names: --target",
            )
        first = _Link(replication.name, lake.root, source.lake_root, begin, source.origin)
        for way in _ways_back((first,), states_of):
            if way[-1].table == end:
                raise _circle(name, way)


@dataclass(frozen=True)
class _Link:
    """A replication of one table."""

    name: str
    lake: str
    """The subscribing lake."""
    source: str
    """The publishing lake."""
    table: str
    """The location of the table there."""
    origin: str


_StatesOf = Callable[[str], Mapping[str, ReplicationState]]


def _ways_back(way: tuple[_Link, ...], states_of: _StatesOf) -> Iterator[tuple[_Link, ...]]:
    """The ways of incoming rows on which "none" does not prevent a circle: what a lake itself wrote
    passes one such link, and what came to it passes none."""
    if sum(link.origin == "none" for link in way) > 1 or len(way) > _MOST:
        return
    yield way
    for link in _links_to(way[-1].table, way[-1].source, states_of):
        if link.table not in {each.table for each in way}:
            yield from _ways_back((*way, link), states_of)


def _links_to(table: str, root: str, states_of: _StatesOf) -> Iterator[_Link]:
    """The replications that write to a table of a lake."""
    names = TableNames(root)
    for name, state in states_of(root).items():
        source = state.replication.publisher
        if source.lake_root is None:
            continue
        for published, progress in state.tables.items():
            if names.own_location(progress.target) == table:
                place = TableNames(source.lake_root).own_location(published)
                yield _Link(name, root, source.lake_root, place, source.origin)


def _read_states(options: Mapping[str, str] | None, root: str) -> Mapping[str, ReplicationState]:
    """Those of a lake; none if they cannot be read."""
    try:
        return Store(root, options).all()
    except (StreamTablesError, OSError) as error:
        logger.warning(
            "whether replications go round in a circle is not known beyond %s: %s", root, error
        )
        return {}


def _circle(table: str, way: tuple[_Link, ...]) -> InvalidDefinition:
    """
    Args:
        table: The name under which it is published to the first.
        way: From the first replication back to the one that reads its lake.
    """
    first = way[0]
    others = ", ".join(f'"{link.name}" of {link.lake}' for link in way[1:])
    lakes = " → ".join([first.lake, *(link.lake for link in reversed(way[1:])), first.lake])
    return InvalidDefinition(
        f'replication "{first.name}" and {others} would replicate rows in a circle',
        why=f"rows of {table} would go {lakes}",
        fix="let two of these leave out what a replication wrote: streamtables replications alter "
        "NAME --origin none (create it with --origin none if it is new)",
    )


def overlaps(
    name: str,
    states: Mapping[str, ReplicationState],
    names: TableNames,
    tables: Collection[str] = (),
) -> list[str]:
    """Warnings: which other replications write to a target of one, or to a target of some of its
    published tables, each in a sentence."""
    mine = _targets(states[name], names, tables)
    return [
        f'replication "{other}" writes to "{target}", too'
        for other, state in states.items()
        if other != name
        for location, target in _targets(state, names).items()
        if location in mine
    ]


def _targets(
    state: ReplicationState, names: TableNames, tables: Collection[str] = ()
) -> dict[str, str]:
    """Location → the name of each table that it writes to."""
    found = [
        each
        for name, each in state.tables.items()
        if each.state is not TableState.REMOVED and (not tables or name in tables)
    ]
    return {names.own_location(each.target): each.target for each in found}
