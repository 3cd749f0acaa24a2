"""`Nodes`: what a sensor decides about: stream tables, and replications with all their tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import dagster as dg

from dagster_streamtables.orchestration.catalog.catalog import Catalog, CatalogEntry
from dagster_streamtables.orchestration.catalog.replicated import (
    ReplicationCatalog,
    ReplicationEntry,
)
from dagster_streamtables.orchestration.declare.schedule import Schedule


@dataclass(frozen=True)
class Nodes:
    """The graph of what is refreshed, by name; replications come first, since nothing here is
    upstream of them."""

    catalog: Catalog
    replicated: ReplicationCatalog

    @cached_property
    def tables(self) -> dict[str, CatalogEntry]:
        """The stream tables that are not broken."""
        return {entry.name: entry for entry in self.catalog.sound}

    @cached_property
    def replications(self) -> dict[str, ReplicationEntry]:
        return {entry.node: entry for entry in self.replicated.entries}

    @cached_property
    def specs(self) -> dict[str, list[dg.AssetSpec]]:
        """The assets that a refresh of each materializes."""
        found = {node: [*each.specs.values()] for node, each in self.replications.items()}
        return found | {name: [entry.spec] for name, entry in self.tables.items()}

    @property
    def all(self) -> list[dg.AssetSpec]:
        """All assets that refreshes materialize."""
        return [spec for specs in self.specs.values() for spec in specs]

    @cached_property
    def source_keys(self) -> dict[str, Mapping[str, dg.AssetKey]]:
        """The assets of what each stream table reads, by their names in its query."""
        return {name: entry.source_keys for name, entry in self.tables.items()}

    @cached_property
    def schedules(self) -> dict[str, Schedule | None]:
        found = {node: each.schedule for node, each in self.replications.items()}
        return found | {name: entry.examined.schedule for name, entry in self.tables.items()}

    @cached_property
    def writers(self) -> dict[str, str]:
        """The replication that writes a table, by the table's name in queries."""
        return {t: self.replicated.nodes[key] for t, key in self.replicated.keys.items()}

    @cached_property
    def reads(self) -> dict[str, Sequence[str]]:
        """What each reads: a replication in place of its tables."""
        found: dict[str, Sequence[str]] = dict.fromkeys(self.replications, ())
        for name, sources in self.catalog.reads.items():
            found[name] = tuple(dict.fromkeys(self.writers.get(each, each) for each in sources))
        return found

    @cached_property
    def fingerprint(self) -> str:
        """A hash that changes with any declaration."""
        if not self.replications:
            return self.catalog.fingerprint
        both = f"{self.catalog.fingerprint} {self.replicated.fingerprint}"
        return hashlib.sha256(both.encode()).hexdigest()[:16]
