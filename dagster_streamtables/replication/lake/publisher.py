"""`LakePublisher`: a lake as the publisher of a replication, see `Publisher`.

A position is a version of a table. A slot is one of the lake's slots, so that its vacuums leave
what the slot needs.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from dagster_streamtables.replication.lake.errors import lost_table
from dagster_streamtables.replication.lake.held_tables import HeldTables, position_of
from dagster_streamtables.replication.lake.lake_copy import LakeCopy
from dagster_streamtables.replication.lake.publications import Publications
from dagster_streamtables.replication.lake.published_tables import PublishedTables, by_name
from dagster_streamtables.replication.lake.rules import Rule
from dagster_streamtables.replication.lake.shown_rows import ShownRows
from dagster_streamtables.replication.lake.table_reader import TableReader
from dagster_streamtables.replication.model.batch import Batch, TableChanges
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.model.published_table import PublishedTable
from dagster_streamtables.replication.model.publisher import Lag
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.slot import Slot
from dagster_streamtables.runtime.model.stream_table import StreamTable

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
        stream_tables: Iterable[StreamTable] = (),
        spark: SparkSession | str | None = None,
        driver_rows: int | None = None,
    ) -> None:
        """
        Args:
            root: Of the lake, as for `Lake`.
            publications: Their names; a table that is in several is published once.
            storage_options: What delta-rs needs to reach an object store.
            origin: "none" leaves out the commits that a replication made, so that two lakes can
                replicate each other.
            reader: Who reads the slot, such as the subscribing lake and its replication. While one
                reads it, and a minute longer, no other may.
            deadline: The slot is let go if nobody has read it for so long; None for never.
            stream_tables: The declarations of published stream tables, which tell their keys.
            spark: As for `Lake`: it decides row filters, and reads what is large.
            driver_rows: A commit that changed more rows is read by Spark, as for `Lake`.
        """
        self._lake = Lake(
            root, spark=spark, storage_options=storage_options, driver_rows=driver_rows
        )
        self._catalog = self._lake.access.catalog
        declared = by_name(stream_tables)
        known = Publications(self._lake.root, storage_options)
        self._tables = PublishedTables(known, publications, self._catalog, declared)
        relation = f"a replication of {', '.join(publications)}"
        self._held = HeldTables(self._lake.slots, self._catalog, reader, deadline, relation)
        self._local_only = origin == "none"

    @property
    def origin(self) -> str:
        return self._lake.root

    def published(self) -> Mapping[str, PublishedTable]:
        found = self._tables.shown()
        for table, log in found.values():
            ShownRows(self._lake.access, table, log).require_readable()
        return {name: table.published for name, (table, _) in found.items()}

    @contextmanager
    def copy(self, slot: str, tables: Collection[str]) -> Iterator[LakeCopy]:
        shown = self._tables.shown()
        chosen = {name: shown[name] for name in self._require(tables, shown)}
        self._held.hold(slot, {name: log for name, (_, log) in chosen.items()})
        access = self._lake.access
        rows = {name: ShownRows(access, table, log) for name, (table, log) in chosen.items()}
        yield LakeCopy(slot, rows)

    def create_slot(self, slot: str, tables: Collection[str]) -> Mapping[str, int]:
        shown = self._tables.shown()
        logs = {name: shown[name][1] for name in self._require(tables, shown)}
        held = self._held.hold(slot, logs).held
        return {name: held[name].version for name in logs}

    def read(
        self, slot: str, after: Mapping[str, int], confirmed: str | None, *, max_rows: int
    ) -> Batch:
        held, rules = self._held.take(slot), self._tables.rules()
        readers = {
            name: self._reader(held, name, version, rules[name])
            for name, version in after.items()
            if name in rules
        }
        moved = {
            name: held.held[name].version
            for name in readers
            if position_of(held) != confirmed and held.held[name].version > after[name]
        }
        _read(readers, max_rows)
        found = {name: changes for name, each in readers.items() if (changes := each.changes())}
        _require_unmoved(slot, moved, found)
        end = {name: self._unpublished(name, version) for name, version in after.items()}
        end |= {name: each.last.version for name, each in readers.items()}
        complete = all(each.last.version == each.newest.version for each in readers.values())
        return Batch(found, end, complete)

    def confirming(self, applied: Mapping[str, int]) -> str:
        return json.dumps({name: applied[name] for name in sorted(applied)})

    def confirm(self, slot: str, applied: Mapping[str, int]) -> str:
        others = self._held.find(slot).held.keys() - applied.keys()
        # A table that is copied just now has no position yet, but it is published.
        unused = others - self._tables.rules().keys() if others else others
        return self._held.confirm(slot, applied, unused)

    def drop_slot(self, slot: str) -> None:
        self._held.drop(slot)

    def lag(self, slot: str, applied: Mapping[str, int]) -> Lag:
        is_abandoned = self._held.find(slot).is_abandoned()
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

    def _reader(self, slot: Slot, name: str, version: int, rule: Rule) -> TableReader:
        newest = self._newest(slot, name, version)
        last = newest if newest.version == version else self._catalog.at(name, version)
        if last is None:
            why = f"the log was cleaned up: version {version} is gone"
            raise lost_table(slot.name, name, why)
        key = self._tables.key(name, newest)
        return TableReader(
            self._lake.access, slot.name, rule, key, last, newest, self._local_only
        )  # fmt: skip

    def _newest(self, slot: Slot, name: str, version: int) -> TableLog:
        """
        Raises:
            LostSlot: It is another table, or another history, than the one that is held.
        """
        held, newest = slot.held.get(name), self._catalog.newest(name)
        if held is None:
            raise lost_table(slot.name, name, "the slot does not hold that table")
        if newest is None or newest.id != held.table:
            again = "" if newest is None else ", and another was created in its place"
            raise lost_table(slot.name, name, f"the table was dropped{again}")
        same = newest.commit_at(held.version) in (None, held.commit)
        if not same or newest.version < max(version, held.version):
            raise lost_table(slot.name, name, "its files were put back from a copy")
        return newest

    def _unpublished(self, name: str, version: int) -> int:
        """Where a table is that is not published any more: nothing of it is."""
        newest = self._catalog.newest(name)
        return version if newest is None else max(version, newest.version)

    def _require(self, tables: Collection[str], there: Collection[str]) -> Collection[str]:
        for name in tables:
            if name not in there:
                raise PublisherProblem(
                    f'the table "{name}" is not published',
                    where=self.origin,
                    why=f"the publications have {', '.join(sorted(there)) or 'no tables'}",
                    fix="add it to one of the publications",
                )
        return tables


def _read(readers: Mapping[str, TableReader], max_rows: int) -> None:
    """Read commits in the order of their times, so that no table waits for another."""
    due = [(each.due, name) for name, each in readers.items() if not each.over]
    heapq.heapify(due)
    count = 0
    while due and count < max_rows:
        name = heapq.heappop(due)[1]
        count += readers[name].read_next()
        if not readers[name].over:
            heapq.heappush(due, (readers[name].due, name))


def _require_unmoved(
    slot: str, moved: Mapping[str, int], found: Mapping[str, TableChanges]
) -> None:
    """
    Raises:
        LostSlot: The slot was moved on over changes that were not applied.
    """
    for name, version in moved.items():
        if name in found and found[name].transactions[0].position <= version:
            why = f"somebody else has moved it on to version {version}"
            raise lost_table(slot, name, why)
