"""`LakePublisher`: a lake as the publisher of a replication, see `Publisher`.

A position is the version of a table. A replication's slot holds a version of each of its tables; it
is one of the lake's slots, so vacuums keep the files that it needs.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

from dagster_streamtables.errors import PublisherProblem, RefusedOperation, StreamTablesError
from dagster_streamtables.replication.lake.publication import (
    Publication,
    Publications,
    missing_changes_error,
    missing_version_error,
    qualify_name,
)
from dagster_streamtables.replication.lake.publication_rows import LakeCopy, PublicationRows
from dagster_streamtables.replication.lake.publication_rules import (
    PublicationRule,
    PublicationView,
    apply_rule,
    rules_of,
)
from dagster_streamtables.replication.lake.table_reader import TableReader
from dagster_streamtables.replication.model.replication_model import (
    Batch,
    Lag,
    PublishedTable,
    TableChanges,
    TableOffer,
    of_each,
)
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.errors.slot_errors import (
    LostSlot,
    MissingSlot,
    of_another_relation,
)
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.observe.lease import LENGTH
from dagster_streamtables.runtime.observe.slot_store import Slot, Slots, VersionHold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LakePublisher:
    """Publications of a lake, to read them from elsewhere. It writes nothing but slots."""

    def __init__(
        self,
        root: str,
        publications: Sequence[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        origin: Literal["any", "none"] = "any",
        reader: str = "replication",
        deadline: timedelta | None = None,
        spark: SparkSession | str | None = None,
        driver_rows: int | None = None,
    ) -> None:
        """
        Args:
            root: As for `FromLake`; likewise the publications and the origin.
            storage_options: What delta-rs needs to reach an object store.
            reader: The reader of the slot, such as the subscribing lake and its replication. While
                one reads it, and a minute longer, no other may.
            deadline: The slot is released if it was not read for this time; None for never.
            spark: As for `Lake`: it evaluates row filters, and reads large changes.
            driver_rows: A commit that changed more rows is read by Spark, as for `Lake`.
        """
        self._lake = Lake(
            root, spark=spark, storage_options=storage_options, driver_rows=driver_rows
        )
        self._catalog = self._lake.access.catalog
        self._publications = Publications(self._lake.root, storage_options)
        self._names = publications
        relation = f"a replication of {', '.join(publications)}"
        self._held = ReplicationSlots(self._lake.slots, self._catalog, reader, deadline, relation)
        self._local_only = origin == "none"

    @property
    def origin(self) -> str:
        return self._lake.root

    def offer(self) -> TableOffer:
        shown, refused = self._current_views()

        def readable_table(name: str) -> PublishedTable:
            table, log = shown[name]
            PublicationRows(self._lake.access, table, log).require_readable()
            return table.published

        found, others = of_each(shown, readable_table)
        return TableOffer(found, refused | others)

    @contextmanager
    def copy(self, slot: str, tables: Collection[str]) -> Iterator[LakeCopy]:
        chosen = self._require_tables(tables)
        self._held.hold(slot, {name: log for name, (_, log) in chosen.items()})
        access = self._lake.access
        rows = {name: PublicationRows(access, table, log) for name, (table, log) in chosen.items()}
        yield LakeCopy(slot, rows)

    def create_slot(self, slot: str, tables: Collection[str]) -> Mapping[str, int]:
        logs = {name: log for name, (_, log) in self._require_tables(tables).items()}
        held = self._held.hold(slot, logs).held
        return {name: held[name].version for name in logs}

    def read(
        self, slot: str, after: Mapping[str, int], confirmed: str | None, *, max_rows: int
    ) -> Batch:
        held, (rules, refused) = self._held.take(slot), self._rules()
        moved = position_of(held) != confirmed
        refused = {name: error for name, error in refused.items() if name in after}

        def reader(name: str) -> TableReader:
            return self._reader(held, name, after[name], rules[name])

        def changes(name: str) -> TableChanges | None:
            found = readers[name].changes()
            at = held.held[name].version
            if moved and found is not None and found.positions[0] <= at:
                why = f"somebody else has moved it on to version {at}"
                raise missing_changes_error(slot, name, why)
            return found

        readers, lost = of_each([name for name in after if name in rules], reader)
        refused |= lost | _read(readers, max_rows)
        found, lost = of_each([name for name in readers if name not in refused], changes)
        refused |= lost
        end = {
            name: readers[name].last.version if name in readers else self._skip_to_newest(name, at)
            for name, at in after.items()
            if name not in refused
        }
        complete = all(end[n] == r.newest.version for n, r in readers.items() if n in end)
        return Batch({n: each for n, each in found.items() if each}, end, complete, refused)

    def confirming(self, applied: Mapping[str, int]) -> str:
        return json.dumps({name: applied[name] for name in sorted(applied)})

    def confirm(self, slot: str, applied: Mapping[str, int]) -> str:
        others = self._held.find(slot).held.keys() - applied.keys()
        # A table that is copied just now has no position yet, but it is published.
        unused = others.difference(*self._rules()) if others else others
        return self._held.confirm(slot, applied, unused)

    def release(self, slot: str, tables: Collection[str]) -> None:
        self._held.confirm(slot, {}, tables)

    def drop_slot(self, slot: str) -> None:
        self._held.drop(slot)

    def lag(self, slot: str, applied: Mapping[str, int]) -> Lag:
        is_abandoned = self._held.find(slot).is_idle()
        sources = self._lake.retention.slot(slot).sources
        behind = [
            max(0, each.newest - applied.get(each.source, each.acknowledged))
            for each in sources
            if each.newest is not None
        ]
        sizes = [each.bytes_behind for each in sources]
        known = [size for size in sizes if size is not None]
        return Lag(
            commits=sum(behind),
            bytes=sum(known) if len(known) == len(sizes) else None,
            seconds=max((each.seconds_behind or 0.0 for each in sources), default=0.0),
            is_abandoned=is_abandoned,
        )

    def _reader(self, slot: Slot, name: str, version: int, rule: PublicationRule) -> TableReader:
        newest = self._newest(slot, name, version)
        last = newest if newest.version == version else self._catalog.at(name, version)
        if last is None:
            raise missing_version_error(slot.name, name, version)
        return TableReader(self._lake.access, slot.name, rule, last, newest, self._local_only)

    def _newest(self, slot: Slot, name: str, version: int) -> TableLog:
        """Raise `LostSlot` if it is another table, or another history, than the held one."""
        held, newest = slot.held.get(name), self._catalog.newest(name)
        if held is None:
            raise missing_changes_error(slot.name, name, "the slot does not hold that table")
        if newest is None or newest.id != held.table:
            again = "" if newest is None else ", and another was created in its place"
            raise missing_changes_error(slot.name, name, f"the table was dropped{again}")
        same = newest.commit_at(held.version) in (None, held.commit)
        if not same or newest.version < max(version, held.version):
            raise missing_changes_error(slot.name, name, "its files were put back from a copy")
        return newest

    def _skip_to_newest(self, name: str, version: int) -> int:
        """The end of a table that is no longer published, and so has no changes."""
        newest = self._catalog.newest(name)
        return version if newest is None else max(version, newest.version)

    def _require_tables(self, tables: Collection[str]) -> dict[str, ViewAtVersion]:
        shown, refused = self._current_views()
        for name in tables:
            if name in refused:
                raise refused[name]
            if name not in shown:
                raise PublisherProblem(
                    f'the table "{name}" is not published',
                    where=self.origin,
                    why=f"the publications have {', '.join(sorted(shown)) or 'no tables'}",
                    fix="add it to one of the publications",
                )
        return {name: shown[name] for name in tables}

    def _rules(self) -> tuple[dict[str, PublicationRule], dict[str, StreamTablesError]]:
        """The rule of each table, and the errors of tables whose publications contradict each
        other.

        Raises:
            PublisherProblem: A publication does not exist.
        """
        known = self._all_publications()
        there: Iterable[str] = ()
        if any(each.all_tables or each.schemas for each in known):
            there = self._catalog.names.tables(self._catalog.logs.storage_options)
        return rules_of(known, map(qualify_name, there))

    def _current_views(self) -> tuple[dict[str, ViewAtVersion], dict[str, StreamTablesError]]:
        """Each published table with its visible columns and rows, at its newest version; and the
        errors of tables that do not exist, or do not fit their publication.

        Raises:
            PublisherProblem: A publication does not exist.
        """
        named = {each.table for known in self._all_publications() for each in known.tables}
        rules, refused = self._rules()

        def find(name: str) -> ViewAtVersion | None:
            log = self._catalog.newest(name)
            if log is not None:
                return apply_rule(rules[name], log), log
            if name not in named:
                return None  # it was dropped since it was listed
            raise PublisherProblem(
                f'the published table "{name}" does not exist',
                where=self._catalog.names.location(name),
                fix="create it, or take it out of the publication",
            )

        found, others = of_each(rules, find)
        return {n: each for n, each in found.items() if each is not None}, refused | others

    def _all_publications(self) -> list[Publication]:
        return [self._publications.read(name) for name in dict.fromkeys(self._names)]


def _read(readers: Mapping[str, TableReader], max_rows: int) -> dict[str, StreamTablesError]:
    """Read commits in the order of their times, so that no table waits for another.

    Returns:
        The errors of tables that cannot be read further.
    """
    refused: dict[str, StreamTablesError] = {}
    waiting: list[tuple[float, str]] = []

    def wait(names: Iterable[str]) -> None:
        left = [name for name in names if not readers[name].over]
        due, lost = of_each(left, lambda name: readers[name].due)
        refused.update(lost)
        for name, at in due.items():
            heapq.heappush(waiting, (at, name))

    wait(readers)
    count = 0
    while waiting and count < max_rows:
        _, name = heapq.heappop(waiting)
        read, lost = of_each([name], lambda name: readers[name].read_next())
        refused |= lost
        count += read.get(name, 0)
        wait(read)
    return refused


ViewAtVersion: TypeAlias = tuple[PublicationView, TableLog]


_FINGERPRINT = "replication"
"""No subscription has it, so neither reads the slots of the other."""


@dataclass(frozen=True)
class ReplicationSlots:
    """The slots of replications. One slot holds all tables of a replication, each at its own
    version, so that a vacuum keeps what follows it."""

    slots: Slots
    catalog: TableCatalog
    reader: str
    """The reader's name; others must wait for a minute after its end."""
    deadline: timedelta | None
    relation: str
    """What new slots follow, for people who look at them."""

    def find(self, name: str) -> Slot:
        """
        Raises:
            LostSlot: It does not exist, or was released.
            RefusedOperation: It is a slot of a subscription.
        """
        slot = self.slots.find(name)
        if slot is None:
            raise LostSlot(
                f'there is no slot "{name}" at the publisher',
                why="it was dropped, so nothing was kept",
                fix="copy the tables again, which makes it anew",
            )
        if slot.fingerprint != _FINGERPRINT:
            raise of_another_relation(name, slot.relation)
        if slot.is_lost:
            raise LostSlot(
                f'slot "{name}" was released by the publisher',
                why=slot.reason,
                fix="drop the slot and copy its tables again, or take the table out of the "
                "replication",
            )
        return slot

    def take(self, name: str) -> Slot:
        """The slot, which no other process may read now, with the declared deadline.

        Raises:
            LostSlot: It does not exist, or was released.
            SlotInUse: Another process reads it.
        """
        slot = self.find(name)
        mine = slot.reader
        soon = datetime.now(UTC) + LENGTH * 2 / 3
        if mine is None or mine.id != self.reader or mine.until < soon:
            slot = self.slots.take(name, self.reader, LENGTH)
        wanted = None if self.deadline is None else self.deadline.total_seconds()
        if slot.deadline == wanted:
            return slot
        return self.slots.change(name, lambda slot: replace(slot, deadline=wanted))

    def hold(self, name: str, tables: Mapping[str, TableLog]) -> Slot:
        """Hold tables at these versions, except for those that the slot holds already; create it if
        missing.

        Raises:
            LostSlot: It was released.
            SlotInUse: Another process reads it.
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
        """Move tables to the applied versions, release unused ones, and return the slot's
        position."""
        slot = self.take(name)
        held = {table: each for table, each in slot.held.items() if table not in unused}
        for table, version in applied.items():
            if table in held and version > held[table].version:
                log = self.catalog.at(table, version)
                if log is None:
                    why = f"version {version} was applied, and its log is not there any more"
                    raise missing_changes_error(name, table, why)
                held[table] = VersionHold.of(log)
        return position_of(slot if held == slot.held else self._store(slot, held))

    def drop(self, name: str) -> None:
        """Raise `SlotInUse` if another process reads it."""
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


def position_of(slot: Slot) -> str:
    """The held versions, as `Publisher.confirm` returns them."""
    return json.dumps({table: slot.held[table].version for table in sorted(slot.held)})
