"""`Nodes`: what one sensor or worker refreshes, as a graph of stream tables and replications."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from dagster_streamtables.declare import graph
from dagster_streamtables.declare.analysis import TableAnalysis
from dagster_streamtables.declare.replication_nodes import ReplicationNode
from dagster_streamtables.declare.schedule import Schedule

Node = TableAnalysis | ReplicationNode
"""What one refresh brings up to date: a stream table, or all tables of a replication."""


@dataclass(frozen=True)
class Nodes:
    """The graph of what is refreshed. Replications come first: nothing here is upstream of them."""

    examined: tuple[TableAnalysis, ...] = ()
    """Stream tables, each after those it reads; broken ones last."""
    replicated: tuple[ReplicationNode, ...] = ()

    @cached_property
    def tables(self) -> dict[str, TableAnalysis]:
        """The stream tables that can be refreshed, each after those it reads."""
        return {each.name: each for each in self.examined if each.error is None}

    @cached_property
    def broken(self) -> list[TableAnalysis]:
        return [each for each in self.examined if each.error is not None]

    @cached_property
    def replications(self) -> dict[str, ReplicationNode]:
        return {each.name: each for each in self.replicated}

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """All that can be refreshed, each after what it reads."""
        return {**self.replications, **self.tables}

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.by_name)

    @cached_property
    def schedules(self) -> dict[str, Schedule | None]:
        return {name: each.schedule for name, each in self.by_name.items()}

    @cached_property
    def writers(self) -> dict[str, str]:
        """Replicated table, by its name in queries → the replication that writes it."""
        found = self.replications.items()
        return {target: name for name, each in found for target in each.tables.values()}

    @cached_property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """What each reads: instead of replicated tables, the replication that writes them."""
        return {
            name: tuple(dict.fromkeys(self.writers.get(source, source) for source in each.sources))
            for name, each in self.by_name.items()
        }

    @cached_property
    def readers(self) -> dict[str, list[str]]:
        """What reads each, each after those it reads."""
        return graph.readers(self.reads)

    @cached_property
    def shared(self) -> frozenset[str]:
        """Sources that are not stream tables and that several tables read. If each of these tables
        read them as of another time, a table that reads several of these would wait forever."""
        readers: dict[str, int] = {}
        for name, each in self.tables.items():
            for source in {*each.sources} - self.tables.keys() - {name}:
                readers[source] = readers.get(source, 0) + 1
        return frozenset(source for source, count in readers.items() if count > 1)

    def definition(self, name: str) -> str | None:
        """Text that changes with the declaration of one; None if it is not here, or broken."""
        return self.by_name[name].definition if name in self.by_name else None

    @cached_property
    def fingerprint(self) -> str:
        """A hash that changes with any declaration, broken ones included."""
        definitions = sorted(each.definition for each in (*self.examined, *self.replicated))
        return hashlib.sha256("\n".join(definitions).encode()).hexdigest()[:16]
