"""Apply changes of a published table to its target, exactly once."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterator
from dataclasses import replace

from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.replication.apply.contract import ApplyResult, Choices
from dagster_streamtables.replication.apply.effect import effect_of
from dagster_streamtables.replication.apply.in_parts import apply_in_parts
from dagster_streamtables.replication.apply.target_updates import (
    add_missing_columns,
    require_fills,
    write,
)
from dagster_streamtables.replication.apply.typed_changes import to_typed_changes
from dagster_streamtables.replication.model.replication_model import TableChanges
from dagster_streamtables.replication.target.target_columns import columns_of
from dagster_streamtables.replication.target.target_table import (
    Provenance,
    ReplicationTarget,
    TargetTable,
    keep_fast,
    open_target,
    write_commit,
)
from dagster_streamtables.runtime.delta.arrow import np, pa

_ATTEMPTS = 12
_PAUSE = 0.02
"""Seconds before the second attempt; twice as long before each later one."""


def apply_changes(
    target: ReplicationTarget, changes: TableChanges, end: int, choices: Choices | None = None
) -> ApplyResult:
    """Bring a target to a position, by one commit that has both the rows and the position.

    What was applied according to the target's log is left out, so a repetition does nothing.

    Args:
        changes: All changes of the published table since the target's position; earlier ones may be
            among them.
        end: The position up to which these are all changes.

    Raises:
        TargetProblem: The target is missing, or does not take what is published.
        ReplicationConflict: A change does not fit the rows of the target. Nothing was applied, or
            the transactions before it, if each is a commit.
        ConflictingCommit: Others committed to the target at each attempt.
    """
    choices = choices or Choices()
    applied, parts = ApplyResult(None, None), iter([(changes, end)])
    if choices.commit_by_commit:
        parts = by_transaction(changes, end)
    for part, position in parts:
        applied = applied.then(_apply(target, part, position, choices))
    if applied.version is not None:
        keep_fast(target)
    return applied


def _apply(
    target: ReplicationTarget, changes: TableChanges, end: int, choices: Choices
) -> ApplyResult:
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(random.uniform(0, _PAUSE * 2**attempt))
        try:
            there = open_target(target, changes.table)
            require_fills(there.log, changes.table)
            if choices.add_columns and add_missing_columns(there, changes.table):
                continue
            return _apply_to(there, changes, end, choices)
        except ConflictingCommit:
            continue
    raise ConflictingCommit(
        f'other writers keep committing to the target of "{changes.table.name}"',
        where=target.location,
        why="each attempt found that another commit had come first",
        fix="apply again; nothing of this attempt was written",
    )


def _apply_to(there: TargetTable, changes: TableChanges, end: int, choices: Choices) -> ApplyResult:
    log, target = there.log, there.target
    after = log.transaction(target.application)
    columns = columns_of(log, changes.table)
    if after is not None and end <= after:
        return ApplyResult(None, after)
    rows = changes_after(changes, after, choices.skip)
    if rows.num_rows > choices.in_memory and (there.spark is None or columns.plain_identity):
        many = replace(changes, rows=rows)
        return apply_in_parts(there, columns, many, after, end, choices)
    left = to_typed_changes(columns, rows, changes.positions)
    effect = effect_of(there, columns, left, choices.on_conflict)
    counted = effect.inserted, effect.updated, effect.deleted
    applied = ApplyResult(None, end, *counted, effect.conflicts.counts)
    if effect.is_empty and not choices.record_idle:
        return applied
    made = Provenance(target.replication, target.origin, changes.table.name, after, end, *counted)
    version = write_commit(target, log.version, made, lambda: write(there, effect, made))
    return replace(applied, version=version)


def changes_after(changes: TableChanges, position: int | None, skip: Collection[int]) -> pa.Table:
    """The changes of transactions after a position, without the skipped ones."""
    wanted = [
        each not in skip and (position is None or each > position) for each in changes.positions
    ]
    first = wanted.index(True) if any(wanted) else len(wanted)
    if all(wanted[first:]):  # a view of rows that may be many
        return changes.rows.slice(int(np.searchsorted(_transaction(changes), first)))
    return changes.rows.filter(np.array(wanted)[_transaction(changes)])


def by_transaction(changes: TableChanges, end: int) -> Iterator[tuple[TableChanges, int]]:
    """Each transaction alone, and its position; the last one reaches `end`."""
    last = len(changes.positions) - 1
    if last < 0:
        yield changes, end
    transaction = _transaction(changes)
    for i, position in enumerate(changes.positions):
        first, after = np.searchsorted(transaction, [i, i + 1]).tolist()
        rows = changes.rows.slice(first, after - first)
        yield replace(changes, rows=rows), end if i == last else position


def _transaction(changes: TableChanges) -> np.ndarray:
    return changes.rows.column("transaction").to_numpy()
