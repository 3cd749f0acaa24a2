"""The status of stream tables, from their logs and controls only, without Spark."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.delta.actions import moment
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.model.table_state import StreamTableState
from dagster_streamtables.runtime.observe.controls import Control, Controls
from dagster_streamtables.runtime.observe.retention import Retention
from dagster_streamtables.runtime.observe.source_health import SourceHealth
from dagster_streamtables.runtime.refresh.intermediate_tables import location_of


def behind_since(
    name: str, found: Mapping[str, Status], known: dict[str, datetime | None]
) -> datetime | None:
    """The first commit time that a table does not reflect, directly or through stream tables. All
    tables are in `found`; `known` caches the results."""
    if name not in known:
        known[name] = None  # ends a cycle of tables that read each other
        sources = found[name].sources
        times = [each.behind_since for each in sources]
        times += [behind_since(s.source, found, known) for s in sources if s.source in found]
        known[name] = min((each for each in times if each is not None), default=None)
    return known[name]


def data_as_of(
    name: str, found: Mapping[str, Status], known: dict[str, datetime | None]
) -> datetime | None:
    """The commit time of the newest version that a table reflects, of the tables at the bottom.

    A table's commit stores it as of that commit. Since then, a stream table that it reads may
    reflect more without a change of its rows; a table that reflects all of them also reflects that.
    The arguments are those of `behind_since`.
    """
    if name not in known:
        known[name] = found[name].data_timestamp
        below = [
            data_as_of(each.source, found, known)
            for each in found[name].sources
            if each.source in found and not each.is_missing and each.behind_since is None
        ]
        known[name] = max((t for t in (known[name], *below) if t is not None), default=None)
    return known[name]


class Condition(enum.StrEnum):
    """Whether a stream table is kept up to date."""

    NEW = "NEW"
    """It has never been refreshed."""
    ACTIVE = "ACTIVE"
    ORPHANED = "ORPHANED"
    """It is stored, and none of the given declarations has its name."""
    SUSPENDED = "SUSPENDED"
    """A person suspended it."""
    ERROR = "ERROR"
    """It was suspended after errors, its declaration or its log is broken, or a source no longer
    exists."""


class Deadline(Protocol):
    """The part of a schedule that decides whether a table is late."""

    @property
    def text(self) -> str: ...

    def deadline(self, last: datetime) -> datetime:
        """When a table that does not reflect a commit made at `last` becomes late."""
        ...


@dataclass(frozen=True)
class TableDeclaration:
    name: str
    table: StreamTable | None = None
    """None if the declaration is broken."""
    schedule: Deadline | None = None
    """Its own, or that of a table that reads it."""
    resolved: str = ""
    """The schedule in words, with its origin."""
    problem: StreamTablesError | None = None


Declarations = Iterable[StreamTable | TableDeclaration] | None
"""What is known to be declared; None if that is not known."""


@dataclass(frozen=True)
class IntermediateStatus:
    """An intermediate table of a stream table, at its newest version."""

    name: str
    version: int
    rows: int | None
    bytes: int
    files: int


@dataclass(frozen=True)
class Status:
    """The status of one stream table. Unknown values are None, never 0."""

    table: str
    status: Condition
    why: str = ""
    """Why it is suspended, or what is wrong; empty if nothing is."""
    suspended: bool = False
    """Whether a refresh is refused, until a person resumes it."""
    unreadable: bool = False
    """Its log, its control, or the log of a source cannot be read; `why` has the error."""
    declared: bool = False
    """Whether it is among the given declarations."""
    mode: str | None = None
    schedule: str | None = None
    """As declared."""
    resolved_schedule: str | None = None
    populated: bool = False
    errors: int = 0
    """Number of consecutive errors that only a person can fix."""
    error: str = ""
    """The error of the last attempt, of any kind; empty if it succeeded."""
    error_at: datetime | None = None
    failed: int = 0
    """Failed attempts since the table was created, for any reason."""
    work: tuple[str, ...] = ()
    """What the next refresh has to do, each a clause; empty if nothing, or if that is not known.
    The sensor, a worker and conditions decide by the same."""
    data_timestamp: datetime | None = None
    """The commit time of the newest version that it reflects, of the tables at the bottom: those
    that it reads, directly or through stream tables, and that are no stream tables."""
    refreshed_at: datetime | None = None
    """When a refresh last committed; a refresh that finds nothing does not commit."""
    stale_since: datetime | None = None
    """The commit time of the first version with new rows that it does not reflect, directly or
    through a stream table; None if it reflects all, or a source no longer exists."""
    staleness_seconds: float | None = None
    """Time since then; 0 if it reflects all; None if a source no longer exists."""
    stale: bool | None = None
    """Whether it is staler than its schedule allows; None if it has no known schedule."""
    version: int | None = None
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    sources: tuple[SourceHealth, ...] = ()
    intermediates: tuple[IntermediateStatus, ...] = ()
    fallbacks: int = 0
    """Number of consecutive refreshes, up to the last, that fell back to a full run."""
    fallback: str = ""
    """Why the last of them fell back."""
    refreshes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Committed refreshes since the table was created, by action."""


@dataclass(frozen=True)
class Statuses:
    catalog: TableCatalog
    controls: Controls
    retention: Retention

    def of(self, tables: Declarations, now: datetime) -> list[Status]:
        """The status of the declared tables, and of the other existing ones, by name."""
        known = tables is not None
        declared = {each.name: _to_declaration(each) for each in tables or ()}
        names = {*declared, *self.retention.stream_tables(), *self._names_in_controls(known)}
        found = {name: self._read(name, declared.get(name), known) for name in sorted(names)}
        since: dict[str, datetime | None] = {}
        as_of: dict[str, datetime | None] = {}
        return [
            replace(
                _with_staleness(each, behind_since(each.table, found, since), declared, now),
                data_timestamp=data_as_of(each.table, found, as_of),
            )
            for each in found.values()
        ]

    def _names_in_controls(self, known: bool) -> Iterator[str]:
        """Tables that are suspended or failing, including some that were never created.

        If the declarations are known, a failure of a table that has neither rows nor a declaration
        is over; a person's suspension lasts until a person ends it.
        """
        for name in self.controls.names():
            try:
                control = self.controls.read(name)
                if control.held or (control.speaks and not known):
                    yield name
            except StreamTablesError:
                yield name  # its status reports the error

    def _read(self, name: str, expected: TableDeclaration | None, known: bool) -> Status:
        # A table that cannot be read must not hide the others.
        try:
            found = self._table_status(name, expected)
            if not known or expected is not None or not found.populated:
                return found
            # Nothing refreshes a table without a declaration, so nothing is due.
            why = "no declaration has its name" + f"; suspended: {found.why}" * found.suspended
            return replace(found, status=Condition.ORPHANED, why=why)
        except StreamTablesError as error:
            return _broken(name, expected, error.what)
        except Exception as error:
            return _broken(name, expected, first_line(str(error)))

    def _table_status(self, name: str, expected: TableDeclaration | None) -> Status:
        table = expected.table if expected is not None else None
        control = self.controls.of(table) if table is not None else self.controls.read(name)
        stored = self.catalog.table_at(self.catalog.names.own_location(name))
        last = stored.refreshed if stored is not None else None
        found = _base_status(name, expected, control, populated=last is not None)
        if stored is None or last is None:
            return found
        state = last.state
        sources = tuple(self.retention.of(name))
        found = _with_missing_sources(found, sources, table)
        return replace(
            found,
            work=self.catalog.pending(table) if table is not None else (),
            mode=found.mode or state.account.mode,
            data_timestamp=moment(state.data_timestamp),
            refreshed_at=moment(last.log.time_of(last.committed)),
            version=stored.log.version,
            rows=stored.log.row_count,
            bytes=sum(stored.log.file_sizes),
            files=len(stored.log.file_sizes),
            sources=sources,
            intermediates=tuple(self._intermediates(stored.log.location, state)),
            fallbacks=state.account.fallbacks,
            fallback=state.account.fallback,
            refreshes=dict(state.counts),
        )

    def _intermediates(
        self, location: str, state: StreamTableState
    ) -> Iterable[IntermediateStatus]:
        for name in state.intermediates:
            log = self.catalog.logs.newest(location_of(location, name))
            if log is not None:
                sizes = log.file_sizes
                yield IntermediateStatus(name, log.version, log.row_count, sum(sizes), len(sizes))


def _to_declaration(each: StreamTable | TableDeclaration) -> TableDeclaration:
    return each if isinstance(each, TableDeclaration) else TableDeclaration(each.name, each)


def _base_status(
    name: str, expected: TableDeclaration | None, control: Control, *, populated: bool
) -> Status:
    table, problem = (expected.table, expected.problem) if expected is not None else (None, None)
    return Status(
        table=name,
        status=_condition(control, problem, populated),
        why=problem.what if problem is not None else control.suspension,
        suspended=bool(control.suspension),
        declared=expected is not None,
        mode=None if table is None else str(table.mode),
        schedule=None if table is None else table.schedule or "CALCULATED",
        resolved_schedule=expected.resolved or None if expected is not None else None,
        populated=populated,
        errors=control.errors,
        error=control.error,
        error_at=datetime.fromisoformat(control.at) if control.at else None,
        failed=control.failed,
    )


def _condition(control: Control, problem: StreamTablesError | None, populated: bool) -> Condition:
    if problem is not None:
        return Condition.ERROR
    if control.suspension:
        return Condition.SUSPENDED if control.held else Condition.ERROR
    return Condition.ACTIVE if populated else Condition.NEW


def _with_missing_sources(
    found: Status, sources: Iterable[SourceHealth], table: StreamTable | None
) -> Status:
    """In error if a source of the last refresh no longer exists."""
    gone = [each for each in sources if each.is_missing]
    if gone and table is not None:
        gone = [each for each in gone if each.source in table.sources]
    if not gone or found.status is not Condition.ACTIVE:
        return found
    return replace(found, status=Condition.ERROR, why="; ".join(each.lost for each in gone))


def _broken(name: str, expected: TableDeclaration | None, why: str) -> Status:
    found = _base_status(name, expected, Control(), populated=False)
    return replace(found, status=Condition.ERROR, why=why, unreadable=True)


def _with_staleness(
    status: Status, since: datetime | None, declared: Mapping[str, TableDeclaration], now: datetime
) -> Status:
    if not status.populated:
        return status
    if since is None and any(each.is_missing for each in status.sources):
        return status
    expected = declared.get(status.table)
    schedule = expected.schedule if expected is not None else None
    seconds = 0.0 if since is None else max(0.0, (now - since).total_seconds())
    late = since is not None and schedule is not None and now > schedule.deadline(since)
    return replace(
        status,
        stale_since=since,
        staleness_seconds=seconds,
        stale=late if schedule is not None else None,
    )
