"""What follows when a slot is lost: an error, or a new copy of all tables, a few times an hour."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle.errors import command, in_a_line
from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.lifecycle.work import Work
from dagster_streamtables.runtime.errors.slots import LostSlot

AN_HOUR = 3
"""How often all is copied again by itself: what loses slots would cost more each time."""


def begin_anew(work: Work, error: LostSlot) -> None:
    """Let all tables be copied again, with a new slot.

    Raises:
        LostSlot: That is not wanted, or happened too often.
    """
    if work.replication.on_slot_lost != "copy":
        raise with_command(work, error)
    _require_copies(work, error)
    forget(work)


def copy_lost(work: Work) -> bool:
    """Let tables be copied again of which changes are missing, if the replication wants that.

    Returns:
        Whether there are any.
    """
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
        work.set(name, state=TableState.AGAIN, position=None, error="", fix="", since="")
    return True


def _require_copies(work: Work, error: LostSlot) -> None:
    """Count a copy that nobody asked for.

    Raises:
        LostSlot: The replication makes no copies, or made too many.
    """
    if not work.replication.copy:
        raise error.changed(
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
        raise error.changed(
            why=f"{error.why}; within an hour it happened more than {AN_HOUR} times, so the tables "
            "are not copied again by themselves",
            fix=f"{error.fix}: {command('copy', work.replication.name)}",
        )
    logger.warning("%s: tables are copied again: %s", work.replication.name, in_a_line(error))
    copied = (*recent, now.isoformat())
    work.hold.save(lambda state: replace(state, copied_again=copied))


def with_command(work: Work, error: LostSlot) -> LostSlot:
    """The error, with why no table goes on and what copies them again."""
    why = f"{error.why}; all tables of the replication share the slot, so none of them goes on"
    automatic = work.replication.on_slot_lost == "copy"
    name = work.replication.name
    chosen = command("alter", name, "--on-slot-lost", "copy")
    other = "or refresh it, which does that" if automatic else f"or once and for all: {chosen}"
    return error.changed(why=why, fix=f"{error.fix}: {command('copy', name)}; {other}")


_FOLLOWED = (TableState.READY, TableState.STOPPED, TableState.LOST)


def forget(work: Work, states: Collection[TableState] = _FOLLOWED) -> None:
    """Mark tables as to be copied again, and drop the slot, which the copy makes anew.

    Raises:
        RefusedOperation: Another replication writes to a target, whose rows would go.
    """
    require_alone(work)
    work.hold.save(lambda state: _again(state, states))
    work.step("drop the slot")
    work.publisher.drop_slot(work.slot)


def require_alone(work: Work, tables: Collection[str] = ()) -> None:
    """
    Raises:
        RefusedOperation: Another replication writes to a target of these tables, or of any if none
            are named.
    """
    others = work.overlaps(tables)
    if others:
        raise RefusedOperation(
            f'the tables of replication "{work.replication.name}" cannot be copied again',
            why=f"a copy replaces all rows of its target, and {others[0]}",
            fix="drop the other replication, or bring the target to the wanted rows by other means",
        )


def _again(state: State, states: Collection[TableState]) -> State:
    for name, each in state.tables.items():
        if each.state in states:
            state = state.with_table(
                name, state=TableState.AGAIN, position=None, error="", fix="", since=""
            )
    return replace(state, confirmed=None)
