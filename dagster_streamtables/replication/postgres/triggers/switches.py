"""`Switches`: from triggers to the server's log, and back; see `capture.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.postgres import slots, snapshot
from dagster_streamtables.replication.postgres.forms import Forms
from dagster_streamtables.replication.postgres.new_slot import make_slot
from dagster_streamtables.replication.postgres.server import Server
from dagster_streamtables.replication.postgres.triggers import windows
from dagster_streamtables.replication.postgres.triggers.captured import (
    Way,
    begin,
    captured,
    change,
)
from dagster_streamtables.replication.postgres.triggers.install import install
from dagster_streamtables.replication.postgres.triggers.locks import locked

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
    server: Server
    load_forms: Callable[[Connection], Forms]
    slot: str
    wait: float

    def is_due(self, connection: Connection) -> bool:
        row = connection.execute(DUE, [AGAIN, self.slot]).fetchone()
        assert row is not None
        return row[0]

    def failed(self, connection: Connection, error: StreamTablesError) -> None:
        connection.execute(
            "UPDATE streamtables.captures SET reason = %s, tried = clock_timestamp() "
            "WHERE slot = %s",
            [str(error), self.slot],
        )

    def to_wal(self, connection: Connection) -> None:
        """Triggers have what committed before the slot begins, which the slot has not.

        A crash before the turn is stored leaves a slot that nobody has read. It is made again.
        """
        found = captured(connection, self.slot)
        assert found is not None
        if found.way is Way.TRIGGER:
            slots.require_none(connection, self.slot)
        change(connection, self.slot, Way.TO_WAL, None)
        slots.drop(connection, self.slot)
        try:
            with self.server.replication() as protocol, self.server.session() as reader:
                made = make_slot(
                    self.server, protocol, self.slot, temporary=False, export=True, wait=self.wait
                )
                assert made.snapshot is not None
                snapshot.begin_in(reader, made.snapshot, self.wait)
                upto = windows.snapshot_now(reader)
        except StreamTablesError:
            slots.drop(connection, self.slot)
            change(connection, self.slot, Way.TRIGGER, None)
            raise
        last = windows.windows_of(connection, self.slot)[-1]
        with connection.transaction():
            windows.following(
                connection, found, last, upto, even_empty=True, position=made.position
            )
            change(connection, self.slot, Way.TO_WAL, made.position)

    def to_triggers(self, connection: Connection, after: Mapping[str, int]) -> None:
        """All commits up to the turn are of the slot, since whoever wrote has ended."""
        slots.require_slot(connection, self.slot)
        found = begin(connection, self.slot, Way.TO_TRIGGER)
        tables = self.load_forms(connection).tables
        chosen = [tables[name] for name in after if name in tables]
        with locked(connection, chosen, self.wait):
            for table in chosen:
                install(connection, found, table)
            turn = windows.written_to(connection)
            windows.first(connection, self.slot, windows.snapshot_now(connection), turn)
            change(connection, self.slot, Way.TO_TRIGGER, turn)

    def end_to_triggers(self, connection: Connection) -> None:
        slots.drop(connection, self.slot)
        change(connection, self.slot, Way.TRIGGER, None)
