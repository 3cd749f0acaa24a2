"""The first steps of a refresh: the publication, the name of the slot, and the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dagster_streamtables.errors import (
    InvalidDefinition,
    PublisherProblem,
    RefusedOperation,
    StreamTablesError,
)
from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle.replication_errors import command
from dagster_streamtables.replication.lifecycle.replication_report import TableState
from dagster_streamtables.replication.lifecycle.replication_run import (
    ReplicationRun,
    publish,
    require_no_publication,
)
from dagster_streamtables.replication.lifecycle.replication_state import Progress, ReplicationState
from dagster_streamtables.replication.model.replication_model import (
    LostTable,
    PublishedTable,
    TableOffer,
    of_each,
)
from dagster_streamtables.runtime.errors.slot_errors import LostSlot


def begin(work: ReplicationRun) -> Mapping[str, PublishedTable]:
    """Create what the replication needs at its publisher, and find the present tables.

    Tables that cannot go on are stopped.

    Returns:
        The published tables that can be replicated.

    Raises:
        RefusedOperation: Its slot exists already, or is missing although it should exist.
        InvalidDefinition: Its rows would go round in a circle.
        PublisherProblem: As `Publisher.offer`.
    """
    if not work.state.begun:
        _require_slot_name(work)
        require_no_publication(work.publisher, work.replication)
        work.hold.save(lambda state: replace(state, begun=True))
    work.step("publish")
    missing = _publish(work)
    offer = work.publisher.offer()
    offer = TableOffer(offer.tables, {**missing, **offer.refused})
    work.require_no_circle(offer.tables)
    _meet_new(work, offer)
    _, unfit = of_each(offer.tables, lambda name: _require_fine(work, name, offer.tables))
    for name, error in {**offer.refused, **unfit}.items():
        work.stop(name, error)
    waiting = [n for n, each in work.state.tables.items() if each.state is TableState.NEW]
    if waiting and not work.replication.copy:
        _begin_without_copy(work, offer.tables, [n for n in waiting if n not in work.troubles])
    _see_targets(work)
    return offer.tables


def _publish(work: ReplicationRun) -> dict[str, StreamTablesError]:
    """Publish the named tables.

    Returns:
        The errors of tables that were named since, if the publication cannot be changed.
    """
    before, wanted = work.state.publication, work.replication.publisher.publication_members
    try:
        publish(work.publisher, work.state)
    except PublisherProblem as error:
        if before is None or wanted is None:
            raise
        return {name: error for name in wanted[0] if name not in before[0]}
    work.hold.save(lambda state: replace(state, publication=wanted))
    return {}


def _require_slot_name(work: ReplicationRun) -> None:
    slot, create = work.slot, work.replication.create_slot
    try:
        work.publisher.lag(slot, {})
        there = True
    except LostSlot:
        there = False
    if there and create:
        raise RefusedOperation(
            f'slot "{slot}" already exists at the publisher',
            where=work.publisher.origin,
            why="a slot has one reader, and another replication may read that one",
            fix="drop the replication, and create it with another slot: --slot; or, if nobody else "
            "reads that one, with --no-create-slot",
        )
    if not there and not create:
        raise RefusedOperation(
            f'there is no slot "{slot}" to begin with',
            where=work.publisher.origin,
            why="create_slot is False, so the replication does not make it",
            fix="create it at the publisher; or let the replication do it: "
            + command("alter", work.replication.name, "--create-slot"),
        )


def _meet_new(work: ReplicationRun, offer: TableOffer) -> None:
    """Begin with new tables, and stop with tables that are no longer published."""
    known, there = work.state.tables, {*offer.tables, *offer.refused}
    new = sorted(n for n in there if n not in known or known[n].state is TableState.REMOVED)
    gone = [n for n in known if n not in there and known[n].state is not TableState.REMOVED]
    for name in gone:
        logger.info("%s: %s is not published any more", work.replication.name, name)
        work.set(name, TableState.REMOVED)

    def with_new(state: ReplicationState) -> ReplicationState:
        added = {
            name: Progress(
                state.replication.target(name),
                # What an earlier time has left in the target's log is no copy of this one.
                committed=state.tables[name].committed if name in state.tables else None,
                origin_id=offer.tables[name].id if name in offer.tables else "",
            )
            for name in new
        }
        return replace(state, tables={**state.tables, **added})

    if new:
        work.hold.save(with_new)


def _require_fine(work: ReplicationRun, name: str, published: Mapping[str, PublishedTable]) -> None:
    """
    Raises:
        InvalidDefinition: Another table has the target, such as one of another schema. A table that
            was copied to it keeps it.
        LostTable: It was dropped at a server and created again, which the server's log does not
            show: the target has rows of the earlier one.
    """
    _require_own_target(work, name, published)
    table, known = published[name], work.state.tables[name]
    if known.is_in_slot and table.id and known.origin_id and table.id != known.origin_id:
        raise LostTable(
            f'the published table "{table.name}" was replaced by another table',
            why="it was dropped and created again, and the target has rows of the one before",
            fix="copy it again, which replaces its rows",
        )


def _require_own_target(work: ReplicationRun, name: str, published: Iterable[str]) -> None:
    if not work.state.tables[name].is_due:
        return
    target = work.replication.target(name)
    place = work.targets.target(target).location
    for other in published:
        theirs = work.targets.target(work.replication.target(other)).location
        if other != name and theirs == place:
            free = command("alter", work.replication.name, "--target", f"{name}=SCHEMA.TABLE")
            raise InvalidDefinition(
                f'replication "{work.replication.name}" has two tables for the target "{target}"',
                why=f"{other} and {name} go to it, and the rows of one would be deleted as the "
                "other's",
                fix=f"give each published table a target of its own: {free}",
            )


def _begin_without_copy(
    work: ReplicationRun, published: Mapping[str, PublishedTable], names: list[str]
) -> None:
    fitting, refused = of_each(
        names, lambda n: work.targets.require_fit({n: published[n]}, work.replication)
    )
    for name, error in refused.items():
        work.stop(name, error)
    names = [*fitting]
    work.step("slot")
    for name, position in work.publisher.create_slot(work.slot, names).items():
        log = work.targets.log(work.state.tables[name].target)
        table_id = "" if log is None else log.id
        work.set(name, TableState.READY, position=position, table_id=table_id)


def _see_targets(work: ReplicationRun) -> None:
    """Take over from the logs of the targets what a crash kept from being stored."""

    def look(name: str) -> Progress:
        progress = work.state.tables[name]
        if progress.is_in_slot:
            return work.targets.read_progress(name, progress)
        is_new = progress.state is TableState.NEW
        return _recover_copy(work, progress) if is_new else progress

    found, refused = of_each([n for n in work.state.tables if n not in work.troubles], look)
    changed = {n: seen for n, seen in found.items() if seen != work.state.tables[n]}
    if changed:
        work.hold.save(lambda state: replace(state, tables={**state.tables, **changed}))
    for name, error in refused.items():
        work.stop(name, error)


def _recover_copy(work: ReplicationRun, progress: Progress) -> Progress:
    """A new table whose copy was committed, but not stored."""
    log = work.targets.log(progress.target)
    at = work.targets.position(progress.target)
    before = -1 if progress.committed is None else progress.committed
    if log is None or at is None or at <= before:
        return progress
    return progress.without_trouble(TableState.READY, position=at, committed=at, table_id=log.id)
