"""The assets of replications, and the graph of all nodes that are refreshed.

`ReplicationCatalog`: the replications of a code location, each with the assets of its tables: of
those in its declaration, and of those in its stored state. Nothing here connects to a publisher.

`NodeAssets`: the graph of stream tables and replications, with the assets of each node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import dagster as dg

from dagster_streamtables.declare.nodes import (
    Nodes,
    ReplicationNode,
    ScheduledReplication,
    Tables,
    declared_tables,
    inherit_schedules,
)
from dagster_streamtables.declare.schedule import MIN_SCHEDULE_SECONDS, Schedule, parse_schedule
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import (
    Catalog,
    CatalogEntry,
    complete_spec,
    with_schedule,
)
from dagster_streamtables.orchestration.catalog.translator import (
    ReplicatedTableProps,
    StreamTablesTranslator,
    asset_key,
    placeholder,
)
from dagster_streamtables.replication.lifecycle.publisher_declaration import FromPostgres
from dagster_streamtables.replication.lifecycle.replication import Replication


@dataclass(frozen=True)
class ReplicationEntry:
    """A replication and the assets of its tables."""

    node: ReplicationNode
    specs: Mapping[str, dg.AssetSpec]
    """By target. While no table is known, one by the name of the replication stands for all."""

    @property
    def name(self) -> str:
        return self.replication.name

    @property
    def replication(self) -> Replication:
        return self.node.replication

    @property
    def tables(self) -> Tables:
        return self.node.tables

    @property
    def keys(self) -> list[dg.AssetKey]:
        return [spec.key for spec in self.specs.values()]


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
        """Asset → the name of its replication in the graph."""
        return {key: entry.node.name for entry in self.entries for key in entry.keys}

    def read_by(self, catalogs: Iterable[Catalog]) -> ReplicationCatalog:
        """The same, with the durations that replications inherit from readers of their tables."""
        readers = {e.key.to_user_string(): e for catalog in catalogs for e in catalog.sound}
        reads = {each: self._read(entry) for each, entry in readers.items()}
        examined = {each: entry.examined for each, entry in readers.items()}
        nodes = inherit_schedules([each.node for each in self.entries], examined, reads)
        entries: list[ReplicationEntry] = []
        for entry, node in zip(self.entries, nodes, strict=True):
            if entry.node != node:
                before = entry.node.schedule
                specs = {t: with_schedule(spec, before, node) for t, spec in entry.specs.items()}
                entry = ReplicationEntry(node, specs)
            entries.append(entry)
        return ReplicationCatalog(tuple(entries))

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
        columns: By target, its columns if it exists.
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
        _without_env_vars(e if isinstance(e, ScheduledReplication) else ScheduledReplication(e))
        for e in replications
    ]
    translator = translator or StreamTablesTranslator()
    given, types = source_keys or {}, columns or {}
    entries: list[ReplicationEntry] = []
    for each in declared:
        tables = declared_tables(each.replication) | dict((stored or {}).get(each.name, {}))
        node = ReplicationNode(each, tables, _schedule(each, min_schedule_seconds))
        found = {
            target: translator.get_replicated_spec(
                ReplicatedTableProps(
                    each.replication, name, target, given.get(target) or asset_key(target),
                    node.schedule, types.get(target),
                )
            )
            for name, target in tables.items()
        }  # fmt: skip
        needed = {
            keys.SCHEDULE: each.schedule or "CALCULATED",
            keys.RESOLVED_SCHEDULE: node.resolved_schedule,
        }
        group = each.group_name or group_name
        specs = found or {each.name: placeholder(each.replication, node.schedule)}
        specs = {target: complete_spec(spec, needed, group) for target, spec in specs.items()}
        entries.append(ReplicationEntry(node, specs))
    _require_one_of_each(entries)
    return ReplicationCatalog(tuple(entries))


def _schedule(declared: ScheduledReplication, min_schedule_seconds: float) -> Schedule | None:
    try:
        return parse_schedule(
            declared.schedule, declared.timezone, min_schedule_seconds=min_schedule_seconds
        )
    except InvalidDefinition as error:
        named = f"replication {declared.name}"
        raise error.with_parts(where=f"{named}\n{error.where}".strip()) from None


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


def _without_env_vars(declared: ScheduledReplication) -> ScheduledReplication:
    """The same with the name of the variable instead of Dagster's `EnvVar`, which must not become a
    text: the password is read by the process that refreshes the replication."""
    publisher = declared.replication.publisher
    variable = publisher.password_env if isinstance(publisher, FromPostgres) else None
    if not isinstance(variable, dg.EnvVar):
        return declared
    publisher = replace(publisher, password_env=variable.env_var_name)
    return replace(declared, replication=replace(declared.replication, publisher=publisher))


@dataclass(frozen=True)
class NodeAssets:
    """The assets that one sensor or worker refreshes, by the names of their nodes."""

    catalog: Catalog
    replicated: ReplicationCatalog = field(default_factory=ReplicationCatalog)

    @cached_property
    def nodes(self) -> Nodes:
        return Nodes(
            tuple(entry.examined for entry in self.catalog.entries),
            tuple(entry.node for entry in self.replicated.entries),
        )

    @cached_property
    def tables(self) -> dict[str, CatalogEntry]:
        """The stream tables that are not broken."""
        return {entry.name: entry for entry in self.catalog.sound}

    @cached_property
    def replications(self) -> dict[str, ReplicationEntry]:
        return {entry.node.name: entry for entry in self.replicated.entries}

    @cached_property
    def specs(self) -> dict[str, list[dg.AssetSpec]]:
        """The assets that a refresh of each node materializes."""
        found = {node: [*each.specs.values()] for node, each in self.replications.items()}
        return found | {name: [entry.spec] for name, entry in self.tables.items()}

    @property
    def all(self) -> list[dg.AssetSpec]:
        """All assets that refreshes materialize."""
        return [spec for specs in self.specs.values() for spec in specs]

    @cached_property
    def source_keys(self) -> dict[str, Mapping[str, dg.AssetKey]]:
        """The assets that each stream table reads, by their names in its query."""
        return {name: entry.source_keys for name, entry in self.tables.items()}
