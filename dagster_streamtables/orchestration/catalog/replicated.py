"""`ReplicationCatalog`: the replications of a code location, each with the assets of its tables.

Nothing here connects to a publisher: the tables of a replication are those of its declaration, and
those that its stored state has.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dagster as dg

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.catalog import Catalog, CatalogEntry
from dagster_streamtables.orchestration.catalog.freshness import freshness_policy
from dagster_streamtables.orchestration.catalog.replicated_asset import (
    ReplicatedTableProps,
    placeholder,
)
from dagster_streamtables.orchestration.catalog.scheduled_replication import (
    ScheduledReplication,
    declared_tables,
    without_env_vars,
)
from dagster_streamtables.orchestration.catalog.translator import StreamTablesTranslator, asset_key
from dagster_streamtables.orchestration.declare import graph
from dagster_streamtables.orchestration.declare.schedule import (
    MIN_SCHEDULE_SECONDS,
    Schedule,
    parse_schedule,
)
from dagster_streamtables.replication.lifecycle.replication import Replication

Tables = Mapping[str, str]
"""The tables of a replication: by their names at the publisher, their targets in the lake."""


@dataclass(frozen=True)
class ReplicationEntry:
    """A replication and the assets of its tables."""

    declared: ScheduledReplication
    tables: Tables
    """Those that are known; empty before the first refresh of one that names none."""
    specs: Mapping[str, dg.AssetSpec]
    """By target. While no table is known, one by the name of the replication stands for all."""
    schedule: Schedule | None = None
    """Its own schedule, or the one that it inherits; None if it is refreshed on demand."""
    inherits: tuple[str, ...] | None = None
    """The path to the table whose duration it inherits; None if it has its own schedule."""

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def node(self) -> str:
        """What stands for it in the graph of what is refreshed, and in what a sensor says."""
        return f"replication {self.name}"

    @property
    def replication(self) -> Replication:
        return self.declared.replication

    @property
    def keys(self) -> list[dg.AssetKey]:
        return [spec.key for spec in self.specs.values()]

    @property
    def resolved_schedule(self) -> str:
        """The schedule as text, with the tables it is inherited from."""
        if self.inherits is None:
            return self.schedule.text if self.schedule else "none"
        if self.schedule is None:
            return "on demand: no stream table that reads it has a duration as its schedule"
        return f"{self.schedule.text}, from {' through '.join(reversed(self.inherits))}"

    def scheduled(self, schedule: Schedule | None, path: tuple[str, ...]) -> ReplicationEntry:
        """The same with an inherited schedule. A policy that a translator has set stays."""
        after = replace(self, schedule=schedule, inherits=path)
        before = freshness_policy(self.schedule)

        def told(spec: dg.AssetSpec) -> dg.AssetSpec:
            if spec.freshness_policy == before:
                spec = spec.replace_attributes(freshness_policy=freshness_policy(schedule))
            said = {keys.RESOLVED_SCHEDULE: after.resolved_schedule}
            return spec.merge_attributes(metadata=said)

        return replace(after, specs={target: told(spec) for target, spec in self.specs.items()})


@dataclass(frozen=True)
class ReplicationCatalog:
    """The replications of a code location."""

    entries: tuple[ReplicationEntry, ...] = ()

    @cached_property
    def keys(self) -> dict[str, dg.AssetKey]:
        """The asset key of each known table, by its name in queries."""
        return {t: e.specs[t].key for e in self.entries for t in e.tables.values()}

    @cached_property
    def nodes(self) -> dict[dg.AssetKey, str]:
        """What stands for each asset in the graph."""
        return {key: entry.node for entry in self.entries for key in entry.keys}

    @cached_property
    def fingerprint(self) -> str:
        """A hash that changes with any declaration."""
        said = [
            [json.dumps(e.replication.to_json(), sort_keys=True, default=str), e.declared.schedule]
            for e in self.entries
        ]
        return hashlib.sha256(json.dumps(sorted(said, key=str)).encode()).hexdigest()[:16]

    def read_by(self, catalogs: Iterable[Catalog]) -> ReplicationCatalog:
        """The same, with the durations that replications inherit from the tables that read theirs.

        A cron schedule is not inherited: such a reader refreshes what it reads when it is due.
        """
        readers = {_id(e): e for catalog in catalogs for e in catalog.sound}
        reads: dict[str, list[str]] = {entry.node: [] for entry in self.entries}
        reads |= {each: self._read(entry) for each, entry in readers.items()}
        declared = {entry.node: entry.schedule for entry in self.entries}
        declared |= {each: _declared(entry) for each, entry in readers.items()}
        paths = graph.inherited(declared, reads)
        return ReplicationCatalog(tuple(_inheriting(e, paths, readers) for e in self.entries))

    def _read(self, entry: CatalogEntry) -> list[str]:
        sources = entry.source_keys.values()
        return [self.nodes.get(key) or key.to_user_string() for key in sources]


DeclaredReplications = ReplicationCatalog | Iterable[Replication | ScheduledReplication]


def build_replication_catalog(
    replications: DeclaredReplications,
    *,
    stored: Mapping[str, Tables] | None = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    translator: StreamTablesTranslator | None = None,
    group_name: str | None = None,
    source_keys: Mapping[str, dg.AssetKey] | None = None,
    min_schedule_seconds: float = MIN_SCHEDULE_SECONDS,
) -> ReplicationCatalog:
    """Define the assets of replicated tables. Returns a catalog unchanged.

    Args:
        replications: The declarations.
        stored: By replication, the tables that its stored state has.
        columns: By target, the columns of those that exist.
        translator: Decides key and metadata of each asset.
        group_name: The group of assets to which neither declaration nor translator gives one.
        source_keys: Asset keys by names in queries. The default key is the name, split at the dots.
        min_schedule_seconds: Refuse shorter schedules.

    Raises:
        InvalidDefinition: Two replications have one name or one target, or a schedule is not valid.
    """
    if isinstance(replications, ReplicationCatalog):
        return replications
    declared = [
        without_env_vars(e if isinstance(e, ScheduledReplication) else ScheduledReplication(e))
        for e in replications
    ]
    translator = translator or StreamTablesTranslator()
    entries = []
    for each in declared:
        schedule = _schedule(each, min_schedule_seconds)
        tables = declared_tables(each.replication) | dict((stored or {}).get(each.name, {}))
        found = ReplicationEntry(each, tables, {}, schedule)
        specs = _specs(found, translator, source_keys or {}, columns or {}, group_name)
        entries.append(replace(found, specs=specs))
    _require_one_of_each(entries)
    return ReplicationCatalog(tuple(entries))


def _specs(
    entry: ReplicationEntry,
    translator: StreamTablesTranslator,
    source_keys: Mapping[str, dg.AssetKey],
    columns: Mapping[str, Mapping[str, str]],
    group_name: str | None,
) -> dict[str, dg.AssetSpec]:
    found = {
        target: translator.get_replicated_spec(
            ReplicatedTableProps(
                entry.replication, name, target, source_keys.get(target) or asset_key(target),
                entry.schedule, columns.get(target),
            )
        )
        for name, target in entry.tables.items()
    }  # fmt: skip
    specs = found or {entry.name: placeholder(entry.replication, entry.schedule)}
    return {target: _completed(spec, entry, group_name) for target, spec in specs.items()}


def _completed(spec: dg.AssetSpec, entry: ReplicationEntry, group_name: str | None) -> dg.AssetSpec:
    said: dict[str, Any] = {
        keys.SCHEDULE: entry.declared.schedule or "CALCULATED",
        keys.RESOLVED_SCHEDULE: entry.resolved_schedule,
    }
    # A table that is not published any more is not materialized.
    spec = spec.merge_attributes(metadata=said).replace_attributes(skippable=True)
    group = entry.declared.group_name or group_name
    if group is not None and spec.group_name is None:
        spec = spec.replace_attributes(group_name=group)
    return spec


def _schedule(declared: ScheduledReplication, min_schedule_seconds: float) -> Schedule | None:
    try:
        return parse_schedule(
            declared.schedule, declared.timezone, min_schedule_seconds=min_schedule_seconds
        )
    except InvalidDefinition as error:
        named = f"replication {declared.name}"
        raise error.changed(where=f"{named}\n{error.where}".strip()) from None


def _require_one_of_each(entries: Sequence[ReplicationEntry]) -> None:
    for name, count in Counter(entry.name for entry in entries).items():
        if count > 1:
            raise InvalidDefinition(
                f'{count} replications have the name "{name}"',
                why="under it the lake stores how far a replication is",
                fix="name each differently",
            )
    targets = Counter(target for entry in entries for target in entry.tables.values())
    for target, count in targets.items():
        if count > 1:
            raise InvalidDefinition(
                f'{count} replications write the table "{target}"',
                why="only one op may write an asset",
                fix="give one of them another schema, or name its target in targets",
            )


def _inheriting(
    entry: ReplicationEntry,
    paths: Mapping[str, tuple[str, ...]],
    readers: Mapping[str, CatalogEntry],
) -> ReplicationEntry:
    path = paths.get(entry.node)
    if path is None:
        return entry
    found = [readers[each] for each in path]
    schedule = found[-1].examined.schedule if found else None
    return entry.scheduled(schedule, tuple(each.name for each in found))


def _declared(entry: CatalogEntry) -> Schedule | None:
    return entry.examined.schedule if entry.examined.inherits is None else None


def _id(entry: CatalogEntry) -> str:
    return entry.key.to_user_string()
