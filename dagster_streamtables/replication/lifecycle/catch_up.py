"""Apply the changes of a publisher, in the order that makes each of them apply exactly once.

1. Each target's commit has the rows and the position that they reach.
2. What is about to be confirmed is stored in the ledger.
3. The slot moves.

Killed before 1: nothing happened. Between 1 and 2: the logs of the targets are ahead of the ledger,
and tell. Between 2 and 3: the slot is behind, and what it still holds is left out by position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.lifecycle.state import ReplicationState, Skip
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.lifecycle.work import ReplicationRun
from dagster_streamtables.replication.model.publisher import Batch
from dagster_streamtables.runtime.errors.translate import translate_final_errors


def catch_up(work: ReplicationRun, max_rows: int | None = None) -> bool:
    """Apply what is there, a batch at a time.

    Args:
        work: The refresh.
        max_rows: Stop after the batch that reaches so many changes; None for no limit.

    Returns:
        Whether nothing was left when the publisher was read last.
    """
    read = 0
    while after := work.after:
        size = work.replication.max_rows
        left = size if max_rows is None else min(size, max_rows - read)
        work.step("read")
        batch = work.publisher.read(work.slot, after, work.state.confirmed, max_rows=left)
        apply_batch(work, batch)
        read += sum(each.rows.num_rows for each in batch.tables.values())
        if batch.complete or (max_rows is not None and read >= max_rows):
            return batch.complete
    return True


def apply_batch(work: ReplicationRun, batch: Batch) -> None:
    """Apply a batch, store its end, and confirm it. Tables that cannot go on are stopped."""
    for name, error in batch.refused.items():
        work.stop(name, error)
    for name, changes in batch.tables.items():
        work.step("apply")
        try:
            with translate_final_errors():
                applied = apply_changes(
                    work.target(name), changes, batch.end[name], work.choices(name)
                )
        except StreamTablesError as error:
            work.stop(name, error)
        else:
            work.count(name, applied)
    end = {name: at for name, at in batch.end.items() if name not in work.troubles}
    work.step("store")
    _store(work, replace(batch, end=end))
    work.step("confirm")
    if end:
        work.publisher.confirm(work.slot, work.state.slot_positions)
    work.step("end")


def _store(work: ReplicationRun, batch: Batch) -> None:
    if not batch.end:
        return
    end = {**work.state.slot_positions, **batch.end}
    passed = [skip for skip in work.state.skips if _is_past(skip, end)]
    confirmed = work.publisher.confirming(end)
    work.skipped += map(str, passed)
    for skip in passed:
        if not _was_there(skip, batch):
            logger.warning(
                "%s: no transaction was at %s, so none was left out", work.replication.name, skip
            )
    committed = {
        name: work.targets.position(work.state.tables[name].target)
        for name in batch.tables
        if name in batch.end
    }

    def advance_state(state: ReplicationState) -> ReplicationState:
        for name, position in batch.end.items():
            known = state.tables[name]
            at = committed.get(name, known.committed)
            state = state.with_table(
                name, state=TableState.READY, position=position, committed=at, error="", fix="",
                since="",
            )  # fmt: skip
        left = tuple(each for each in state.skips if each not in passed)
        return replace(state, confirmed=confirmed, skips=left)

    if advance_state(work.state) != work.state:
        work.hold.save(advance_state)
    for name, position in batch.end.items():
        work.done[name] = replace(work.report(name), position=position)


def _is_past(skip: Skip, end: Mapping[str, int]) -> bool:
    about = [position for name, position in end.items() if skip.is_about(name)]
    return bool(about) and min(about) >= skip.position


def _was_there(skip: Skip, batch: Batch) -> bool:
    return any(
        skip.is_about(name) and any(t.position == skip.position for t in changes.transactions)
        for name, changes in batch.tables.items()
    )
