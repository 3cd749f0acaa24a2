"""Orphaned tables: stored stream tables whose names no declaration has.

A table is declared, stored, or both. The log of a table does not contain its query, so only
declarations tell which stored tables are still refreshed: those of a folder, or of a code location.
Another code location over the same lake may declare what this one does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.model.fingerprint import meaning_in
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.observe.monitor import Monitor
from dagster_streamtables.runtime.observe.status import Condition, Status, TableDeclaration


@dataclass(frozen=True)
class Orphan:
    """A stored table without a declaration."""

    table: str
    rows: int | None
    """None if its log does not have the number."""
    bytes: int | None
    refreshed_at: datetime | None
    """When a refresh last committed."""
    age_seconds: float | None
    """The time since then."""
    problem: str
    """Why its log cannot be read; empty if it can."""
    readers: tuple[str, ...]
    """The stream tables of this root that read it."""
    slots: tuple[str, ...]
    """The slots that follow it, or hold a version of it."""
    renamed: tuple[str, ...]
    """Declared tables that have its query and are not stored yet."""


def orphans(
    monitor: Monitor,
    tables: Iterable[StreamTable | TableDeclaration],
    *,
    now: datetime | None = None,
) -> list[Orphan]:
    """The stored tables that have no declaration, by name.

    Args:
        monitor: `Lake.monitor`.
        tables: All declarations.
        now: The current time.
    """
    declared, now = list(tables), now or datetime.now(UTC)
    statuses = monitor.status(declared, now=now)
    stored = {each.table for each in statuses if each.populated or each.unreadable}
    free = [each for each in _valid_tables(declared) if each.name not in stored]
    return [_orphan(monitor, each, statuses, free, now) for each in statuses if _is_orphan(each)]


def tables_with_query(
    catalog: TableCatalog, name: str, tables: Iterable[StreamTable]
) -> tuple[str, ...]:
    """The declared tables that have the query of a stored one: it may be renamed to one of them.

    Args:
        catalog: The tables of the root.
        name: The stored table.
        tables: The declarations, with their views.
    """
    stored = catalog.table_at(catalog.names.location(name))
    meaning = (
        meaning_in(stored.state.query) if stored is not None and stored.state is not None else ""
    )
    return tuple(each.name for each in tables if meaning and _meaning(each) == meaning)


def _is_orphan(status: Status) -> bool:
    unread = status.unreadable and not status.declared
    return unread or status.status is Condition.ORPHANED


def _orphan(
    monitor: Monitor,
    status: Status,
    statuses: Iterable[Status],
    free: Iterable[StreamTable],
    now: datetime,
) -> Orphan:
    name, at, location = status.table, status.refreshed_at, monitor.catalog.names.location
    place = location(name)
    found = () if status.unreadable else tables_with_query(monitor.catalog, name, free)
    return Orphan(
        table=name,
        rows=status.rows,
        bytes=status.bytes,
        refreshed_at=at,
        age_seconds=None if at is None else max(0.0, (now - at).total_seconds()),
        problem=status.why if status.unreadable else "",
        readers=tuple(
            each.table
            for each in statuses
            if any(location(source.source) == place for source in each.sources)
        ),
        slots=monitor.retention.slots_of(name),
        renamed=found,
    )


def _valid_tables(declared: Iterable[StreamTable | TableDeclaration]) -> Iterator[StreamTable]:
    for each in declared:
        table = each.table if isinstance(each, TableDeclaration) else each
        if table is not None:
            yield table


def _meaning(table: StreamTable) -> str:
    with suppress(StreamTablesError):  # reported when the table is examined
        return table.meaning
    return ""
