"""The effect of changes on a target whose rows have an identity."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.apply.contract import Conflicts, OnConflict
from dagster_streamtables.replication.apply.effect import Effect, is_new, values_of
from dagster_streamtables.replication.apply.net import net_of
from dagster_streamtables.replication.apply.row_ids import RowIds
from dagster_streamtables.replication.apply.told import ToldChanges, comparable
from dagster_streamtables.replication.model.errors import ReplicationConflict, TargetProblem
from dagster_streamtables.replication.target.columns import Columns, copy_command
from dagster_streamtables.replication.target.target_table import StoredRows
from dagster_streamtables.runtime.delta.arrow import python_rows

if TYPE_CHECKING:
    import pyarrow as pa


def keyed_effect(
    stored: StoredRows, columns: Columns, changes: ToldChanges, on_conflict: OnConflict
) -> Effect:
    """
    Raises:
        TargetProblem: Several rows of the target have the identity of one.
    """
    ids = changes.row_ids(zeros_differ=False)
    there = _stored(stored, columns, changes, ids)
    return effect_on(there, ids, columns, changes, on_conflict)


def effect_on(
    there: pa.Table, ids: RowIds, columns: Columns, changes: ToldChanges, on_conflict: OnConflict
) -> Effect:
    """
    Args:
        there: The stored rows that changes are about: their identities, and whatever else tells
            them apart.
        ids: Of the changes.
        columns: Those of the target.
        changes: The changes.
        on_conflict: See `OnConflict`.

    Raises:
        TargetProblem: Several rows of the target have the identity of one.
    """
    numbers = ids.of(comparable(there.select(columns.identity)))
    row_of = _row_of_each(numbers, ids.count, there, columns)
    net = net_of(changes.numbered(ids), row_of >= 0, on_conflict)
    came = [row for row in net.rows if is_new(row)]
    changed = [row for row in net.rows if not is_new(row)]
    values, kept = values_of(changes.new, changed)
    return Effect(
        came=values_of(changes.new, came)[0],
        changed=there.take(row_of[[row.origin for row in changed]]),
        values=values,
        kept=kept,
        gone=there.take(row_of[net.gone]),
        again=columns.schema([]).empty_table(),
        replaces=net.truncated,
        inserted=len(came),
        updated=len(changed),
        deleted=None if net.truncated else len(net.gone),
        conflicts=net.conflicts,
    )


def _stored(stored: StoredRows, columns: Columns, changes: ToldChanges, ids: RowIds) -> pa.Table:
    """The identities of the rows that changes may be about, as they are stored."""
    import pyarrow as pa

    new = changes.new.select(columns.identity)
    came, went = (np.flatnonzero(~np.isin(changes.op, each)) for each in (_NO_NEW, _NO_OLD))
    wanted = pa.concat_tables([new.take(came), changes.old.take(went)])
    return stored.touched(columns.identity, wanted, lambda rows: ids.of(comparable(rows)) >= 0)


_NO_NEW, _NO_OLD = ("delete", "truncate"), ("insert", "truncate")


def _row_of_each(numbers: np.ndarray, count: int, there: pa.Table, columns: Columns) -> np.ndarray:
    """By number, the index of the stored row; -1 if there is none."""
    found = np.full(count, -1, np.int64)
    found[numbers] = np.arange(len(numbers))
    twice = np.flatnonzero(found[numbers] != np.arange(len(numbers)))
    if len(twice):
        raise TargetProblem(
            f'several rows of the target of "{columns.table.name}" have one identity',
            where=f"{columns.location}: {shown(there.select(columns.identity), int(twice[0]))}",
            why="a change of one row would change them all; nothing was applied",
            fix=f"delete all but one of them; or copy again: {copy_command(columns.table.name)}",
        )
    return found


def shown(rows: pa.Table, index: int) -> str:
    """A row as text: ``id=1, region='EU'``."""
    [row] = python_rows(rows.slice(index, 1))
    return ", ".join(f"{name}={value!r}" for name, value in row.items())


def require_no_conflict(columns: Columns, changes: ToldChanges, conflicts: Conflicts) -> None:
    """
    Raises:
        ReplicationConflict: A change makes a row whose key another row has.
    """
    if conflicts.first is None:
        return
    change, kind = conflicts.first
    position = int(changes.position[change])
    row = shown(changes.new.select(columns.identity), change)
    raise ReplicationConflict(
        f'a change of "{columns.table.name}" meets a row that its target has already',
        where=f"{columns.location}: {row}; {kind}, position {position}",
        why="somebody else wrote that row, or it was there before the copy; nothing of the "
        "transaction was applied",
        fix="delete or correct the row of the target; or leave the transaction out: streamtables "
        f"replications skip NAME {position} --table {shlex.quote(columns.table.name)}; or let the "
        "publisher's row win: streamtables replications alter NAME --on-conflict apply; or keep "
        "the target's: streamtables replications alter NAME --on-conflict skip",
    )
