"""`ReplicationSlots`: what a replication's slot keeps, a version of each of its tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.replication.lake.publication import let_go, missing_changes_error, no_slot
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.errors.slots import MissingSlot, of_another_relation
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.observe.lease import LENGTH
from dagster_streamtables.runtime.observe.slots import Slot, Slots, VersionHold

_FINGERPRINT = "replication"
"""No subscription has it, so neither reads the slots of the other."""


@dataclass(frozen=True)
class ReplicationSlots:
    """The slots of replications. One slot holds all tables of a replication, each at its own
    version, so that a vacuum leaves what comes after it."""

    slots: Slots
    catalog: TableCatalog
    reader: str
    """Who reads: others must wait until it has been gone for a minute."""
    deadline: timedelta | None
    relation: str
    """What new slots follow, for people who look at them."""

    def find(self, name: str) -> Slot:
        """
        Raises:
            LostSlot: There is none, or it was let go.
            RefusedOperation: It is a slot of a subscription.
        """
        slot = self.slots.find(name)
        if slot is None:
            raise no_slot(name)
        if slot.fingerprint != _FINGERPRINT:
            raise of_another_relation(name, slot.relation)
        if slot.is_lost:
            raise let_go(name, slot.reason)
        return slot

    def take(self, name: str) -> Slot:
        """The slot, which nobody else may read now, with the deadline that is declared.

        Raises:
            LostSlot: There is none, or it was let go.
            SlotInUse: Somebody else reads it.
        """
        slot = self.find(name)
        mine = slot.reader
        if mine is None or mine.id != self.reader or _ends_soon(slot):
            slot = self.slots.take(name, self.reader, LENGTH)
        wanted = None if self.deadline is None else self.deadline.total_seconds()
        if slot.deadline == wanted:
            return slot
        return self.slots.change(name, lambda slot: replace(slot, deadline=wanted))

    def hold(self, name: str, tables: Mapping[str, TableLog]) -> Slot:
        """Hold tables at these versions, except for those that the slot holds already; it is made
        if there is none.

        Raises:
            LostSlot: It was let go.
            SlotInUse: Somebody else reads it.
        """
        with suppress(MissingSlot):
            if self.slots.find(name) is None:
                self._create(name)
        slot = self.take(name)
        new = {
            table: VersionHold.of(log) for table, log in tables.items() if table not in slot.held
        }
        return self._store(slot, {**slot.held, **new}) if new else slot

    def confirm(self, name: str, applied: Mapping[str, int], unused: Collection[str]) -> str:
        """Move tables on to what was applied, and let go of those that are not used any more.

        Returns:
            The position of the slot.
        """
        slot = self.take(name)
        held = {table: each for table, each in slot.held.items() if table not in unused}
        for table, version in applied.items():
            if table in held and version > held[table].version:
                held[table] = self._hold_version(name, table, version)
        return position_of(slot if held == slot.held else self._store(slot, held))

    def drop(self, name: str) -> None:
        """
        Raises:
            SlotInUse: Somebody else reads it.
        """
        with suppress(MissingSlot):
            self.slots.release(name, self.reader)
            self.slots.drop(name)

    def _create(self, name: str) -> None:
        slot = Slot.new(
            name, self.relation, fingerprint=_FINGERPRINT, clock="version", held={},
            deadline=self.deadline,
        )  # fmt: skip
        with suppress(RefusedOperation):  # somebody made it just now
            self.slots.create(slot)

    def _store(self, slot: Slot, held: Mapping[str, VersionHold]) -> Slot:
        return self.slots.ack(slot.name, self.reader, slot.token, held)

    def _hold_version(self, slot: str, table: str, version: int) -> VersionHold:
        log = self.catalog.at(table, version)
        if log is None:
            why = f"version {version} was applied, and its log is not there any more"
            raise missing_changes_error(slot, table, why)
        return VersionHold.of(log)


def position_of(slot: Slot) -> str:
    """The versions that it holds, as `Publisher.confirm` returns them."""
    return json.dumps({table: slot.held[table].version for table in sorted(slot.held)})


def _ends_soon(slot: Slot) -> bool:
    assert slot.reader is not None
    return slot.reader.until - datetime.now(UTC) < LENGTH * 2 / 3
