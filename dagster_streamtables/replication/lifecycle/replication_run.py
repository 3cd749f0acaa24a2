"""`ReplicationRun`: a refresh of a replication under way, its publisher and its targets.

A table in trouble stops, and the other tables of the replication go on. A stopped table keeps its
position, and its publisher keeps the later changes: each refresh tries the table again, exactly
where it was. That ends at the deadline of the replication, or if changes are missing: then the
table is lost, its publisher keeps nothing for it, and only a new copy repairs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from dagster_streamtables.amounts import duration
from dagster_streamtables.errors import (
    PublisherProblem,
    RefusedOperation,
    StreamTablesError,
    TargetProblem,
)
from dagster_streamtables.replication.apply.contract import ApplyResult, Choices
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replication_errors import command, in_a_line
from dagster_streamtables.replication.lifecycle.replication_report import TableRefresh, TableState
from dagster_streamtables.replication.lifecycle.replication_state import (
    Progress,
    ReplicationLease,
    ReplicationState,
)
from dagster_streamtables.replication.model.replication_model import (
    LostTable,
    PublishedTable,
    Publisher,
)
from dagster_streamtables.replication.target.target_columns import columns_of
from dagster_streamtables.replication.target.target_table import ReplicationTarget, open_target
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_locations import is_remote
from dagster_streamtables.runtime.errors.slot_errors import LostSlot
from dagster_streamtables.runtime.errors.table_errors import name_of_catalog
from dagster_streamtables.runtime.lake import Lake

Step = Callable[[str], None]
"""Called before each step that a crash could separate from the one before."""


@dataclass
class ReplicationRun:
    hold: ReplicationLease
    publisher: Publisher
    targets: Targets
    overlaps: Callable[[Collection[str]], list[str]]
    """Published tables → which other replications write to a target of theirs, in sentences."""
    require_no_circle: Callable[[Collection[str]], None]
    """Refuse published tables whose rows would come back to where they come from."""
    step: Step = lambda step: None
    """Called with the name of each step."""
    done: dict[str, TableRefresh] = field(default_factory=dict[str, TableRefresh])
    """By the name of the published table."""
    skipped: list[str] = field(default_factory=list[str])
    troubles: dict[str, StreamTablesError] = field(default_factory=dict[str, StreamTablesError])
    """Published table → why it is not touched for the rest of the refresh."""

    @property
    def state(self) -> ReplicationState:
        return self.hold.state

    @property
    def replication(self) -> Replication:
        return self.state.replication

    @property
    def slot(self) -> str:
        return require_slot(self.state)

    @property
    def after(self) -> dict[str, int]:
        """The position of each table that can go on. Stopped tables are tried again."""
        return {n: at for n, at in self.state.slot_positions.items() if n not in self.troubles}

    def stop(self, table: str, error: StreamTablesError) -> None:
        """Stop a table, and let the others go on."""
        before = self.state.tables[table]
        after, told = record_trouble(before, error, self.replication, table)
        self.troubles[table] = told
        self.hold.save(lambda state: replace(state, tables={**state.tables, table: after}))
        if after.state is TableState.LOST and before.state is not TableState.LOST:
            with suppress(LostSlot):
                self.publisher.release(self.slot, [table])

    def target(self, table: str) -> ReplicationTarget:
        """The target of a published table."""
        return self.targets.target(self.state.tables[table].target)

    def choices(self, table: str) -> Choices:
        chosen = self.replication
        return Choices(
            on_conflict=chosen.on_conflict,
            add_columns=chosen.add_columns,
            record_idle=False,
            commit_by_commit=chosen.commit_by_commit,
            skip={each.position for each in self.state.skips if each.is_about(table)},
        )

    def set(self, table: str, state: TableState, **changes: Any) -> None:
        """Store the state of a table that is in no trouble."""
        self.hold.save(lambda before: before.with_table(table, state, **changes))

    def count(self, table: str, applied: ApplyResult, *, copied: bool = False) -> None:
        """Add to the report, and to the stored conflicts."""
        before = self.report(table)
        after = before.with_copy(applied) if copied else before.with_changes(applied)
        self.done[table] = after
        if applied.conflicts:
            self.hold.save(
                lambda state: replace(
                    state, conflicts=dict(Counter(state.conflicts) + applied.conflicts)
                )
            )

    def report(self, table: str) -> TableRefresh:
        known = self.done.get(table)
        return known or TableRefresh(table, position=self.state.tables[table].position)


@dataclass(frozen=True)
class Targets:
    lake: Lake
    name: str
    """The replication's name."""
    id: str
    """The replication's id."""
    origin: str
    """The publisher's origin."""

    def target(self, name: str) -> ReplicationTarget:
        """The target with the name of a table of the lake."""
        access = self.lake.access
        names = access.catalog.names
        if names.catalogs.has(name):
            raise name_of_catalog(name)
        return ReplicationTarget(
            names.own_location(name),
            self.id,
            self.origin,
            self.lake.storage_options,
            session=lambda: access.session(name).spark,
        )

    def log(self, name: str) -> TableLog | None:
        """The log of a table of the lake, at its newest version."""
        return self.lake.access.catalog.newest(name)

    def position(self, name: str) -> int | None:
        """The position in the log of a target."""
        log = self.log(name)
        return None if log is None else log.transaction(self.target(name).application)

    def read_progress(self, table: str, progress: Progress) -> Progress:
        """The progress of a table according to its target's log, which is ahead after a crash.

        Raises:
            TargetProblem: The target was dropped, is another table, or was restored to an earlier
                state, so that the changes since are missing.
        """
        log = self.log(progress.target)
        at = None if log is None else log.transaction(self.target(progress.target).application)
        if why := _loss_reason(progress, log, at):
            raise TargetProblem(
                f'the target "{progress.target}" is not the table that was written',
                where=self.lake.access.catalog.names.own_location(progress.target),
                why=why,
                fix="copy the table again, which replaces its rows: "
                f"{command('copy', self.name, table)}; or put back the target as it was",
            )
        assert log is not None
        position = max((p for p in (progress.position, at) if p is not None), default=None)
        table_id = progress.table_id or log.id
        return replace(progress, position=position, committed=at, table_id=table_id)

    def require_fit(self, tables: Mapping[str, PublishedTable], replication: Replication) -> None:
        """Check the targets of tables before they are touched.

        Raises:
            TargetProblem: One is not a Delta table, is missing, or does not take what is published.
        """
        for name, table in tables.items():
            target = self.target(replication.target(name))
            log = self.log(replication.target(name))
            if log is None:
                require_room(name, target)
            if log is not None or not replication.copy:
                open_target(target, table)
            if log is not None and not replication.add_columns:
                columns_of(log, table)


def _loss_reason(progress: Progress, log: TableLog | None, at: int | None) -> str:
    if log is None:
        return "there is no Delta table at its place any more"
    if progress.table_id and log.id != progress.table_id:
        return "another table was created in its place"
    if progress.committed is not None and (at is None or at < progress.committed):
        return (
            f"its log says that position {at} is applied, and {progress.committed} was: its files "
            "were put back from a copy"
        )
    return ""


def require_room(name: str, target: ReplicationTarget, *, for_leftovers: bool = False) -> None:
    """Raise `TargetProblem` if there are other files where a target would be created.

    Args:
        for_leftovers: Whether data files may be left of a copy that was killed.
    """
    if is_remote(target.location):
        return
    place = Path(target.location)
    there = [*place.iterdir()] if place.is_dir() else [place] * place.exists()
    if for_leftovers:
        there = [each for each in there if each.suffix != ".parquet" and not each.is_dir()]
    if there:
        raise TargetProblem(
            f'the target of "{name}" is not a Delta table',
            where=target.location,
            why="there are other files at its place",
            fix="choose another target, or move the files away",
        )


@runtime_checkable
class ServerPublisher(Protocol):
    """A publisher at which publications can be created for tables and schemas, and that captures
    the changes of its tables in several ways."""

    def has_publication(self, name: str) -> bool: ...
    def create_publication(
        self, name: str, *, tables: Sequence[str], schemas: Sequence[str]
    ) -> None: ...
    def set_publication(
        self, name: str, *, tables: Sequence[str], schemas: Sequence[str]
    ) -> None: ...
    def drop_publication(self, name: str) -> None: ...
    def capture_states(self, slot: str) -> Mapping[str, object]: ...


def require_no_publication(publisher: Publisher, replication: Replication) -> None:
    """Raise `PublisherProblem` if a foreign publication has the name of the one to create."""
    name = replication.slot_name
    if replication.publisher.publication_members is None:
        return
    if isinstance(publisher, ServerPublisher) and publisher.has_publication(name):
        raise PublisherProblem(
            f'publication "{name}" already exists at the publisher',
            where=publisher.origin,
            why="the replication makes one of that name for its tables",
            fix="name it (--publication) instead of the tables, or choose another slot (--slot)",
        )


def publish(publisher: Publisher, state: ReplicationState) -> None:
    """Create the publication of the declared tables and schemas, or change it to them. One that is
    no longer needed is dropped."""
    wanted = state.replication.publisher.publication_members
    if wanted is None or not isinstance(publisher, ServerPublisher):
        unpublish(publisher, state)
        return
    name, (tables, schemas) = state.replication.slot_name, wanted
    if not publisher.has_publication(name):
        publisher.create_publication(name, tables=tables, schemas=schemas)
    elif state.publication != wanted:
        publisher.set_publication(name, tables=tables, schemas=schemas)


def unpublish(publisher: Publisher, state: ReplicationState) -> None:
    """Drop the publication that was created for it."""
    if state.publication is not None and isinstance(publisher, ServerPublisher):
        publisher.drop_publication(state.replication.slot_name)


def captures_of(publisher: Publisher, slot: str, tables: Iterable[str]) -> dict[str, str]:
    """How the changes of each table come; see `Replications.captures`."""
    if not isinstance(publisher, ServerPublisher):
        return dict.fromkeys(tables, "LOG")
    known = publisher.capture_states(slot)
    return {name: str(known.get(name, "WAL")) for name in tables}


def require_slot(state: ReplicationState) -> str:
    """The name of the slot; raise `RefusedOperation` if the replication is detached."""
    if state.slot is None:
        raise RefusedOperation(
            f'replication "{state.replication.name}" has no slot',
            why="it was detached",
            fix="drop it, and create it again: it copies its tables anew",
        )
    return state.slot


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
    """The progress of a table that cannot go on, and the error to report."""
    now = datetime.now(UTC)
    since = progress.since if progress.error and progress.since else now.isoformat()
    told = with_table_name(error, table, declared.name)
    waited, deadline = now - datetime.fromisoformat(since), declared.stopped_deadline
    if not progress.is_due:
        is_lost = isinstance(error, LostSlot)
        if not is_lost and deadline is not None and waited >= deadline:
            is_lost, told = True, _deadline_error(told, declared, table, waited)
        if is_lost:
            progress = replace(progress, state=TableState.LOST, position=None)
        else:
            progress = replace(progress, state=TableState.STOPPED)
    return replace(progress, error=in_a_line(told), fix=told.fix, since=since), told


def _deadline_error(
    told: StreamTablesError, declared: Replication, table: str, waited: timedelta
) -> LostTable:
    return told.with_parts(
        LostTable,
        why=f"{told.why}; it has been stopped for {duration(waited.total_seconds())}, so its "
        "publisher no longer keeps its changes (stopped_deadline)",
        fix=f"{told.fix}; then copy it again: {command('copy', declared.name, table)}",
    )
