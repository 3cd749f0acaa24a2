"""Declared replications: the tables that each is known to write, and its schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
