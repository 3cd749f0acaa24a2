"""Delete a stream table: its rows, its log, its intermediate tables, and its control.

On a local disk its folder is renamed in one step and then deleted, so no reader ever sees half a
table. In an object store the log is deleted first, newest commit first, so a reader finds an older
version, then no table.
"""

from __future__ import annotations

import shutil
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dagster_streamtables.errors import DamagedTable, RefusedOperation
from dagster_streamtables.runtime.delta.arrow import fs
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_locations import in_order_of_deletion, is_remote
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.model.table_state import state_of
from dagster_streamtables.runtime.observe.controls import Control, Controls
from dagster_streamtables.runtime.observe.retention import Retention
from dagster_streamtables.runtime.storage.documents import FOLDER


@dataclass(frozen=True)
class DropResult:
    """A deleted stream table."""

    table: str
    location: str
    rows: int | None
    """None if its log did not have the number, or if only a control existed."""
    bytes: int
    """The size of its newest version."""
    readers: tuple[str, ...]
    """Stream tables of the same root that read it, whose next refresh will fail."""
    slots: tuple[str, ...] = ()
    """Slots that hold a version of it, whose readers must begin again."""


@dataclass(frozen=True)
class Dropping:
    catalog: TableCatalog
    controls: Controls
    retention: Retention

    def drop(self, name: str, *, even_if_read: bool = False, dry: bool = False) -> DropResult:
        """See `Lake.drop`."""
        found = self._look(name, even_if_read)
        if dry:
            return found
        log = self.catalog.own(name)
        if log is not None:
            self._delete(log)
            self.catalog.logs.forget(found.location)
        self.controls.forget(name)
        return found

    def _look(self, name: str, even_if_read: bool) -> DropResult:
        location = self.catalog.names.own_location(name)
        log = self.catalog.own(name)
        if log is None:
            if not self._has_control(name):
                raise self.catalog.missing(name)
            return DropResult(name, location, None, 0, ())
        require_stream_table(name, log)
        readers = self.retention.readers(name)
        if readers and not even_if_read:
            raise RefusedOperation(
                f'"{name}" is read by {", ".join(readers)}',
                why="without it they cannot be refreshed",
                fix="drop those first, or drop it even if it is read (even_if_read, --force)",
            )
        slots = self.retention.slots_of(name)
        return DropResult(name, location, log.row_count, sum(log.file_sizes), readers, slots)

    def _has_control(self, name: str) -> bool:
        try:
            return self.controls.read(name) != Control()
        except DamagedTable:
            return True

    def _delete(self, log: TableLog) -> None:
        if is_remote(log.location):
            selector = fs.FileSelector("", recursive=True, allow_not_found=True)
            found = log.files.get_file_info(selector)
            paths = [each.path for each in found if each.type is fs.FileType.File]
            for path in in_order_of_deletion(paths):
                log.files.delete_file(path)
            return
        aside = Path(self.catalog.names.root) / FOLDER / "dropped"
        aside.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # another process dropped it at the same time
            Path(log.location).rename(aside / uuid.uuid4().hex)
        # Also what a killed process left. `aside` stays: another process may move a table into it.
        for left in aside.iterdir():
            shutil.rmtree(left, ignore_errors=True)


def require_stream_table(name: str, log: TableLog) -> None:
    """
    Raises:
        RefusedOperation: No refresh wrote the table under this name.
    """
    if state_of(name, log) is None:
        raise RefusedOperation(
            f'"{name}" is not a stream table',
            where=log.location,
            why="no commit of it has the state of a refresh under that name",
            fix="name a stream table; only their owners may delete or rename other tables",
        )
