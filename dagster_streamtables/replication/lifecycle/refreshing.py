"""One refresh of a replication, from its first step to its report, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lifecycle.data_transfer import (
    begin_anew,
    catch_up,
    copy_due,
    forget,
    mark_for_recopy,
    require_alone,
    require_in_replication,
    with_command,
)
from dagster_streamtables.replication.lifecycle.declaration_checks import (
    overlaps,
    require_no_circle,
)
from dagster_streamtables.replication.lifecycle.origin_comparison import check_tables
from dagster_streamtables.replication.lifecycle.refresh_start import begin
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replication_errors import (
    DisabledReplication,
    ReplicationInUse,
    about,
    command,
    in_a_line,
    passes,
)
from dagster_streamtables.replication.lifecycle.replication_report import TableCheck, TableState
from dagster_streamtables.replication.lifecycle.replication_run import (
    ReplicationRun,
    Step,
    Targets,
    unpublish,
)
from dagster_streamtables.replication.lifecycle.replication_state import (
    ReplicationLease,
    ReplicationState,
    Store,
    hold_lease,
)
from dagster_streamtables.replication.model.replication_model import LostTable, Publisher
from dagster_streamtables.runtime.errors.error_translation import translate_final_errors
from dagster_streamtables.runtime.errors.slot_errors import LostSlot
from dagster_streamtables.runtime.lake import Lake

_Result = TypeVar("_Result")


@dataclass
class ReplicationRunner:
    lake: Lake
    store: Store
    step: Step = field(default=lambda step: None)
    options: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Replication → the storage options of a given declaration: they are not stored."""
    without_circle: dict[str, object] = field(default_factory=dict[str, object])
    """Replication → what was found to be in no circle."""

    def remember(self, replication: Replication) -> None:
        source = replication.publisher
        if source.storage_options is not None:
            self.options[replication.name] = source.storage_options

    def do(self, name: str, wait: float, act: Callable[[ReplicationRun], _Result]) -> _Result:
        """Act on a replication that is enabled, and store how it ended.

        Raises:
            ReplicationInUse: Another process works at it.
            DisabledReplication: It is disabled.
        """
        with hold_lease(self.store, name, wait=wait) as mine:
            if not mine.state.enabled:
                raise DisabledReplication(
                    f'replication "{name}" is disabled',
                    why=mine.state.error or "somebody disabled it, or it was created so",
                    fix=f"mend what is wrong, and enable it: {command('enable', name)}",
                )
            begun = time.monotonic()
            try:
                work = self._work(mine)
                with translate_final_errors():
                    found = act(work)
            except ReplicationInUse:
                raise
            except Exception as error:
                mine.last = _failure(error)
                if isinstance(error, StreamTablesError):
                    raise about(error, name) from error
                raise
            trouble = next(iter(work.troubles.values()), None)
            ended = _success(time.monotonic() - begun) if trouble is None else _failure(trouble)
            mine.last = ended
            return found

    def begin(self, name: str) -> None:
        """Begin with a replication that was just stored; if it cannot begin, take it back."""
        with hold_lease(self.store, name) as mine:
            try:
                self._begin(mine)
            except BaseException as error:
                self._take_back(mine)
                if isinstance(error, StreamTablesError):
                    raise about(error, name) from error
                raise

    def require_no_circle(self, replication: Replication, published: Collection[str]) -> None:
        """Raise `InvalidDefinition` if it would replicate rows in a circle."""
        options = self.options.get(replication.name)
        require_no_circle(replication, published, self.lake, options)

    def _check_circles(self, state: ReplicationState, published: Collection[str]) -> None:
        """Once for each process, and again when other tables are published: another replication
        that closes a circle is refused itself."""
        this = state.id, state.replication.to_json(), frozenset(published)
        if self.without_circle.get(state.replication.name) != this:
            self.require_no_circle(state.replication, published)
            self.without_circle[state.replication.name] = this

    def publisher(self, state: ReplicationState) -> Publisher:
        reader = f"replication {state.replication.name} of {self.lake.root} ({state.id[:8]})"
        options = self.options.get(state.replication.name)
        source = state.replication.publisher
        return source.connect(self.lake, reader, state.replication.publications, options)

    def _begin(self, mine: ReplicationLease) -> None:
        work, declared = self._work(mine), mine.state.replication
        if declared.publisher.publications:
            published = work.publisher.offer().require()
            self.require_no_circle(declared, published)
            work.targets.require_fit(published, declared)
        work.targets.require_fit(begin(work), declared)
        for error in work.troubles.values():
            raise error

    def _take_back(self, mine: ReplicationLease) -> None:
        with suppress(Exception):  # report the first error
            state = mine.state
            if state.begun:
                publisher = self.publisher(state)
                if state.replication.create_slot and state.slot is not None:
                    publisher.drop_slot(state.slot)
                unpublish(publisher, state)
        with suppress(Exception):
            self.store.change(mine.name, lambda state: None)

    def _work(self, mine: ReplicationLease) -> ReplicationRun:
        publisher = self.publisher(mine.state)
        names = self.lake.access.catalog.names
        return ReplicationRun(
            mine,
            publisher,
            Targets(self.lake, mine.name, mine.state.id, publisher.origin),
            lambda tables: overlaps(mine.name, self.store.all(), names, tables),
            lambda published: self._check_circles(mine.state, published),
            self.step,
        )


def _failure(error: Exception) -> Callable[[ReplicationState], ReplicationState]:
    now, said, lasts = datetime.now(UTC).isoformat(), in_a_line(error), not passes(error)

    def record_failure(state: ReplicationState) -> ReplicationState:
        stops = state.replication.disable_on_error and lasts
        return replace(
            state,
            enabled=state.enabled and not stops,
            error=said,
            errors=state.errors + 1,
            failed_at=now,
        )

    return record_failure


def _success(seconds: float) -> Callable[[ReplicationState], ReplicationState]:
    now = datetime.now(UTC).isoformat()

    def record_success(state: ReplicationState) -> ReplicationState:
        longest = max(state.longest_refresh, round(seconds, 3))
        return replace(state, error=None, errors=0, refreshed_at=now, longest_refresh=longest)

    return record_success


def refresh(work: ReplicationRun, max_rows: int | None = None) -> bool:
    """Copy what is new, and apply the changes.

    Returns:
        Whether nothing was left when the publisher was read last.

    Raises:
        StreamTablesError: What stopped it. `ReplicationRun.troubles` has the errors of single
            tables.
    """
    try:
        complete = _refresh(work, max_rows)
        if mark_for_recopy(work):
            complete = _refresh(work, max_rows)
    except LostSlot as error:
        begin_anew(work, error)
        work.troubles.clear()
        complete = _refresh(work, max_rows)
    _report_losses(work)
    return complete


def _refresh(work: ReplicationRun, max_rows: int | None) -> bool:
    published = begin(work)
    if any(each.is_due for each in work.state.tables.values()):
        _require_slot(work)
    copy_due(work, published)
    return catch_up(work, max_rows)


def _report_losses(work: ReplicationRun) -> None:
    """Tables that were lost before are also in trouble. Without others the slot is dropped: a copy
    creates a new one."""
    tables = work.state.tables
    missing = {name: each for name, each in tables.items() if each.state is TableState.LOST}
    for name, each in missing.items():
        lost = LostTable(f'table "{name}" is lost', why=each.error, fix=each.fix)
        work.troubles.setdefault(name, lost)
    if missing and not any(each.is_in_slot or each.is_due for each in tables.values()):
        work.publisher.drop_slot(work.slot)
        work.hold.save(lambda state: replace(state, confirmed=None))


def _require_slot(work: ReplicationRun) -> None:
    """Raise `LostSlot` if there is none, and tables are followed: a copy would create it, and
    changes of these tables would be missing."""
    if work.state.slot_positions:
        work.publisher.lag(work.slot, work.state.slot_positions)


def copy_again(work: ReplicationRun, tables: Sequence[str]) -> bool:
    """Copy tables again, replacing their rows; all, with a new slot, if none are named.

    Raises:
        PublisherProblem: A table does not belong to the replication.
    """
    require_in_replication(work, tables)
    if tables:
        require_alone(work, tables)
        for name in tables:
            work.set(name, TableState.AGAIN, position=None)
        with suppress(LostSlot):  # the refresh reports it
            work.publisher.release(work.slot, tables)
    else:
        forget(work, [state for state in TableState if state is not TableState.REMOVED])
    return refresh(work)


def check(work: ReplicationRun, tables: Sequence[str]) -> dict[str, TableCheck]:
    """Compare tables with their origin at one moment; all, if none are named. A table in trouble is
    not equal.

    Raises:
        LostSlot: Changes may be missing. Nothing is copied again, whatever the replication says.
    """
    require_in_replication(work, tables)
    published = begin(work)
    try:
        # The moment is the start of a copy, which creates a missing slot.
        _require_slot(work)
        copy_due(work, published)
        _report_losses(work)
        names = tables or [*work.after, *work.troubles]
        return check_tables(work, published, names)
    except LostSlot as error:
        raise with_command(work, error) from error
