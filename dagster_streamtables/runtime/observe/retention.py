"""The history that sources keep for the next refreshes of stream tables, and for slots.

A refresh reads the commits after its frontier, the rows that they changed, and often the rows
before. Delta deletes log entries (at a checkpoint, ``delta.logRetentionDuration`` after they were
written) and unused files (at a VACUUM, ``delta.deletedFileRetentionDuration`` after a commit
removed them). A late refresh rebuilds the table, which is correct and costs a run of its query. A
late reader of a slot must begin again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.model.table_state import SourceState, StreamTableState, state_of
from dagster_streamtables.runtime.observe.slot_store import Slots
from dagster_streamtables.runtime.observe.source_health import (
    SlotHealth,
    SourceHealth,
    files_kept_for,
    health_of,
    needs_of_slots,
    out_of_use_since,
    slot_health,
)
from dagster_streamtables.runtime.refresh.intermediate_tables import location_of
from dagster_streamtables.runtime.storage import upkeep
from dagster_streamtables.setting import Range, check_arguments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Files are older than the commit that names them, by the duration of its job.
_MARGIN = 86400


@dataclass(frozen=True)
class VacuumResult:
    """The result of a vacuum, or of a dry run."""

    hours: int
    """Files that have been unused for longer than this are deleted."""
    held_since: float | None
    """Since when files were kept for stream tables or slots, in seconds since 1970; None if no more
    was kept than requested."""
    files: int
    """Number of deleted files; in a dry run, of those that would be deleted, up to 1000."""
    held_by: tuple[str, ...] = ()
    """Slots that need more than was requested."""
    lost: tuple[str, ...] = ()
    """The slots among these that were released by force, or would be in a dry run."""


class Retention:
    """The stream tables and slots below one root, and the history that they need."""

    def __init__(
        self, catalog: TableCatalog, slots: Slots, session: Callable[[str], SparkSession]
    ) -> None:
        self._catalog, self._slots, self._session = catalog, slots, session

    def stream_tables(self) -> list[str]:
        """Their names, sorted, without those of other roots that read a source by path; with tables
        that cannot be read, since they may be stream tables."""
        found = self._catalog.names.tables(self._catalog.logs.storage_options)
        return sorted(name for name in found if self._may_be_one(name))

    def _may_be_one(self, name: str) -> bool:
        try:
            return self._state(name) is not None
        except DamagedTable:
            return True

    def of(self, table: str) -> list[SourceHealth]:
        """The sources of a stream table, sorted by name; none before its first refresh."""
        sources = self._source_states(table).items()
        return [health_of(table, name, seen, self._catalog.newest(name)) for name, seen in sources]

    def sources(self, table: str) -> tuple[str, ...]:
        """The sources that a stream table read last, by the names in its query."""
        return tuple(self._source_states(table))

    def readers(self, name: str) -> tuple[str, ...]:
        """The stream tables of this root that read a table, by its name or by its path.

        Raises:
            DamagedTable: A table cannot be read, so whether it reads this one is unknown.
        """
        place, log = self._catalog.names.own_location(name), None
        with suppress(DamagedTable):  # by its id, it is found under any name
            log = self._catalog.own(name)
        return tuple(
            table
            for table in self.stream_tables()
            if any(
                (log is not None and seen.id == log.id) or self._catalog.leads_to(source, place)
                for source, seen in self._source_states(table).items()
            )
        )

    def slots_of(self, name: str) -> tuple[str, ...]:
        """The slots that follow a table, or hold a version of it, sorted."""
        place = self._catalog.names.own_location(name)
        return tuple(
            slot.name
            for slot in self._slots.all()
            if slot.relation == name or any(e.location == place for e in slot.held.values())
        )

    def slots(self) -> list[SlotHealth]:
        """The slots, sorted by name, and how far they are behind."""
        return [slot_health(slot, self._catalog) for slot in self._slots.all()]

    def slot(self, name: str) -> SlotHealth:
        """One slot, and how far it is behind.

        Raises:
            MissingSlot: There is none of that name.
        """
        return slot_health(self._slots.read(name), self._catalog)

    @check_arguments
    def vacuum(
        self,
        name: str,
        *,
        keep: Annotated[timedelta, Range(0)] | None = None,
        dry: bool = False,
        force: bool = False,
    ) -> VacuumResult:
        """Delete the unused files of a table that no stream table and no slot needs. For a stream
        table, also those of its intermediate tables.

        A slot whose deadline has passed is released first.

        Args:
            name: A source or a stream table.
            keep: How long unused files are kept; None for the table's own setting.
            dry: Delete nothing; return what would be deleted.
            force: Also delete what slots need, and mark these as lost.

        Raises:
            MissingSource: There is no such table.
            DamagedTable: A slot cannot be read, so what it needs is unknown.
        """
        log = self._catalog.existing(name)
        if not dry:
            self._slots.expire()
        wanted = files_kept_for(log) if keep is None else keep.total_seconds()
        since, slots = self._needed_by_tables(log), self._needed_by_slots(log)
        held_by = [slot for slot, each in slots.items() if _age(each) > wanted]
        lost = [slot for slot in held_by if force and _age(slots[slot]) > max(wanted, _age(since))]
        if not dry:  # before the files are gone, lest a slot seems intact whose files are not
            for slot in lost:
                self._slots.invalidate(slot, f'a forced vacuum of "{name}" deleted what it held')
        kept = [each for slot, each in slots.items() if slot not in lost]
        done = self._vacuum_table(name, log, _earliest([since, *kept]), keep, dry)
        below = [
            self._vacuum_table(name, each, since, keep, dry)
            for each, since in self._intermediates(name, log)
        ]
        files = done.files + sum(each.files for each in below)
        return replace(done, files=files, held_by=tuple(held_by), lost=tuple(lost))

    def _vacuum_table(
        self, name: str, log: TableLog, since: float | None, keep: timedelta | None, dry: bool
    ) -> VacuumResult:
        wanted = files_kept_for(log) if keep is None else keep.total_seconds()
        needed = _age(since)
        hours = math.ceil(max(wanted, needed) / 3600)
        paths = upkeep.vacuum(self._session(name), log, hours=hours, dry=dry)
        return VacuumResult(
            hours=hours,
            held_since=since if needed > wanted else None,
            files=len(paths)
            if dry
            else upkeep.count_deleted_files(self._catalog.logs.newest(log.location) or log),
        )

    def _intermediates(self, name: str, log: TableLog) -> Iterator[tuple[TableLog, float | None]]:
        """The intermediate tables of a stream table, and since when it needs their old files."""
        state = state_of(name, log)
        for each, kept in (state.intermediates if state is not None else {}).items():
            below = self._catalog.logs.newest(location_of(log.location, each))
            if below is not None and below.id == kept.id:
                yield below, out_of_use_since(below, kept.version, below.version)

    def needed_since(self, source: str) -> float | None:
        """Since when, in seconds since 1970, stream tables and slots need files that a source has
        removed.

        None if no stream table reflects a version with a removed file, and no slot holds one.
        """
        log = self._catalog.existing(source)
        return _earliest([self._needed_by_tables(log), *self._needed_by_slots(log).values()])

    def _needed_by_slots(self, log: TableLog) -> Mapping[str, float]:
        due = timedelta(0)
        slots = [slot for slot in self._slots.all() if not slot.expires_within(due)]
        return needs_of_slots(slots, log, self._catalog)

    def _needed_by_tables(self, log: TableLog) -> float | None:
        found = (
            health_of(table, name, seen, log)
            for table in self.stream_tables()
            for name, seen in self._source_states(table).items()
            if seen.id == log.id
        )
        return _earliest(
            out_of_use_since(log, each.frontier, log.version) for each in found if not each.lost
        )

    def _state(self, name: str) -> StreamTableState | None:
        log = self._catalog.own(name)
        return None if log is None else state_of(name, log)

    def _source_states(self, table: str) -> Mapping[str, SourceState]:
        state = self._state(table)
        return {} if state is None else state.sources


def _age(since: float | None) -> float:
    """How long files that are needed since a time must be kept, in seconds."""
    return 0.0 if since is None else time.time() - since + _MARGIN


def _earliest(times: Iterable[float | None]) -> float | None:
    return min((each for each in times if each is not None), default=None)
