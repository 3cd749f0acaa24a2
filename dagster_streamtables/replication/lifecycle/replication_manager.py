"""`Replications`: everything that is done to the replications of a lake, and their status."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from dagster_streamtables.errors import (
    EnvironmentProblem,
    LostPublisher,
    PublisherProblem,
    RefusedOperation,
    StreamTablesError,
)
from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle import refreshing
from dagster_streamtables.replication.lifecycle.declaration_checks import (
    alter_state,
    overlaps,
    require_position,
)
from dagster_streamtables.replication.lifecycle.refreshing import ReplicationRunner
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replication_errors import (
    about,
    command,
    in_a_line,
    passes,
)
from dagster_streamtables.replication.lifecycle.replication_report import (
    ReplicationCheck,
    ReplicationRefresh,
    ReplicationStatus,
    TableState,
    TableStatus,
)
from dagster_streamtables.replication.lifecycle.replication_run import (
    ReplicationRun,
    captures_of,
    require_slot,
    unpublish,
)
from dagster_streamtables.replication.lifecycle.replication_state import (
    ReplicationState,
    Store,
    hold_lease,
)
from dagster_streamtables.replication.model.replication_model import Lag
from dagster_streamtables.runtime.lake import Lake

_LONGEST_PAUSE = 60.0


class Replications:
    """The replications of a lake. Threads and processes may share them: one works at a replication
    at a time, and the others raise an error.

    Methods raise `RefusedOperation` if there is no replication of a name.
    """

    def __init__(self, lake: Lake) -> None:
        """
        Args:
            lake: The lake with the targets, and with the states of the replications.
        """
        self._lake = lake
        self._store = Store(lake.root, lake.storage_options)
        self._runs = ReplicationRunner(lake, self._store)

    def create(self, replication: Replication) -> ReplicationStatus:
        """Store a replication, and, if it is enabled, check that its publisher lets it begin.

        Nothing is copied until the first refresh.

        Raises:
            RefusedOperation: There is one of that name, or its slot belongs to another.
            InvalidDefinition: It would replicate rows in a circle.
            PublisherProblem: The publisher refuses, or its tables cannot be replicated.
            TargetProblem: A target does not take what is published.
        """
        name = replication.name
        self._runs.remember(replication)

        def create_state(known: ReplicationState | None) -> ReplicationState:
            if known is not None:
                raise RefusedOperation(
                    f'replication "{name}" already exists',
                    why=f"it reads {known.replication.publisher.place}",
                    fix="choose another name, or change it: streamtables replications alter NAME",
                )
            return ReplicationState(replication, replication.enabled, replication.slot_name)

        self._store.commit(name, create_state)
        if replication.enabled:
            self._runs.begin(name)
        return self._log_warnings(name)

    def alter(self, replication: Replication, *, dry_run: bool = False) -> ReplicationStatus:
        """Store another declaration of a replication; its positions stay.

        A table with another target is copied to that one by the next refresh.

        Args:
            replication: The declaration.
            dry_run: Store nothing, and return the status that it would have.

        Raises:
            RefusedOperation: It would have another slot, or another kind of publisher.
            InvalidDefinition: It would replicate rows in a circle.
        """
        self._runs.remember(replication)
        before = self._store.read(replication.name)
        if replication != before.replication:
            self._runs.require_no_circle(replication, before.tables)
            if dry_run:
                after = alter_state(before, replication)
                return self._status(
                    replication.name, {**self._store.all(), replication.name: after}
                )
            self._store.change(replication.name, lambda state: alter_state(state, replication))
            return self._log_warnings(replication.name)
        return self.read(replication.name)

    def refresh(
        self,
        replication: str | Replication,
        *,
        max_rows: int | None = None,
        wait: float = 0.0,
        strict: bool = True,
    ) -> ReplicationRefresh:
        """Copy new tables, then apply the changes of all, exactly once.

        A table in trouble stops, and the others go on. Its error is raised at the end.

        Args:
            replication: Its name; or its declaration, by which it is created or altered first.
            max_rows: Stop after this number of changes, with the transaction that reaches it.
            wait: Seconds for which to wait for another process that refreshes it.
            strict: Whether the trouble of a table is raised; if not, it is in `stopped` of the
                result.

        Raises:
            ReplicationInUse: Another process refreshes it, for longer.
            DisabledReplication: It is disabled.
            LostSlot: The publisher released its slot: changes are missing.
            ReplicationConflict: A change does not fit the rows of its target.
            TargetProblem: A target does not take what is published, or is no longer the same table.
            PublisherProblem: The publisher refuses.
            LostPublisher: It cannot be reached; a retry is enough.
        """
        done = self._run_and_report(
            self._store_declaration(replication),
            wait,
            lambda work: refreshing.refresh(work, max_rows),
        )
        return done.require() if strict else done

    def copy(self, name: str, *tables: str, wait: float = 0.0) -> ReplicationRefresh:
        """Copy tables again, replacing their rows; all, with a new slot, if none are named. Then
        refresh. As for `refresh`, but only the trouble of the named tables is raised."""
        done = self._run_and_report(name, wait, lambda work: refreshing.copy_again(work, tables))
        known = self._store.read(name).tables
        others = {known[each].target for each in known.keys() - {*tables}} if tables else set[str]()
        mine = {target: error for target, error in done.stopped.items() if target not in others}
        replace(done, stopped=mine).require()
        return done

    def follow(self, name: str, seconds: float = 1.0) -> Iterator[ReplicationRefresh]:
        """Refresh again and again, with a pause between. Errors that a retry may fix are tried
        again. A table in trouble is in `stopped` of the yielded value."""
        pause = seconds
        while True:
            try:
                yield self.refresh(name, strict=False)
                pause = seconds
            except Exception as error:
                if not passes(error):
                    raise
                logger.warning("%s: %s", name, in_a_line(error))
                pause = min(max(pause, 0.5) * 2, max(_LONGEST_PAUSE, seconds))
            time.sleep(pause)

    def check(self, name: str, *tables: str, wait: float = 0.0) -> ReplicationCheck:
        """Compare targets with their origin at one moment, to which they are refreshed first: a
        snapshot of a server, or the versions of a lake.

        Args:
            name: The replication.
            tables: As the publisher names them; all if none are named.
            wait: As for `refresh`.
        """
        begun = time.perf_counter()
        found = self._runs.do(name, wait, lambda work: refreshing.check(work, tables))
        return ReplicationCheck(name, found, time.perf_counter() - begun)

    def list(self) -> list[ReplicationStatus]:
        """All replications, sorted by name."""
        states = self._store.all()
        return [self._status(name, states) for name in states]

    def read(self, name: str) -> ReplicationStatus:
        """One replication."""
        return self._status(name, {**self._store.all(), name: self._store.read(name)})

    def lag(self, name: str, *, stopped: bool = True) -> Lag:
        """How far it is behind its publisher.

        Args:
            name: The replication.
            stopped: Whether to count tables in trouble, whose changes the publisher keeps.

        Raises:
            RefusedOperation: It has not begun, or is detached.
            LostSlot: Its slot no longer exists.
        """
        state = self._store.read(name)
        slot = require_slot(state)
        tables = {
            each: position
            for each, position in state.slot_positions.items()
            if stopped or state.tables[each].state is TableState.READY
        }
        if not tables:
            raise RefusedOperation(
                f'replication "{name}" has copied nothing yet',
                why="none of its tables has a position",
                fix=f"refresh it: {command('refresh', name)}",
            )
        return self._runs.publisher(state).lag(slot, tables)

    def captures(self, name: str) -> Mapping[str, str]:
        """How the changes of each table come: `WAL`, from a server's log; `TRIGGER`, from triggers
        that write them; `TRANSITIONING` between the two. Of a lake: `LOG`."""
        state = self._store.read(name)
        return captures_of(self._runs.publisher(state), require_slot(state), state.slot_positions)

    def skip(self, name: str, position: int | str, table: str | None = None) -> None:
        """Leave a transaction out, as a whole, when it comes.

        Args:
            name: The replication.
            position: The position of the transaction, from an error; an LSN may be written
                ``0/16B3748``.
            table: The table with the position, as the publisher names it: each table of a lake has
                its own versions. None for all of a server, or the only one of a lake.

        Raises:
            RefusedOperation: The position is applied already, or belongs to no known table.
        """

        def add_skip(state: ReplicationState) -> ReplicationState:
            at = require_position(state, position, table)
            known = at in state.skips
            return state if known else replace(state, skips=(*state.skips, at))

        self._store.change(name, add_skip)

    def disable(self, name: str) -> None:
        """Refuse to refresh it until it is enabled. Its slot keeps what it will need."""
        self._store.change(name, lambda state: replace(state, enabled=False))

    def enable(self, name: str) -> None:
        """Allow refreshes again, and reset the number of errors in a row.

        Raises:
            RefusedOperation: It is detached.
        """

        def enable_state(state: ReplicationState) -> ReplicationState:
            require_slot(state)
            return replace(state, enabled=True, errors=0)

        self._store.change(name, enable_state)

    def detach(self, name: str, *, wait: float = 0.0) -> None:
        """Disable it, and forget its slot, which stays at the publisher and keeps its changes until
        it is dropped there. Then the replication can be dropped without the publisher."""
        with hold_lease(self._store, name, wait=wait) as mine:
            mine.save(lambda state: replace(state, enabled=False, slot=None))

    def drop(self, name: str, *, keep_slot: bool = False, wait: float = 0.0) -> None:
        """Drop its slot, and then its state. The targets stay as they are.

        Args:
            name: The replication.
            keep_slot: Leave the slot at the publisher, which then need not be reachable.
            wait: As for `refresh`.

        Raises:
            LostPublisher: The publisher cannot be reached; nothing was dropped.
        """
        with hold_lease(self._store, name, wait=wait) as mine:
            if mine.state.begun and mine.state.slot is not None and not keep_slot:
                self._drop_slot(mine.state)
            self._store.change(name, lambda state: None)

    def _drop_slot(self, state: ReplicationState) -> None:
        try:
            publisher = self._runs.publisher(state)
            publisher.drop_slot(require_slot(state))
            unpublish(publisher, state)
        except (LostPublisher, EnvironmentProblem, PublisherProblem) as error:
            name = state.replication.name
            raise about(error, name).with_parts(
                fix=f"mend that; or detach the replication first ({command('detach', name)}), "
                f'and drop the slot "{state.slot}" at the publisher, which keeps its '
                "changes until then"
            ) from error

    def _store_declaration(self, replication: str | Replication) -> str:
        if isinstance(replication, str):
            return replication
        if self._store.find(replication.name) is None:
            self.create(replication)
        else:
            self.alter(replication)
        return replication.name

    def _log_warnings(self, name: str) -> ReplicationStatus:
        status = self.read(name)
        for warning in status.warnings:
            logger.warning("%s: %s", name, warning)
        return status

    def _run_and_report(
        self, name: str, wait: float, act: Callable[[ReplicationRun], bool]
    ) -> ReplicationRefresh:
        begun = time.perf_counter()

        def run_action(work: ReplicationRun) -> ReplicationRefresh:
            complete = act(work)
            tables = {
                each.target: work.report(table)
                for table, each in work.state.tables.items()
                if each.state is TableState.READY
            }
            stopped = {
                work.state.tables[table].target: about(error, name)
                for table, error in work.troubles.items()
            }
            seconds = time.perf_counter() - begun
            skipped = tuple(work.skipped)
            return ReplicationRefresh(name, tables, complete, seconds, skipped, stopped)

        return self._runs.do(name, wait, run_action)

    def _status(self, name: str, states: dict[str, ReplicationState]) -> ReplicationStatus:
        state = states[name]
        lease, warnings = state.lease, overlaps(name, states, self._lake.access.catalog.names)
        return ReplicationStatus(
            name=state.replication.name,
            replication=state.replication,
            enabled=state.enabled,
            slot=state.slot,
            tables=tuple(_of_table(each, state, self._lake) for each in sorted(state.tables)),
            error=state.error,
            errors=state.errors,
            failed_at=_time(state.failed_at),
            refreshed_at=_time(state.refreshed_at),
            conflicts=dict(state.conflicts),
            skips=tuple(map(str, state.skips)),
            worker=str(lease) if lease is not None and lease.runs() else "",
            warnings=(*warnings, *_late(state)),
        )


def _late(state: ReplicationState) -> Iterator[str]:
    """A warning if a refresh may take longer than its publisher waits."""
    source, longest = state.replication.publisher, timedelta(seconds=state.longest_refresh)
    deadline = source.slot_deadline
    if deadline is not None and deadline < 2 * longest:
        yield (
            f"its longest refresh took {longest}, and its publisher lets the slot go after "
            f"{deadline} (slot_deadline): choose at least twice as much as a refresh takes"
        )


def _of_table(name: str, state: ReplicationState, lake: Lake) -> TableStatus:
    progress = state.tables[name]
    error, since = progress.error, _time(progress.since or None)
    deadline = state.replication.stopped_deadline
    kept = since + deadline if since is not None and deadline is not None else None
    try:
        log = lake.access.catalog.newest(progress.target)
    except StreamTablesError as unreadable:  # it must not hide the others
        log, error = None, error or unreadable.what
    return TableStatus(
        name=name,
        target=progress.target,
        state=progress.state,
        position=progress.position,
        version=None if log is None else log.version,
        rows=None if log is None else log.row_count,
        error=error,
        fix=progress.fix,
        since=since,
        kept_until=kept if progress.state is TableState.STOPPED else None,
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
