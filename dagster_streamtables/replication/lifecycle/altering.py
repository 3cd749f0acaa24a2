"""Changes of a replication by a person: another declaration, a transaction to leave out."""

from __future__ import annotations

import re
from dataclasses import replace

from dagster_streamtables.errors import InvalidDefinition, RefusedOperation
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.state import Progress, ReplicationState, Skip
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.postgres.lsn import lsn_of


def alter_state(state: ReplicationState, replication: Replication) -> ReplicationState:
    """
    Raises:
        RefusedOperation: It would have another slot, or another kind of publisher; or a publication
            would be changed that it has not made.
    """
    before = state.replication
    another = type(before.publisher) is not type(replication.publisher)
    if another or before.slot_name != replication.slot_name:
        raise RefusedOperation(
            f'replication "{replication.name}" cannot get '
            + ("another kind of publisher" if another else "another slot"),
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
        InvalidDefinition: The position is none.
        RefusedOperation: It is applied already, or of no table that there is, or of several.
    """
    at = _number(position)
    names = [n for n, each in state.tables.items() if each.state is not TableState.REMOVED]
    if table is not None and table not in names:
        raise RefusedOperation(
            f'"{table}" is no table whose changes can be skipped',
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
            f'"{text}" is no position',
            fix="give the number that the error of the transaction tells, or an LSN such as "
            "0/16B3748",
        )
    return int(text)
