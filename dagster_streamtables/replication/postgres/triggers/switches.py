"""`Switches`: from triggers to the server's log, and back; see `capture.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.postgres import slots, snapshot
from dagster_streamtables.replication.postgres.forms import Forms
from dagster_streamtables.replication.postgres.server import PublisherServer
from dagster_streamtables.replication.postgres.slots import make_slot
from dagster_streamtables.replication.postgres.triggers import windows
from dagster_streamtables.replication.postgres.triggers.captured import (
    CaptureMethod,
    begin,
    change,
    find_capture,
)
from dagster_streamtables.replication.postgres.triggers.install import ensure_triggers

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

AGAIN = 600
"""Seconds after an attempt that failed."""
DUE = """
    SELECT tried IS NULL OR tried < clock_timestamp() - make_interval(secs => %s)
    FROM streamtables.captures WHERE slot = %s
"""


@dataclass(frozen=True)
class Switches:
    server: PublisherServer
    load_forms: Callable[[Connection], Forms]
    slot: str
    wait: float

    def is_due(self, connection: Connection) -> bool:
        row = connection.execute(DUE, [AGAIN, self.slot]).fetchone()
        assert row is not None
        return row[0]

    def record_failure(self, connection: Connection, error: StreamTablesError) -> None:
        connection.execute(
            "UPDATE streamtables.captures SET reason = %s, tried = clock_timestamp() "
            "WHERE slot = %s",
            [str(error), self.slot],
        )

    def to_wal(self, connection: Connection) -> None:
        """Triggers have what committed before the slot begins, which the slot has not.

        A crash before the turn is stored leaves a slot that nobody has read. It is made again.
        """
        found = find_capture(connection, self.slot)
        assert found is not None
        if found.way is CaptureMethod.TRIGGER:
            slots.require_none(connection, self.slot)
        change(connection, self.slot, CaptureMethod.TO_WAL, None)
        slots.drop(connection, self.slot)
        try:
            turn, upto = self._begin(self.slot, temporary=False)
        except StreamTablesError:
            slots.drop(connection, self.slot)
            change(connection, self.slot, CaptureMethod.TRIGGER, None)
            raise
        last = windows.windows_of(connection, self.slot)[-1]
        with connection.transaction():
            windows.following(connection, found, last, upto, even_empty=True, position=turn)
            change(connection, self.slot, CaptureMethod.TO_WAL, turn)

    def to_triggers(self, connection: Connection, after: Mapping[str, int]) -> None:
        """What the slot holds up to the turn is of it, whatever the triggers have of that.

        A crash before the turn is stored leaves triggers that nobody reads.
        """
        slots.require_slot(connection, self.slot)
        found = begin(connection, self.slot, CaptureMethod.TO_TRIGGER)
        tables = self.load_forms(connection).tables
        for name in after:
            if name in tables:
                ensure_triggers(connection, found, tables[name], self.wait)
        turn, upto = self._begin(f"{self.slot[:50]}_{token_hex(6)}", temporary=True)
        with connection.transaction():
            windows.first(connection, self.slot, upto, turn)
            change(connection, self.slot, CaptureMethod.TO_TRIGGER, turn)

    def _begin(self, slot: str, *, temporary: bool) -> tuple[int, str]:
        """Where a new slot begins, and the snapshot of what committed before."""
        with self.server.replication() as protocol, self.server.session() as reader:
            made = make_slot(
                self.server, protocol, slot, temporary=temporary, export=True, wait=self.wait
            )
            assert made.snapshot is not None
            snapshot.begin_in(reader, made.snapshot, self.wait)
            return made.position, windows.snapshot_now(reader)

    def end_to_triggers(self, connection: Connection) -> None:
        slots.drop(connection, self.slot)
        change(connection, self.slot, CaptureMethod.TRIGGER, None)
