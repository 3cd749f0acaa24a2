"""Which way the changes of a slot come next, and when the way is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.postgres import slots
from dagster_streamtables.replication.postgres.forms import Forms
from dagster_streamtables.replication.postgres.server import PublisherServer
from dagster_streamtables.replication.postgres.triggers.captured import (
    CaptureMethod,
    CaptureState,
    find_capture,
    lock_slot,
)
from dagster_streamtables.replication.postgres.triggers.install import remove
from dagster_streamtables.replication.postgres.triggers.switches import Switches

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

UNASKED = 20.0
"""Seconds for which a switch that nobody asked for keeps a reader waiting."""
Choice = Literal["auto", "wal", "trigger"]


@dataclass(frozen=True)
class Route:
    """How the next changes come."""

    by_triggers: bool
    begin: int | None = None
    """Where the slot began: what was confirmed before is no matter of it."""
    up_to: int | None = None
    """The last position of the server's log that is read, since triggers have what is behind it."""


WAL = Route(by_triggers=False)


@dataclass(frozen=True)
class Routes:
    server: PublisherServer
    load_forms: Callable[[Connection], Forms]
    choice: Choice
    local_only: bool
    wait: float
    """Seconds for which a slot waits for transactions, and triggers for locks."""

    def are_triggers_first(self, slot: str) -> bool:
        """Whether triggers capture the changes of tables that are copied now."""
        with self.server.session() as connection:
            by_triggers = self._are_triggers_next(connection, slot)
        if by_triggers and self.local_only:
            raise PublisherProblem(
                'origin "none" is not known to triggers',
                why="they do not see whether a replication made a change",
                fix="set wal_level = logical at the server; or take all changes: streamtables "
                "replications alter NAME --origin any",
            )
        return by_triggers

    def _are_triggers_next(self, connection: Connection, slot: str) -> bool:
        found = find_capture(connection, slot)
        if found is not None:
            return found.way is CaptureMethod.TRIGGER or (found.way is CaptureMethod.TO_WAL) is (
                found.turn is None
            )
        if self.choice == "wal" or slots.slot_state(connection, slot) is not None:
            return False
        return self.choice == "trigger" or not decodes(connection)

    def route(self, connection: Connection, slot: str, after: Mapping[str, int]) -> Route:
        """How the changes behind positions come. It makes the switch that is due.

        Raises:
            PublisherProblem: The way that was asked for cannot be gone.
        """
        if self.choice != "trigger" and find_capture(connection, slot) is None:
            return WAL
        lock_slot(connection, slot)
        found = self._switch_if_due(connection, slot, after)
        if found is None:
            return WAL
        left = min(after.values())
        if found.way is CaptureMethod.TO_TRIGGER and found.turn is not None and left < found.turn:
            return Route(by_triggers=False, up_to=found.turn)
        if found.way is CaptureMethod.TO_WAL and found.turn is not None and left >= found.turn:
            return Route(by_triggers=False, begin=found.turn)
        return Route(by_triggers=True)

    def _switch_if_due(
        self, connection: Connection, slot: str, after: Mapping[str, int]
    ) -> CaptureState | None:
        found = find_capture(connection, slot)
        wait = self.wait if self.choice != "auto" else min(self.wait, UNASKED)
        switches = Switches(self.server, self.load_forms, slot, wait)
        has_none = found is None or (found.way is CaptureMethod.TO_TRIGGER and found.turn is None)
        if has_none and self.choice == "trigger":
            switches.to_triggers(connection, after)
        elif has_none and found is not None:
            remove(connection, found, self.wait)
        elif found is not None and (found.way is CaptureMethod.TRIGGER or found.turn is None):
            if self.choice == "wal":
                switches.to_wal(connection)
            elif self.choice == "auto" and decodes(connection):
                self._try_wal(connection, switches)
        return find_capture(connection, slot)

    def _try_wal(self, connection: Connection, switches: Switches) -> None:
        """A switch that nobody asked for is no reason to stop."""
        if not switches.is_due(connection):
            return
        try:
            switches.to_wal(connection)
        except StreamTablesError as error:
            switches.record_failure(connection, error)
            logger.warning("the triggers of slot %s stay: %s", switches.slot, error)


def decodes(connection: Connection) -> bool:
    """Whether the server's log has what is decoded."""
    row = connection.execute("SELECT current_setting('wal_level') = 'logical'").fetchone()
    assert row is not None
    return row[0]
