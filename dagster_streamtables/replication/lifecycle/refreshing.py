"""One refresh of a replication, from its first step to its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dagster_streamtables.replication.lifecycle.begin import begin
from dagster_streamtables.replication.lifecycle.catch_up import catch_up
from dagster_streamtables.replication.lifecycle.check import TableCheck
from dagster_streamtables.replication.lifecycle.checking import check_tables
from dagster_streamtables.replication.lifecycle.copying import copy_due, require_published
from dagster_streamtables.replication.lifecycle.lost_slot import (
    begin_anew,
    forget,
    require_alone,
    with_command,
)
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.lifecycle.work import Work
from dagster_streamtables.replication.model.published_table import PublishedTable
from dagster_streamtables.runtime.errors.slots import LostSlot


def refresh(work: Work, max_rows: int | None = None) -> bool:
    """Copy what is new, and apply what is there.

    Returns:
        Whether nothing was left when the publisher was read last.

    Raises:
        StreamTablesError: What stopped it; or, once all else is applied, why a copy failed.
    """
    try:
        complete = _refresh(work, max_rows)
    except LostSlot as error:
        begin_anew(work, error)
        work.failed.clear()
        complete = _refresh(work, max_rows)
    if work.failed:
        raise work.failed[0]
    return complete


def _refresh(work: Work, max_rows: int | None) -> bool:
    published = begin(work)
    if any(each.is_due for each in work.state.tables.values()):
        _require_slot(work)
    copy_due(work, published)
    return catch_up(work, max_rows)


def _require_slot(work: Work) -> None:
    """A copy makes the slot if there is none, and changes of the other tables would be missing.

    Raises:
        LostSlot: There is none, and tables are followed.
    """
    if work.state.followed:
        work.publisher.lag(work.slot, work.state.followed)


def copy_again(work: Work, tables: Sequence[str]) -> bool:
    """Copy tables again, in place of the rows that are there; all, with a new slot, if none are
    named.

    Raises:
        PublisherProblem: A table is not one of the replication.
    """
    require_published(work, tables)
    if tables:
        require_alone(work)
        for name in tables:
            work.set(name, state=TableState.AGAIN, position=None)
    else:
        forget(work, (TableState.NEW, TableState.READY))
    return refresh(work)


def check(work: Work, tables: Sequence[str]) -> dict[str, TableCheck]:
    """Compare tables with their origin at one moment; all, if none are named.

    Raises:
        LostSlot: Changes may be missing. Nothing is copied again, whatever the replication says.
    """
    require_published(work, tables)
    published: Mapping[str, PublishedTable] = begin(work)
    try:
        # The moment is that of a copy, which makes the slot if there is none.
        _require_slot(work)
        copy_due(work, published)
        if work.failed:
            raise work.failed[0]
        names = tables or [name for name in published if name in work.state.followed]
        return check_tables(work, published, names)
    except LostSlot as error:
        raise with_command(work, error) from error
