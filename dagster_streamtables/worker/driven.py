"""`Driven`: what a worker drives, wherever it was declared, and where it is reported."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from dagster_streamtables.orchestration.automation.dueness import Backoff
from dagster_streamtables.orchestration.declare import graph
from dagster_streamtables.orchestration.declare.analyze import Examined
from dagster_streamtables.orchestration.declare.schedule import Schedule
from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.report import Refresh
from dagster_streamtables.worker.memory import Memory

if TYPE_CHECKING:
    from dagster_streamtables.orchestration.catalog.replicated import (
        ReplicationCatalog,
        ReplicationEntry,
    )


class Reports(Protocol):
    """Who is told what a worker does. No call waits, and none raises."""

    def refreshed(self, refresh: Refresh, until: Mapping[str, datetime]) -> None:
        """A table was refreshed, with its sources read until these times."""
        ...

    def replicated(self, node: str, refresh: ReplicationRefresh, began: datetime) -> None:
        """A replication was refreshed, which began then."""
        ...

    def looked(self, name: str) -> None:
        """A table was found to reflect its sources, or a replication its publisher."""
        ...

    def failed(self, name: str, error: Exception) -> None:
        """A refresh of a table raised an error."""
        ...

    @property
    def late(self) -> str:
        """Why reports do not arrive; empty if they do."""
        ...

    def close(self, seconds: float) -> None:
        """Deliver what is left, for so long at most."""
        ...


class NoReports:
    """Nobody is told: the logs of the tables have every refresh."""

    late = ""

    def refreshed(self, refresh: Refresh, until: Mapping[str, datetime]) -> None:
        pass

    def replicated(self, node: str, refresh: ReplicationRefresh, began: datetime) -> None:
        pass

    def looked(self, name: str) -> None:
        pass

    def failed(self, name: str, error: Exception) -> None:
        pass

    def close(self, seconds: float) -> None:
        pass


@dataclass(frozen=True)
class Driven:
    """Stream tables and replications, the lake that holds them, and what was known before."""

    examined: tuple[Examined, ...]
    """Each after those it reads; broken ones last."""
    lake: Callable[[], Lake]
    """Opens the lake with its Spark."""
    logs: Lake
    """The same lake, for reading logs."""
    past: Callable[[], Mapping[str, Memory]]
    """What is remembered elsewhere of the tables, when the worker begins."""
    reports: Reports = field(default_factory=NoReports)
    backoff: Backoff = field(default_factory=Backoff)
    replicated: ReplicationCatalog | None = None
    """What writes sources of the tables."""
    name: str = "streamtables"
    """That of the resource of the tables; workers of one name below a root exclude each other."""
    blocked: Callable[[], dict[str, dict[str, str]]] = dict
    """The sources that a table must not read now, since a blocking check refuses their rows."""
    registered: bool = False
    """Whether the lake declares the replications: what it says when one is refreshed, holds."""

    @cached_property
    def tables(self) -> dict[str, Examined]:
        """Those that can be refreshed, each after those it reads."""
        return {each.name: each for each in self.examined if each.error is None}

    @cached_property
    def broken(self) -> list[Examined]:
        return [each for each in self.examined if each.error is not None]

    @cached_property
    def replications(self) -> dict[str, ReplicationEntry]:
        """By the names that stand for them in the graph."""
        entries = self.replicated.entries if self.replicated is not None else ()
        return {entry.node: entry for entry in entries}

    @cached_property
    def writers(self) -> dict[str, str]:
        """The replication that writes a table, by the table's name in queries."""
        entries = self.replications.items()
        return {table: node for node, each in entries for table in each.tables.values()}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All that is refreshed, each after what it reads."""
        return (*self.replications, *self.tables)

    @cached_property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """What each reads: a replication in place of its tables."""
        found: dict[str, tuple[str, ...]] = dict.fromkeys(self.replications, ())
        for name, each in self.tables.items():
            found[name] = tuple(dict.fromkeys(self.writers.get(s, s) for s in each.sources))
        return found

    @cached_property
    def readers(self) -> dict[str, list[str]]:
        """Who reads each, each after those it reads."""
        return graph.readers(self.reads)

    @cached_property
    def schedules(self) -> dict[str, Schedule | None]:
        found = {node: each.schedule for node, each in self.replications.items()}
        return found | {name: each.schedule for name, each in self.tables.items()}

    @cached_property
    def shared(self) -> frozenset[str]:
        """Sources that are no stream tables and that more than one table reads: read by each at a
        time of its own, they would keep waiting what reads several of these tables."""
        readers: dict[str, int] = {}
        for name, each in self.tables.items():
            for source in {*each.sources} - self.tables.keys() - {name}:
                readers[source] = readers.get(source, 0) + 1
        return frozenset(source for source, count in readers.items() if count > 1)

    def declared(self, name: str) -> Any:
        """Its declaration; None if there is none. Equal ones mean the same."""
        entry, examined = self.replications.get(name), self.tables.get(name)
        return entry.declared if entry is not None else examined and examined.declared

    @cached_property
    def fingerprint(self) -> str:
        """A hash that changes with any declaration."""
        declared = sorted(repr(each.declared) for each in self.examined)
        if self.replicated is not None and self.replications:
            declared.append(self.replicated.fingerprint)
        return hashlib.sha256("\n".join(declared).encode()).hexdigest()[:16]
