"""`Workload`: what a worker drives, wherever it was declared, and where it is reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.report import Refresh
from dagster_streamtables.scheduling.dueness import Backoff
from dagster_streamtables.scheduling.nodes import Nodes
from dagster_streamtables.worker.memory import RefreshMemory


class Reports(Protocol):
    """Who is told what a worker does. No call waits, and none raises."""

    def report_refresh(self, refresh: Refresh, until: Mapping[str, datetime]) -> None:
        """A table was refreshed, with its sources read until these times."""
        ...

    def report_replication(self, node: str, refresh: ReplicationRefresh, began: datetime) -> None:
        """A replication was refreshed, which began then."""
        ...

    def report_fresh(self, name: str) -> None:
        """A table was found to reflect its sources, or a replication its publisher."""
        ...

    def report_failure(self, name: str, error: Exception) -> None:
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

    def report_refresh(self, refresh: Refresh, until: Mapping[str, datetime]) -> None:
        pass

    def report_replication(self, node: str, refresh: ReplicationRefresh, began: datetime) -> None:
        pass

    def report_fresh(self, name: str) -> None:
        pass

    def report_failure(self, name: str, error: Exception) -> None:
        pass

    def close(self, seconds: float) -> None:
        pass


@dataclass(frozen=True)
class Workload:
    """Stream tables and replications, the lake that holds them, and what was known before."""

    nodes: Nodes
    lake: Callable[[], Lake]
    """Opens the lake with its Spark."""
    logs: Lake
    """The same lake, for reading logs."""
    past: Callable[[], Mapping[str, RefreshMemory]]
    """What is remembered elsewhere of the tables, when the worker begins."""
    reports: Reports = field(default_factory=NoReports)
    backoff: Backoff = field(default_factory=Backoff)
    name: str = "streamtables"
    """That of the resource of the tables; workers of one name below a root exclude each other."""
    blocked: Callable[[], dict[str, dict[str, str]]] = dict
    """The sources that a table must not read now, since a blocking check refuses their rows."""
    registered: bool = False
    """Whether the lake declares the replications: what it says when one is refreshed, holds."""
