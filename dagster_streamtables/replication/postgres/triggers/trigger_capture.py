"""`TriggerCapture`: the changes of a slot by triggers, and whether they come from there.

Each switch is at one position, the turn: changes come one way up to it, the other way after it. It
is where a slot begins, since a slot comes with the snapshot of what committed before.

From triggers to the server's log: what the snapshot of the new slot shows of the triggers' log is
the last window; the slot has the rest. The triggers are dropped once the changes after the turn are
confirmed.

From the server's log to triggers: they are created, then a slot for a moment. The old slot has what
the snapshot of that one shows; the triggers have the rest. The old slot is dropped once all changes
up to the turn are confirmed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from psycopg import errors

from dagster_streamtables.errors import PublisherProblem, StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.replication.model.replication_model import Batch, Lag
from dagster_streamtables.replication.postgres import logical_slots, snapshot
from dagster_streamtables.replication.postgres.logical_slots import SlotPosition
from dagster_streamtables.replication.postgres.postgres_server import PublisherServer, scalar
from dagster_streamtables.replication.postgres.table_form import Forms
from dagster_streamtables.replication.postgres.triggers import snapshot_windows
from dagster_streamtables.replication.postgres.triggers.capture_objects import (
    CaptureMethod,
    CaptureState,
    begin,
    change,
    find_capture,
    lock_slot,
)
from dagster_streamtables.replication.postgres.triggers.install import (
    ensure_triggers,
    remove,
    require_intact,
)
from dagster_streamtables.replication.postgres.triggers.log_reading import LogRead
from dagster_streamtables.replication.postgres.triggers.snapshot_windows import lag_of
from dagster_streamtables.replication.postgres.triggers.trigger_log import TriggerShapes

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection
    from dagster_streamtables.replication.postgres.publication_catalog import CatalogTable


CaptureStatus = Literal["TRIGGER", "TRANSITIONING", "WAL"]
LEAVING = 3.0
"""Seconds for which unneeded triggers wait for locks."""
UNASKED = 20.0
"""Seconds for which an automatic switch keeps a reader waiting."""
AGAIN = 600
"""Seconds after an attempt that failed."""
DUE = """
    SELECT tried IS NULL OR tried < clock_timestamp() - make_interval(secs => %s)
    FROM streamtables.captures WHERE slot = %s
"""
Choice = Literal["auto", "wal", "trigger"]


@dataclass(frozen=True)
class Route:
    """How the next changes come."""

    by_triggers: bool
    begin: int | None = None
    """Where the slot began: what was confirmed before does not concern it."""
    up_to: int | None = None
    """The last position of the server's log to read, since triggers have what follows."""


WAL = Route(by_triggers=False)


@dataclass(frozen=True)
class TriggerCapture:
    server: PublisherServer
    load_forms: Callable[[Connection], Forms]
    choice: Choice
    local_only: bool
    wait: float
    """Seconds for which a slot waits for transactions, and triggers for locks."""

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
        """The reader enters the snapshot; the other connection stores its position."""
        found, before = self._begin(connection, slot, tables)
        reader.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        position = self._boundary(connection, found, snapshot_windows.snapshot_now(reader))
        snapshot.wait_for_locks(reader, self.wait)
        return snapshot.SnapshotCopy.open(self.server, reader, before, self.load_forms, position)

    def create_slot(self, slot: str, tables: Collection[str]) -> Mapping[str, int]:
        with self.server.session() as connection, self._hold_slot(connection, slot):
            found, _ = self._begin(connection, slot, tables)
            position = self._boundary(connection, found, snapshot_windows.snapshot_now(connection))
        return dict.fromkeys(tables, position)

    @contextmanager
    def _hold_slot(self, connection: Connection, slot: str) -> Iterator[None]:
        """If anything fails, a new slot is dropped."""
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
    ) -> tuple[CaptureState, Mapping[str, CatalogTable]]:
        """From now on the changes of tables are captured."""
        chosen = snapshot.require_in_publication(self.load_forms(connection), tables)
        snapshot.require_readable(connection, chosen.values())
        found = begin(connection, slot, CaptureMethod.TRIGGER)
        for table in chosen.values():
            ensure_triggers(connection, found, table, self.wait)
        return found, chosen

    def _boundary(self, connection: Connection, found: CaptureState, upto: str) -> int:
        """The position of a snapshot."""
        there = snapshot_windows.windows_of(connection, found.slot)
        if not there:
            position = snapshot_windows.wal_insert_position(connection)
            snapshot_windows.first(connection, found.slot, upto, position)
            return position
        made = snapshot_windows.following(connection, found, there[-1], upto, even_empty=True)
        assert made is not None
        return made.position

    def read(
        self, connection: Connection, slot: str, after: Mapping[str, int], *, max_rows: int
    ) -> Batch:
        """On the connection that has requested the route."""
        found = find_capture(connection, slot)
        assert found is not None
        there = snapshot_windows.windows_of(connection, slot)
        is_last = found.way is CaptureMethod.TO_WAL and found.turn is not None
        turn = found.turn if is_last else None
        # The server's log has what follows the turn, such as the copy of a new table.
        mine = {name: at for name, at in after.items() if turn is None or at < turn}
        snapshot_windows.require_positions(there, slot, mine)
        new = None
        if not is_last:
            upto = snapshot_windows.snapshot_now(connection)
            new = snapshot_windows.following(connection, found, there[-1], upto)
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
        """Release what is not needed, and end a switch; None if the slot must be moved instead."""
        with self.server.session() as connection:
            found = find_capture(connection, slot)
            if found is None:
                return None
            lock_slot(connection, slot)
            there = snapshot_windows.windows_of(connection, slot)
            position = min(applied.values()) if applied else there[0].position
            has_turned = found.turn is not None and position >= found.turn
            if found.way is CaptureMethod.TO_TRIGGER:
                if not has_turned:
                    return None
                logical_slots.drop(connection, slot)
                change(connection, slot, CaptureMethod.TRIGGER, None)
            if found.way is CaptureMethod.TO_WAL and has_turned:
                try:
                    remove(connection, found, LEAVING)
                except errors.LockNotAvailable:  # their log is no longer read, so they may stay
                    said = "the triggers of slot %s stay while their tables are locked"
                    logger.warning(said, slot)
                return None
            snapshot_windows.delete_windows(connection, found, position)
        return str(SlotPosition(position, None))

    def drop(self, slot: str) -> None:
        with self.server.session() as connection:
            self._drop(connection, slot)

    def _drop(self, connection: Connection, slot: str) -> None:
        found = find_capture(connection, slot)
        if found is not None:
            lock_slot(connection, slot)
            remove(connection, found, self.wait)

    def lag(self, slot: str, applied: Mapping[str, int]) -> Lag | None:
        """None if the slot has it."""
        with self.server.session() as connection:
            found = find_capture(connection, slot)
            position = min(applied.values(), default=0)
            if found is None or not found.is_by_triggers(position):
                return None
            return lag_of(connection, found, position)

    def states(self, slot: str) -> Mapping[str, CaptureStatus]:
        """How the changes of each table come now."""
        with self.server.session() as connection:
            found = find_capture(connection, slot)
            if found is None:
                return dict.fromkeys(self.load_forms(connection).tables, "WAL")
            query = "SELECT DISTINCT name FROM streamtables.triggers WHERE slot = %s ORDER BY 1"
            names = [name for (name,) in connection.execute(query, [slot])]
        now = "TRIGGER" if found.way is CaptureMethod.TRIGGER else "TRANSITIONING"
        return dict.fromkeys(names, now)

    def are_triggers_first(self, slot: str) -> bool:
        """Whether triggers capture the changes of tables that are copied now."""
        with self.server.session() as connection:
            by_triggers = self._are_triggers_next(connection, slot)
        if by_triggers and self.local_only:
            raise PublisherProblem(
                'triggers do not support origin "none"',
                why="they do not see whether a replication made a change",
                fix="set wal_level = logical at the server; or take all changes: streamtables "
                "replications alter NAME --origin any",
            )
        return by_triggers

    def _are_triggers_next(self, connection: Connection, slot: str) -> bool:
        found = find_capture(connection, slot)
        if found is not None:
            return found.is_by_triggers(math.inf)
        if self.choice == "wal" or logical_slots.slot_state(connection, slot) is not None:
            return False
        return self.choice == "trigger" or not decodes(connection)

    def route(self, connection: Connection, slot: str, after: Mapping[str, int]) -> Route:
        """How the changes after positions come. It makes the switch that is due.

        Raises:
            PublisherProblem: The requested way is not possible.
        """
        if self.choice != "trigger" and find_capture(connection, slot) is None:
            return WAL
        lock_slot(connection, slot)
        found = self._switch_if_due(connection, slot, after)
        if found is None:
            return WAL
        if found.is_by_triggers(min(after.values())):
            return Route(by_triggers=True)
        if found.way is CaptureMethod.TO_TRIGGER:
            return Route(by_triggers=False, up_to=found.turn)
        return Route(by_triggers=False, begin=found.turn)

    def _switch_if_due(
        self, connection: Connection, slot: str, after: Mapping[str, int]
    ) -> CaptureState | None:
        found = find_capture(connection, slot)
        has_none = found is None or (found.way is CaptureMethod.TO_TRIGGER and found.turn is None)
        if has_none and self.choice == "trigger":
            self._to_triggers(connection, slot, after)
        elif has_none and found is not None:
            remove(connection, found, self.wait)
        elif found is not None and (found.way is CaptureMethod.TRIGGER or found.turn is None):
            if self.choice == "wal":
                self._to_wal(connection, found)
            elif self.choice == "auto" and decodes(connection):
                self._try_wal(connection, found)
        return find_capture(connection, slot)

    def _try_wal(self, connection: Connection, found: CaptureState) -> None:
        """The failure of an automatic switch is no reason to stop."""
        if not scalar(connection, DUE, [AGAIN, found.slot]):
            return
        try:
            self._to_wal(connection, found)
        except StreamTablesError as error:
            connection.execute(
                "UPDATE streamtables.captures SET reason = %s, tried = clock_timestamp() "
                "WHERE slot = %s",
                [str(error), found.slot],
            )
            logger.warning("the triggers of slot %s stay: %s", found.slot, error)

    def _to_wal(self, connection: Connection, found: CaptureState) -> None:
        """Triggers have what committed before the slot begins; the slot does not.

        A crash before the turn is stored leaves an unread slot. It is created again.
        """
        slot = found.slot
        if found.way is CaptureMethod.TRIGGER:
            logical_slots.require_none(connection, slot)
        change(connection, slot, CaptureMethod.TO_WAL, None)
        logical_slots.drop(connection, slot)
        try:
            turn, upto = self._begin_turn(slot, temporary=False)
        except StreamTablesError:
            logical_slots.drop(connection, slot)
            change(connection, slot, CaptureMethod.TRIGGER, None)
            raise
        last = snapshot_windows.windows_of(connection, slot)[-1]
        with connection.transaction():
            snapshot_windows.following(
                connection, found, last, upto, even_empty=True, position=turn
            )
            change(connection, slot, CaptureMethod.TO_WAL, turn)

    def _to_triggers(self, connection: Connection, slot: str, after: Mapping[str, int]) -> None:
        """The slot has all changes up to the turn, whichever of them the triggers also have.

        A crash before the turn is stored leaves unread triggers.
        """
        logical_slots.require_slot(connection, slot)
        found = begin(connection, slot, CaptureMethod.TO_TRIGGER)
        tables = self.load_forms(connection).tables
        for name in after:
            if name in tables:
                ensure_triggers(connection, found, tables[name], self._switch_wait)
        turn, upto = self._begin_turn(slot, temporary=True)
        with connection.transaction():
            snapshot_windows.first(connection, slot, upto, turn)
            change(connection, slot, CaptureMethod.TO_TRIGGER, turn)

    @property
    def _switch_wait(self) -> float:
        return min(self.wait, UNASKED) if self.choice == "auto" else self.wait

    def _begin_turn(self, slot: str, *, temporary: bool) -> tuple[int, str]:
        """Where a new slot begins, and the snapshot of what committed before."""
        with self.server.session() as reader:
            turn = snapshot.begin_with_slot(
                self.server, reader, slot, temporary=temporary, wait=self._switch_wait
            )
            return turn, snapshot_windows.snapshot_now(reader)


def decodes(connection: Connection) -> bool:
    """Whether the server's log can be decoded."""
    return scalar(connection, "SELECT current_setting('wal_level') = 'logical'")
