"""One refresh of a replication, from its first step to its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from dagster_streamtables.replication.lifecycle.begin import begin
from dagster_streamtables.replication.lifecycle.catch_up import catch_up
from dagster_streamtables.replication.lifecycle.checking import check_tables
from dagster_streamtables.replication.lifecycle.copying import (
    begin_anew,
    copy_due,
    copy_lost,
    forget,
    require_alone,
    require_published,
    with_command,
)
from dagster_streamtables.replication.lifecycle.report import TableCheck
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.lifecycle.trouble import lost
from dagster_streamtables.replication.lifecycle.work import Work
from dagster_streamtables.replication.model.publisher import PublishedTable
from dagster_streamtables.runtime.errors.slots import LostSlot


def refresh(work: Work, max_rows: int | None = None) -> bool:
    """Copy what is new, and apply what is there.

    Returns:
        Whether nothing was left when the publisher was read last.

    Raises:
        StreamTablesError: What stopped it. The troubles of single tables are in `Work.troubles`.
    """
    try:
        complete = _refresh(work, max_rows)
        if copy_lost(work):
            complete = _refresh(work, max_rows)
    except LostSlot as error:
        begin_anew(work, error)
        work.troubles.clear()
        complete = _refresh(work, max_rows)
    _report_lost(work)
    return complete


def _refresh(work: Work, max_rows: int | None) -> bool:
    published = begin(work)
    if any(each.is_due for each in work.state.tables.values()):
        _require_slot(work)
    copy_due(work, published)
    return catch_up(work, max_rows)


def _report_lost(work: Work) -> None:
    """The tables that were lost before are in trouble, too. Without others the slot goes: a copy
    makes a new one."""
    tables = work.state.tables
    missing = {name: each for name, each in tables.items() if each.state is TableState.LOST}
    for name, each in missing.items():
        work.troubles.setdefault(name, lost(name, each))
    if missing and not any(each.is_held or each.is_due for each in tables.values()):
        work.publisher.drop_slot(work.slot)
        work.hold.save(lambda state: replace(state, confirmed=None))


def _require_slot(work: Work) -> None:
    """A copy makes the slot if there is none, and changes of the other tables would be missing.

    Raises:
        LostSlot: There is none, and tables are followed.
    """
    if work.state.held:
        work.publisher.lag(work.slot, work.state.held)


def copy_again(work: Work, tables: Sequence[str]) -> bool:
    """Copy tables again, in place of the rows that are there; all, with a new slot, if none are
    named.

    Raises:
        PublisherProblem: A table is not one of the replication.
    """
    require_published(work, tables)
    if tables:
        require_alone(work, tables)
        for name in tables:
            work.set(name, state=TableState.AGAIN, position=None, error="", fix="", since="")
        with suppress(LostSlot):  # the refresh reports it
            work.publisher.release(work.slot, tables)
    else:
        forget(work, [state for state in TableState if state is not TableState.REMOVED])
    return refresh(work)


def check(work: Work, tables: Sequence[str]) -> dict[str, TableCheck]:
    """Compare tables with their origin at one moment; all, if none are named. One that is in
    trouble is not equal.

    Raises:
        LostSlot: Changes may be missing. Nothing is copied again, whatever the replication says.
    """
    require_published(work, tables)
    published: Mapping[str, PublishedTable] = begin(work)
    try:
        # The moment is that of a copy, which makes the slot if there is none.
        _require_slot(work)
        copy_due(work, published)
        _report_lost(work)
        names = tables or [*work.after, *work.troubles]
        return check_tables(work, published, names)
    except LostSlot as error:
        raise with_command(work, error) from error
