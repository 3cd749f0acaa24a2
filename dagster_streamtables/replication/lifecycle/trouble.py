"""Trouble of one table: it stops, the other tables of its replication go on.

A stopped table keeps its position, and its publisher keeps the changes behind it: each refresh
tries the table again, which goes on exactly where it was. That ends at the deadline of the
replication, or if changes are missing: then the table is lost, its publisher keeps nothing for it,
and only a new copy mends it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dagster_streamtables.amounts import duration
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lifecycle.errors import command, in_a_line
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.state import Progress
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.model.errors import LostTable
from dagster_streamtables.runtime.errors.slots import LostSlot


def with_table_name(error: StreamTablesError, table: str, replication: str) -> StreamTablesError:
    """The error with the table first, and with commands that can be pasted."""
    known = f'"{table}"' in error.what
    fix = error.fix.replace("NAME", replication)
    if isinstance(error, LostSlot):
        again = f": {command('copy', replication, table)}"
        fix = fix if again in fix else fix + again
    return error.with_parts(what=error.what if known else f'table "{table}": {error.what}', fix=fix)


def record_trouble(
    progress: Progress, error: StreamTablesError, declared: Replication, table: str
) -> tuple[Progress, StreamTablesError]:
    """What becomes of a table that cannot go on, and the error that is reported.

    Args:
        progress: The table before.
        error: Why it cannot go on.
        declared: Its replication.
        table: Its name at the publisher.
    """
    now = datetime.now(UTC)
    since = progress.since if progress.error and progress.since else now.isoformat()
    state, position, told = (
        progress.state,
        progress.position,
        with_table_name(error, table, declared.name),
    )
    waited = now - datetime.fromisoformat(since)
    if not progress.is_due and isinstance(error, LostSlot):
        state, position = TableState.LOST, None
    elif not progress.is_due and _is_over(declared.stopped_deadline, waited):
        state, position, told = (
            TableState.LOST,
            None,
            _deadline_error(told, declared, table, waited),
        )
    elif not progress.is_due:
        state = TableState.STOPPED
    line = in_a_line(told)
    after = replace(progress, state=state, position=position, error=line, fix=told.fix, since=since)
    return after, told


def loss_error(table: str, progress: Progress) -> LostTable:
    """The error of a table that was lost before."""
    return LostTable(f'table "{table}" is lost', why=progress.error, fix=progress.fix)


def _is_over(deadline: timedelta | None, waited: timedelta) -> bool:
    return deadline is not None and waited >= deadline


def _deadline_error(
    told: StreamTablesError, declared: Replication, table: str, waited: timedelta
) -> LostTable:
    return told.with_parts(
        LostTable,
        why=f"{told.why}; it has been stopped for {duration(waited.total_seconds())}, so its "
        "publisher no longer keeps its changes (stopped_deadline)",
        fix=f"{told.fix}; then copy it again: {command('copy', declared.name, table)}",
    )
