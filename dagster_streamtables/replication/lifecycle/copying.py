"""Copy the tables that are new, each as one commit of its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from dagster_streamtables.errors import ConflictingCommit, StreamTablesError
from dagster_streamtables.replication.apply.copy_rows import copy_rows
from dagster_streamtables.replication.lifecycle.errors import ReplicationInUse, command
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.lifecycle.targets import require_room
from dagster_streamtables.replication.lifecycle.work import Work
from dagster_streamtables.replication.model.errors import (
    LostPublisher,
    LostTable,
    PublisherProblem,
    ReplicationConflict,
)
from dagster_streamtables.replication.model.published_table import PublishedTable
from dagster_streamtables.replication.model.publisher import Copy
from dagster_streamtables.runtime.errors.slots import LostSlot
from dagster_streamtables.runtime.errors.translate import last_word


def copy_due(work: Work, published: Mapping[str, PublishedTable]) -> None:
    """Copy what is due, all of one moment unless one fails, which stops only that table.

    Raises:
        LostSlot: The slot is there no more.
        LostPublisher: The publisher cannot be reached.
    """
    known = work.state.tables
    due = [n for n in published if known[n].is_due and n not in work.troubles]
    _copy_these(work, published, due)


def _copy_these(work: Work, published: Mapping[str, PublishedTable], due: Sequence[str]) -> None:
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
    work: Work, copy: Copy, published: Mapping[str, PublishedTable], names: Sequence[str]
) -> int:
    """Returns:
    How many are done with: the rows that a failed one has not read are in the way of the next.
    """
    for i, name in enumerate(names):
        try:
            with last_word():
                _copy_table(work, copy, published[name])
        except LostTable as error:
            work.stop(name, error)
            return i + 1
        except (LostPublisher, LostSlot, ReplicationInUse):
            raise
        except StreamTablesError as error:
            work.stop(name, error)
            return i + 1
    return len(names)


def _copy_table(work: Work, copy: Copy, table: PublishedTable) -> None:
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
        state=TableState.READY,
        position=position,
        committed=position,
        table_id=log.id,
        origin_id=table.id,
        error="",
        fix="",
        since="",
    )
    work.count(name, applied, copied=True)


def _require_place(work: Work, table: PublishedTable) -> None:
    """
    Raises:
        TargetProblem: There are other files where the target is to be created.
        ReplicationConflict: Rows without an identity would come to others, whose they may be.
    """
    log = work.targets.log(work.state.tables[table.name].target)
    if log is None:
        require_room(table.name, work.target(table.name), for_leftovers=True)
        return
    if table.identity is not None or not log.adds.num_rows:
        return
    if work.replication.on_conflict == "error":
        raise ReplicationConflict(
            f'the target of "{table.name}" has rows already',
            where=log.location,
            why="the table has no identity, so nothing tells its rows from those that are there; "
            "nothing was copied",
            fix=f"empty the target; or replace its rows: "
            f"{command('copy', work.replication.name, table.name)}; or keep both: "
            f"{command('alter', work.replication.name, '--on-conflict', 'apply')}",
        )


def require_published(work: Work, tables: Sequence[str]) -> None:
    """
    Raises:
        PublisherProblem: A table is not one of the replication.
    """
    for name in tables:
        known = work.state.tables.get(name)
        if known is None or known.state is TableState.REMOVED:
            there = [n for n, e in work.state.tables.items() if e.state is not TableState.REMOVED]
            raise PublisherProblem(
                f'"{name}" is no table of the replication',
                where=work.publisher.origin,
                why=f"it has {', '.join(sorted(there)) or 'none'}",
                fix="name it as the publisher does, with its schema",
            )
