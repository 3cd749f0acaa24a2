"""`NodeAssets`: the graph of what is refreshed, with the assets of each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import dagster as dg

from dagster_streamtables.orchestration.catalog.catalog import Catalog, CatalogEntry
from dagster_streamtables.orchestration.catalog.replicated import (
    ReplicationCatalog,
    ReplicationEntry,
)
from dagster_streamtables.scheduling.nodes import Nodes


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
