"""`Nodes`: what one sensor or worker refreshes, stream tables and replications, as a graph."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from dagster_streamtables.declare import graph
from dagster_streamtables.declare.analysis import TableAnalysis
from dagster_streamtables.declare.schedule import Schedule, resolved_text
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.setting import Display, normalize_fields

Tables = Mapping[str, str]
"""Published table → its target in the lake."""


@dataclass(frozen=True)
class ScheduledReplication:
    """A replication, and when Dagster refreshes it.

    A `Replication` without this is as fresh as the stream tables that read its tables need.
    """

    replication: Replication
    schedule: Annotated[
        str | None, Display(("5m", "0 6 * * *", "@hourly", "CALCULATED"), default="`CALCULATED`")
    ] = None
    """How fresh its tables are kept, as the schedule of a stream table."""
    timezone: str = "UTC"
    """The time zone of a cron expression."""
    group_name: str | None = None
    """The group of the assets of its tables."""

    def __post_init__(self) -> None:
        normalize_fields(self)

    @property
    def name(self) -> str:
        """The name of the replication."""
        return self.replication.name


def declared_tables(replication: Replication) -> dict[str, str]:
    """The tables that a declaration names, with their targets."""
    tables, _ = replication.publisher.publication_members or ((), ())
    return {name: replication.target(name) for name in (*tables, *replication.targets)}


@dataclass(frozen=True)
class ReplicationNode:
    """A replication in the graph of what is refreshed: one refresh writes all of its tables."""

    declared: ScheduledReplication
    tables: Tables
    """The known tables; empty before the first refresh of a replication that names none."""
    schedule: Schedule | None = None
    """Its own schedule, or the one that it inherits; None if it is refreshed on demand."""
    inherits: tuple[str, ...] | None = None
    """The path to the table whose duration it inherits; None if it has its own schedule."""

    @property
    def name(self) -> str:
        """Its name in the graph, which no table can have."""
        return f"replication {self.declared.name}"

    @property
    def replication(self) -> Replication:
        return self.declared.replication

    @property
    def sources(self) -> tuple[str, ...]:
        """Tables of this lake that it reads: none."""
        return ()

    @property
    def definition(self) -> str:
        """Text that changes with its declaration."""
        said = [self.replication.to_json(), self.declared.schedule]
        return json.dumps(said, sort_keys=True, default=str)

    @property
    def resolved_schedule(self) -> str:
        """The schedule as text, with the tables it is inherited from."""
        return resolved_text(self.schedule, self.inherits, "stream table")


def inherit_schedules(
    replications: Sequence[ReplicationNode],
    readers: Mapping[str, TableAnalysis],
    reads: Mapping[str, Sequence[str]],
) -> list[ReplicationNode]:
    """Give replications without a schedule the durations of the tables that read theirs.

    A cron schedule is not inherited: such a reader refreshes what it reads when it is due. `reads`
    has, by the keys of `readers`, the names of the replications and the keys of the readers that
    each reader reads.
    """
    declared = {each.name: each.schedule for each in replications}
    declared |= {n: e.schedule if e.inherits is None else None for n, e in readers.items()}
    paths = graph.inheritance_paths(declared, {**{each.name: () for each in replications}, **reads})
    return [_inherit(each, paths.get(each.name), readers) for each in replications]


def _inherit(
    node: ReplicationNode, path: tuple[str, ...] | None, readers: Mapping[str, TableAnalysis]
) -> ReplicationNode:
    if path is None:
        return node
    schedule = readers[path[-1]].schedule if path else None
    return replace(node, schedule=schedule, inherits=tuple(readers[each].name for each in path))


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
