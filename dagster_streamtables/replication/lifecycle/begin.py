"""The first steps of a refresh: the publication, the slot's name, and which tables there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dagster_streamtables.errors import InvalidDefinition, RefusedOperation
from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle.connect import (
    named_tables,
    publish,
    require_no_publication,
)
from dagster_streamtables.replication.lifecycle.state import Progress, State
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.lifecycle.work import Work
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.model.published_table import PublishedTable
from dagster_streamtables.runtime.errors.slots import LostSlot


def begin(work: Work) -> Mapping[str, PublishedTable]:
    """Make what the replication needs at its publisher, and find the tables that it has now.

    Returns:
        What is published.

    Raises:
        RefusedOperation: The name of its slot is taken, or a slot is missing that was to be there.
        InvalidDefinition: Its rows would go round in a circle.
        PublisherProblem: As `Publisher.published`.
        TargetProblem: A target is not the table that was written.
    """
    if not work.state.begun:
        _require_slot_name(work)
        require_no_publication(work.publisher, work.replication)
        work.turn.save(lambda state: replace(state, begun=True))
    work.step("publish")
    publish(work.publisher, work.state)
    wanted = named_tables(work.replication)
    work.turn.save(lambda state: replace(state, publication=wanted))
    published = work.publisher.published()
    work.require_no_circle(published)
    _require_same(work.state, published)
    _meet_new(work, published)
    _see_targets(work)
    return published


def _require_slot_name(work: Work) -> None:
    slot, create = work.slot, work.replication.create_slot
    try:
        work.publisher.lag(slot, {})
        there = True
    except LostSlot:
        there = False
    if there and create:
        raise RefusedOperation(
            f'there is a slot "{slot}" at the publisher already',
            where=work.publisher.origin,
            why="a slot has one reader, and another replication may read that one",
            fix="choose another slot=…; or, if nobody else reads it, create_slot=False",
        )
    if not there and not create:
        raise RefusedOperation(
            f'there is no slot "{slot}" to begin with',
            where=work.publisher.origin,
            why="create_slot is False, so the replication does not make it",
            fix="make it at the publisher, or let the replication make it: create_slot=True",
        )


def _meet_new(work: Work, published: Mapping[str, PublishedTable]) -> None:
    """Begin with tables that came, and stop with those that left."""
    known = work.state.tables
    new = [n for n in published if n not in known or known[n].state is TableState.REMOVED]
    gone = [n for n in known if n not in published and known[n].state is not TableState.REMOVED]
    for name in gone:
        logger.info("%s: %s is not published any more", work.replication.name, name)
        work.set(name, state=TableState.REMOVED, error="")
    _require_own_targets(work, published)
    if new:
        work.turn.save(lambda state: _with(state, {name: published[name] for name in new}))
    waiting = [n for n, each in work.state.tables.items() if each.state is TableState.NEW]
    if waiting and not work.replication.copy:
        _begin_without_copy(work, published, waiting)


def _require_own_targets(work: Work, published: Iterable[str]) -> None:
    """
    Raises:
        InvalidDefinition: Two tables have one target, as those of two schemas that go to one.
    """
    there: dict[str, str] = {}
    for name in published:
        target = work.replication.target(name)
        other = there.setdefault(work.targets.target(target).location, name)
        if other != name:
            raise InvalidDefinition(
                f'replication "{work.replication.name}" has two tables for the target "{target}"',
                why=f"{other} and {name} go to it, and the rows of one would be deleted as the "
                "other's",
                fix="give each published table a target of its own: targets={…}",
            )


def _require_same(state: State, published: Mapping[str, PublishedTable]) -> None:
    """
    Raises:
        PublisherProblem: A table was dropped at a server and created again, which its log does not
            tell: the rows of the one before are in the target.
    """
    for name, table in published.items():
        known = state.tables.get(name)
        if known is None or not known.is_followed:
            continue
        if table.id and known.origin_id and table.id != known.origin_id:
            raise PublisherProblem(
                f'the published table "{name}" is another table now',
                why="it was dropped and created again, and the target has rows of the one before",
                fix="copy it again (streamtables replications copy), which replaces its rows",
            )


def _with(state: State, new: Mapping[str, PublishedTable]) -> State:
    added = {
        name: Progress(
            state.replication.target(name),
            # What an earlier time has left in the target's log is no copy of this one.
            committed=state.tables[name].committed if name in state.tables else None,
            origin_id=table.id,
        )
        for name, table in new.items()
    }
    return replace(state, tables={**state.tables, **added})


def _begin_without_copy(
    work: Work, published: Mapping[str, PublishedTable], names: list[str]
) -> None:
    work.targets.require_fit({n: published[n] for n in names}, work.replication)
    work.step("slot")
    for name, position in work.publisher.create_slot(work.slot, names).items():
        log = work.targets.log(work.state.tables[name].target)
        work.set(
            name, state=TableState.READY, position=position, table_id="" if log is None else log.id
        )


def _see_targets(work: Work) -> None:
    """Take over from the logs of the targets what a crash kept from being stored."""
    for name, progress in work.state.tables.items():
        if progress.is_followed:
            seen = work.targets.seen(progress)
        elif progress.state is TableState.NEW:
            seen = _copied_before(work, progress)
        else:
            continue
        if seen != progress:
            work.turn.save(
                lambda state, name=name, seen=seen: replace(
                    state, tables={**state.tables, name: seen}
                )
            )


def _copied_before(work: Work, progress: Progress) -> Progress:
    """A new table whose copy was committed, which was not stored."""
    log = work.targets.log(progress.target)
    at = work.targets.position(progress.target)
    before = -1 if progress.committed is None else progress.committed
    if log is None or at is None or at <= before:
        return progress
    return replace(
        progress, state=TableState.READY, position=at, committed=at, table_id=log.id, error=""
    )
