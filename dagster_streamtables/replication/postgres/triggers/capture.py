"""`TriggerCapture`: whether changes come from the log or by triggers, and the switches between.

Each switch is one position, the turn: up to it changes come the one way, behind it the other way.
It is where a slot begins, since a slot comes with the snapshot of what committed before.

From triggers to the log: what the snapshot of the new slot shows of the triggers' log is the last
window; the slot has the rest. Triggers go when what is behind the turn was confirmed.

From the log to triggers: they are created, then a slot for a moment. What its snapshot shows is of
the log that the old slot has; the triggers have the rest. The old slot goes when all up to the turn
was confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.replication.model.publisher import Batch, Lag
from dagster_streamtables.replication.postgres import snapshot
from dagster_streamtables.replication.postgres.forms import Forms
from dagster_streamtables.replication.postgres.server import PublisherServer
from dagster_streamtables.replication.postgres.timeline import SlotPosition
from dagster_streamtables.replication.postgres.triggers import windows
from dagster_streamtables.replication.postgres.triggers.captured import (
    CaptureMethod,
    CaptureState,
    begin,
    find_capture,
    lock_slot,
)
from dagster_streamtables.replication.postgres.triggers.install import (
    ensure_triggers,
    names_of,
    remove,
    require_intact,
)
from dagster_streamtables.replication.postgres.triggers.log_reading import LogRead
from dagster_streamtables.replication.postgres.triggers.shapes import TriggerShapes
from dagster_streamtables.replication.postgres.triggers.switches import Switches
from dagster_streamtables.replication.postgres.triggers.windows import lag_of

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.catalog import CatalogTable
    from dagster_streamtables.replication.postgres.server import Connection

State = Literal["TRIGGER", "TRANSITIONING", "WAL"]


LEAVING = 3.0
"""Seconds for which triggers that are not needed wait for locks."""


@dataclass(frozen=True)
class TriggerCapture:
    server: PublisherServer
    load_forms: Callable[[Connection], Forms]
    wait: float
    """Seconds for which triggers wait for locks."""

    @contextmanager
    def copy(self, slot: str, tables: Collection[str]) -> Iterator[snapshot.SnapshotCopy]:
        with self.server.session() as connection:
            with self.server.session() as other, self._hold_slot(other, slot):
                copied = self._open_copy(connection, other, slot, tables)
            with closing(copied):
                yield copied

    def _open_copy(
        self, reader: Connection, connection: Connection, slot: str, tables: Collection[str]
    ) -> snapshot.SnapshotCopy:
        """The reader gets into the snapshot; the other stores its position."""
        before = self._begin(connection, slot, tables)
        reader.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        position = self._boundary(connection, slot, windows.snapshot_now(reader))
        snapshot.wait_for_locks(reader, self.wait)
        snapshot.require_readable(reader, before.values())
        forms = self.load_forms(reader)
        now = snapshot.require_in_publication(forms, before)
        snapshot.require_same_files(before, now)
        return snapshot.SnapshotCopy(
            server=self.server,
            connection=reader,
            forms={name: forms.now(name) for name in now},
            queries={name: snapshot.rows_of(table) for name, table in now.items()},
            at=position,
        )

    def create_slot(self, slot: str, tables: Collection[str]) -> Mapping[str, int]:
        with self.server.session() as connection, self._hold_slot(connection, slot):
            self._begin(connection, slot, tables)
            position = self._boundary(connection, slot, windows.snapshot_now(connection))
        return dict.fromkeys(tables, position)

    @contextmanager
    def _hold_slot(self, connection: Connection, slot: str) -> Iterator[None]:
        """A slot that was not there before goes if anything fails."""
        lock_slot(connection, slot)
        is_new = find_capture(connection, slot) is None
        try:
            yield
        except BaseException:
            if is_new:
                with suppress(StreamTablesError):
                    self._drop(connection, slot)
            raise

    def _begin(
        self, connection: Connection, slot: str, tables: Collection[str]
    ) -> Mapping[str, CatalogTable]:
        """From now on the changes of tables are captured."""
        chosen = snapshot.require_in_publication(self.load_forms(connection), tables)
        snapshot.require_readable(connection, chosen.values())
        found = begin(connection, slot, CaptureMethod.TRIGGER)
        for table in chosen.values():
            ensure_triggers(connection, found, table, self.wait)
        return chosen

    def _boundary(self, connection: Connection, slot: str, upto: str) -> int:
        """The position of a snapshot."""
        found = find_capture(connection, slot)
        assert found is not None
        there = windows.windows_of(connection, slot)
        if not there:
            return windows.first(
                connection, slot, upto, windows.wal_insert_position(connection)
            ).position
        made = windows.following(connection, found, there[-1], upto, even_empty=True)
        assert made is not None
        return made.position

    def read(
        self, connection: Connection, slot: str, after: Mapping[str, int], *, max_rows: int
    ) -> Batch:
        """On the connection that has asked for the route."""
        found = find_capture(connection, slot)
        assert found is not None
        there = windows.windows_of(connection, slot)
        is_last = found.way is CaptureMethod.TO_WAL and found.turn is not None
        turn = found.turn if is_last else None
        # What is behind the turn is of the server's log, such as the copy of a new table.
        mine = {name: at for name, at in after.items() if turn is None or at < turn}
        windows.require_positions(there, slot, mine)
        new = None
        if not is_last:
            upto = windows.snapshot_now(connection)
            new = windows.following(connection, found, there[-1], upto)
            there += [new] if new else []
        forms = self.load_forms(connection)
        tables = [forms.tables[name] for name in mine if name in forms.tables]
        require_intact(connection, found, tables, self.wait)
        read = LogRead(
            connection, found, TriggerShapes.load(connection, found, forms), after, max_rows
        )
        for before, window in pairwise(there):
            if window.position > min(after.values()) and not read.is_full:
                read.choose(before, window, is_new=window is new)
        read.load()
        return read.batch(there[-1].position, complete=not is_last)

    def confirm(self, slot: str, applied: Mapping[str, int]) -> str | None:
        """Let go what is not needed, and end a switch; None if that is up to the slot."""
        with self.server.session() as connection:
            found = find_capture(connection, slot)
            if found is None:
                return None
            lock_slot(connection, slot)
            there = windows.windows_of(connection, slot)
            position = min(applied.values()) if applied else there[0].position
            has_turned = found.turn is not None and position >= found.turn
            if found.way is CaptureMethod.TO_TRIGGER:
                if not has_turned:
                    return None
                Switches(self.server, self.load_forms, slot, self.wait).end_to_triggers(connection)
            if found.way is CaptureMethod.TO_WAL and has_turned:
                self._leave(connection, found)
                return None
            windows.delete_windows(connection, found, position)
        return str(SlotPosition(position, None))

    @staticmethod
    def _leave(connection: Connection, found: CaptureState) -> None:
        """What the triggers write is read no more, so they may stay until nobody is in the way."""
        from psycopg import errors

        try:
            remove(connection, found, LEAVING)
        except errors.LockNotAvailable:
            logger.warning("the triggers of slot %s stay while their tables are locked", found.slot)

    def drop(self, slot: str) -> None:
        with self.server.session() as connection:
            self._drop(connection, slot)

    def _drop(self, connection: Connection, slot: str) -> None:
        found = find_capture(connection, slot)
        if found is not None:
            lock_slot(connection, slot)
            remove(connection, found, self.wait)

    def lag(self, slot: str, applied: Mapping[str, int]) -> Lag | None:
        """None if the slot tells it."""
        with self.server.session() as connection:
            found = find_capture(connection, slot)
            if found is None or (
                found.way is not CaptureMethod.TRIGGER and not self._is_by_triggers(found, applied)
            ):
                return None
            return lag_of(connection, found, min(applied.values(), default=0))

    @staticmethod
    def _is_by_triggers(found: CaptureState, applied: Mapping[str, int]) -> bool:
        """Whether triggers have the next changes."""
        position = min(applied.values(), default=0)
        if found.turn is None:
            return found.way is CaptureMethod.TO_WAL
        return (position < found.turn) is (found.way is CaptureMethod.TO_WAL)

    def states(self, slot: str) -> Mapping[str, State]:
        """How the changes of each table come now."""
        with self.server.session() as connection:
            found = find_capture(connection, slot)
            if found is None:
                return dict.fromkeys(self.load_forms(connection).tables, "WAL")
            names = names_of(connection, slot)
        return dict.fromkeys(
            names, "TRIGGER" if found.way is CaptureMethod.TRIGGER else "TRANSITIONING"
        )
