"""What changes make of rows that are all at hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.apply.contract import OnConflict
from dagster_streamtables.replication.apply.effect import (
    Effect,
    effect_on,
    fold_changes,
    is_new,
    require_no_conflict,
    values_of_rows,
)
from dagster_streamtables.replication.apply.told import STORED, TypedChanges, comparable
from dagster_streamtables.replication.target.columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa

_ROW = "\0row"
"""The place of a stored row: no column has that name."""


@dataclass(frozen=True)
class RewriteResult:
    rows: pa.Table
    """In all columns of the target: the rows that stay, then those that came."""
    inserted: int
    updated: int
    deleted: int
    conflicts: Counter[str]


def rewrite_rows(
    columns: Columns, changes: TypedChanges, there: pa.Table, on_conflict: OnConflict
) -> RewriteResult:
    """
    Args:
        columns: Those of the target.
        changes: The changes.
        there: All stored rows that they may be about, and others.
        on_conflict: See `OnConflict`.

    Raises:
        ReplicationConflict: A change does not fit the rows, and that is an error.
        TargetProblem: Several rows have the identity of one, or a value is missing.
    """
    if columns.table.identity is None:
        return _rewrite_bag(columns, changes, there, on_conflict)
    import pyarrow as pa

    ids = changes.row_ids(zeros_differ=False)
    identities = there.select(columns.identity)
    touched = np.flatnonzero(ids.of(comparable(identities)) >= 0)
    known = identities.append_column(_ROW, pa.array(np.arange(there.num_rows))).take(touched)
    effect = effect_on(known, ids, columns, changes, on_conflict)
    if on_conflict == "error":
        require_no_conflict(columns, changes, effect.conflicts)
    effect.require_values(columns)
    kept = there.slice(0, 0) if effect.replaces else _with_changes(there, effect)
    deleted = there.num_rows if effect.deleted is None else effect.deleted
    rows = pa.concat_tables([kept, _in_all_columns(columns, effect.came)])
    return RewriteResult(rows, effect.inserted, effect.updated, deleted, effect.conflicts.counts)


def _with_changes(there: pa.Table, effect: Effect) -> pa.Table:
    """The rows with their new values, without those that are gone."""
    import pyarrow as pa

    changed, gone = (part[_ROW].to_numpy() for part in (effect.changed, effect.gone))
    stays = np.setdiff1d(np.arange(there.num_rows), gone)
    for name in effect.values.column_names:
        values = effect.values[name]
        source = np.arange(there.num_rows)
        source[changed] = np.where(
            effect.kept.get(name, np.zeros(len(changed), bool)),
            changed,
            there.num_rows + np.arange(len(changed)),
        )
        place = there.column_names.index(name)
        both = pa.chunked_array([*there[name].chunks, *values.chunks], values.type)
        there = there.set_column(place, there.schema.field(place), both.take(source))
    return there.take(stays)


def _rewrite_bag(
    columns: Columns, changes: TypedChanges, there: pa.Table, on_conflict: OnConflict
) -> RewriteResult:
    import pyarrow as pa

    bag = fold_changes(changes, columns, there, on_conflict)
    left = np.array(sorted(bag.left), np.int64)
    kept = there.take(np.setdiff1d(np.arange(there.num_rows), left))
    rows = [row for found in bag.rows.values() for row in found if row.change != STORED]
    came = values_of_rows(changes, columns, there, rows)
    inserted = sum(map(is_new, rows))
    updated = len(rows) - inserted
    deleted = there.num_rows if bag.truncated else len(left) - updated
    kept = kept.slice(0, 0) if bag.truncated else kept
    rows = pa.concat_tables([kept, came])
    return RewriteResult(rows, inserted, updated, deleted, bag.conflicts.counts)


def _in_all_columns(columns: Columns, rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    arrays = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in columns.stored
    ]
    return pa.Table.from_arrays(arrays, schema=columns.stored)
