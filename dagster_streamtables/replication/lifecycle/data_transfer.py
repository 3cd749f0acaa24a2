"""Copy tables and apply their changes, in the order that makes each of them apply exactly once.

1. Each target's commit has the rows and the position that they reach.
2. The positions to confirm are stored in the state.
3. The slot moves.

Killed before 1: nothing happened. Between 1 and 2: the logs of the targets are ahead of the state,
and have the positions. Between 2 and 3: the slot is behind, and what it still holds is left out by
position.

A new copy of all tables may follow the loss of the slot, a few times an hour.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dagster_streamtables.errors import (
    ConflictingCommit,
    LostPublisher,
    PublisherProblem,
    RefusedOperation,
    ReplicationConflict,
    StreamTablesError,
)
from dagster_streamtables.log import logger
from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.apply.copy_rows import copy_rows
from dagster_streamtables.replication.lifecycle.replication_errors import (
    ReplicationInUse,
    command,
    in_a_line,
)
from dagster_streamtables.replication.lifecycle.replication_report import TableState
from dagster_streamtables.replication.lifecycle.replication_run import ReplicationRun, require_room
from dagster_streamtables.replication.lifecycle.replication_state import ReplicationState, Skip
from dagster_streamtables.replication.model.replication_model import (
    Batch,
    CopySource,
    LostTable,
    PublishedTable,
)
from dagster_streamtables.runtime.errors.error_translation import translate_final_errors
from dagster_streamtables.runtime.errors.slot_errors import LostSlot


def copy_due(work: ReplicationRun, published: Mapping[str, PublishedTable]) -> None:
    """Copy what is due, all of one moment unless one fails, which stops only that table.

    Raises:
        LostSlot: The slot no longer exists.
        LostPublisher: The publisher cannot be reached.
    """
    known = work.state.tables
    due = [n for n in published if known[n].is_due and n not in work.troubles]
    _copy_these(work, published, due)


def _copy_these(
    work: ReplicationRun, published: Mapping[str, PublishedTable], due: Sequence[str]
) -> None:
    while due:
        work.step("slot")
        with ExitStack() as stack:
            try:
                copy = stack.enter_context(work.publisher.copy(work.slot, due))
            except PublisherProblem as error:
                if isinstance(error, LostSlot):
                    raise
                if len(due) == 1:
                    work.stop(due[0], error)
                    return
                # It is one of them, such as a table that the role may not read.
                half = len(due) // 2
                _copy_these(work, published, due[:half])
                due = due[half:]
                continue
            done = _copy_some(work, copy, published, due)
        due = due[done:]


def _copy_some(
    work: ReplicationRun,
    copy: CopySource,
    published: Mapping[str, PublishedTable],
    names: Sequence[str],
) -> int:
    """Copy tables up to the first that fails, and return their number: its unread rows are in the
    way of the next."""
    for i, name in enumerate(names):
        try:
            with translate_final_errors():
                _copy_table(work, copy, published[name])
        except StreamTablesError as error:
            stops_all = isinstance(error, LostPublisher | LostSlot | ReplicationInUse)
            if stops_all and not isinstance(error, LostTable):
                raise
            work.stop(name, error)
            return i + 1
    return len(names)


def _copy_table(work: ReplicationRun, copy: CopySource, table: PublishedTable) -> None:
    name = table.name
    again = work.state.tables[name].state is TableState.AGAIN
    rows = copy.rows(name)
    if rows.schema != table.schema:
        raise ConflictingCommit(
            f'the columns of "{name}" changed when its copy began',
            why="it was published with other columns a moment before",
            fix="refresh again; nothing of it was copied",
        )
    if not again:
        _require_place(work, table)
    work.step("copy")
    applied = copy_rows(
        work.target(name), table, rows, copy.position(name), work.choices(name), replace=again
    )
    work.step("store the copy")
    log = work.targets.log(work.state.tables[name].target)
    assert log is not None
    position = copy.position(name) if applied.position is None else applied.position
    work.set(
        name,
        TableState.READY,
        position=position,
        committed=position,
        table_id=log.id,
        origin_id=table.id,
    )
    work.count(name, applied, copied=True)


def _require_place(work: ReplicationRun, table: PublishedTable) -> None:
    """
    Raises:
        TargetProblem: There are other files at the place of the new target.
        ReplicationConflict: Rows without an identity would be added to others, perhaps the same
            ones.
    """
    log = work.targets.log(work.state.tables[table.name].target)
    if log is None:
        require_room(table.name, work.target(table.name), for_leftovers=True)
        return
    if table.identity is not None or not log.adds.num_rows:
        return
    if work.replication.on_conflict == "error":
        raise ReplicationConflict(
            f'the target of "{table.name}" already has rows',
            where=log.location,
            why="the table has no identity, so nothing tells its rows from those that are there; "
            "nothing was copied",
            fix=f"empty the target; or replace its rows: "
            f"{command('copy', work.replication.name, table.name)}; or keep both: "
            f"{command('alter', work.replication.name, '--on-conflict', 'apply')}",
        )


def require_in_replication(work: ReplicationRun, tables: Sequence[str]) -> None:
    """Raise `PublisherProblem` if a table does not belong to the replication."""
    for name in tables:
        known = work.state.tables.get(name)
        if known is None or known.state is TableState.REMOVED:
            there = [n for n, e in work.state.tables.items() if e.state is not TableState.REMOVED]
            raise PublisherProblem(
                f'"{name}" is not a table of the replication',
                where=work.publisher.origin,
                why=f"it has {', '.join(sorted(there)) or 'none'}",
                fix="name it as the publisher does, with its schema",
            )


AN_HOUR = 3
"""How often all is copied again automatically: what loses slots would cost more each time."""


def begin_anew(work: ReplicationRun, error: LostSlot) -> None:
    """Let all tables be copied again, with a new slot.

    Raises:
        LostSlot: That is not wanted, or happened too often.
    """
    if work.replication.on_slot_lost != "copy":
        raise with_command(work, error)
    _require_copies(work, error)
    forget(work)


def mark_for_recopy(work: ReplicationRun) -> bool:
    """Let tables with missing changes be copied again, if the replication wants that; return
    whether there are any."""
    missing = {n: e for n, e in work.troubles.items() if isinstance(e, LostSlot)}
    names = [n for n in missing if work.state.tables[n].state is TableState.LOST]
    if not names or work.replication.on_slot_lost != "copy":
        return False
    try:
        _require_copies(work, missing[names[0]])
    except LostSlot:  # it is reported as the trouble of these tables
        return False
    for name in names:
        del work.troubles[name]
        work.set(name, TableState.AGAIN, position=None)
    return True


def _require_copies(work: ReplicationRun, error: LostSlot) -> None:
    """Count an automatic copy.

    Raises:
        LostSlot: The replication makes no copies, or made too many.
    """
    if not work.replication.copy:
        raise error.with_parts(
            why=f"{error.why}; the replication applies changes only (copy is False), and some are "
            "missing",
            fix="bring the targets to the publisher's rows: "
            + command("copy", work.replication.name),
        )
    now = datetime.now(UTC)
    recent = [
        each
        for each in work.state.copied_again
        if datetime.fromisoformat(each) > now - timedelta(hours=1)
    ]
    if len(recent) >= AN_HOUR:
        raise error.with_parts(
            why=f"{error.why}; within an hour it happened more than {AN_HOUR} times, so the tables "
            "are not copied again by themselves",
            fix=f"{error.fix}: {command('copy', work.replication.name)}",
        )
    logger.warning("%s: tables are copied again: %s", work.replication.name, in_a_line(error))
    copied = (*recent, now.isoformat())
    work.hold.save(lambda state: replace(state, copied_again=copied))


def with_command(work: ReplicationRun, error: LostSlot) -> LostSlot:
    """The error, with why all tables stop and how to copy them again."""
    why = f"{error.why}; all tables of the replication share the slot, so none of them goes on"
    automatic = work.replication.on_slot_lost == "copy"
    name = work.replication.name
    chosen = command("alter", name, "--on-slot-lost", "copy")
    other = "or refresh it, which does that" if automatic else f"or once and for all: {chosen}"
    return error.with_parts(why=why, fix=f"{error.fix}: {command('copy', name)}; {other}")


_FOLLOWED = (TableState.READY, TableState.STOPPED, TableState.LOST)


def forget(work: ReplicationRun, states: Collection[TableState] = _FOLLOWED) -> None:
    """Mark tables to be copied again, and drop the slot, which the copy creates again.

    Raises:
        RefusedOperation: Another replication writes to a target, whose rows would be lost.
    """
    require_alone(work)
    work.hold.save(lambda state: _again(state, states))
    work.step("drop the slot")
    work.publisher.drop_slot(work.slot)


def require_alone(work: ReplicationRun, tables: Collection[str] = ()) -> None:
    """Raise `RefusedOperation` if another replication writes to a target of these tables, or of any
    if none are named."""
    others = work.overlaps(tables)
    if others:
        raise RefusedOperation(
            f'the tables of replication "{work.replication.name}" cannot be copied again',
            why=f"a copy replaces all rows of its target, and {others[0]}",
            fix="drop the other replication, or bring the target to the wanted rows by other means",
        )


def _again(state: ReplicationState, states: Collection[TableState]) -> ReplicationState:
    for name, each in state.tables.items():
        if each.state in states:
            state = state.with_table(name, TableState.AGAIN, position=None)
    return replace(state, confirmed=None)


def catch_up(work: ReplicationRun, max_rows: int | None = None) -> bool:
    """Apply changes, a batch at a time, up to the batch that reaches `max_rows`.

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
            state = state.with_table(name, TableState.READY, position=position, committed=at)
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
        skip.is_about(name) and skip.position in changes.positions
        for name, changes in batch.tables.items()
    )
