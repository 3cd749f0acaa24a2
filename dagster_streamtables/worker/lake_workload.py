"""What a worker drives without Dagster: a folder of `.sql` files and the replications of a lake.

`streamtables replications create` declared the replications. One follows its publisher as closely
as the readers of its tables need, or at once if none of these has a duration: then nothing limits
how late it may be.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from dagster_streamtables.declare.analysis import TableAnalysis, analyze_tables
from dagster_streamtables.declare.nodes import (
    Nodes,
    ReplicationNode,
    ScheduledReplication,
    declared_tables,
    inherit_schedules,
)
from dagster_streamtables.declare.schedule import OnChange
from dagster_streamtables.declare.sql_files import read_folder
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.delta.table_locations import is_remote
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.observe.latest_versions import LatestVersions
from dagster_streamtables.worker.workload import RefreshMemory, Workload

if TYPE_CHECKING:
    from dagster_streamtables.replication.lifecycle.replication_report import ReplicationStatus

_REMOTE_PAUSE = 10.0
"""Seconds between two looks at an object store, where each replication takes requests."""


def read_replications(lake: Lake, examined: Sequence[TableAnalysis]) -> tuple[ReplicationNode, ...]:
    """The replications that the lake knows now. Raises `StreamTablesError` if the root cannot be
    read."""
    nodes: list[ReplicationNode] = []
    for each in _statuses(lake):
        tables = declared_tables(each.replication) | {t.name: t.target for t in each.tables}
        nodes.append(ReplicationNode(ScheduledReplication(each.replication), tables))
    readers = {each.name: each for each in examined if each.error is None}
    reads = Nodes(tuple(examined), tuple(nodes)).reads
    found = inherit_schedules(nodes, readers, {name: reads[name] for name in readers})
    return tuple(
        replace(each, schedule=OnChange(), inherits=None) if each.schedule is None else each
        for each in found
    )


class Registry:
    """Notices that a lake has other replications, or other tables of them. Used by one thread."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._pause = _REMOTE_PAUSE if is_remote(lake.root) else 0.0
        self._looked: float | None = None
        self._seen: frozenset[tuple[str, int, int]] = frozenset()

    def stamps(self) -> frozenset[tuple[str, int, int]]:
        """Texts that change with them; the last ones if the root cannot be read."""
        if self._looked is None or time.monotonic() >= self._looked + self._pause:
            self._looked = time.monotonic()
            try:
                self._seen = frozenset(_stamps(_statuses(self._lake)))
            except Exception:  # the next look may succeed; refreshes report it
                return self._seen
        return self._seen


def _statuses(lake: Lake) -> list[ReplicationStatus]:
    from dagster_streamtables.replication.lifecycle.replication_manager import Replications

    return Replications(lake).list()


def _stamps(found: Iterable[ReplicationStatus]) -> Iterator[tuple[str, int, int]]:
    for each in found:
        tables = sorted((table.name, table.target) for table in each.tables)
        yield f"replication {each.name} {each.replication!r} {tables}", 0, 0


def of_folder(folder: str, lake: Lake) -> Workload:
    """The tables that a folder declares, and the replications that the lake knows. Raises
    `StreamTablesError` if the folder or the root cannot be read."""
    examined = tuple(analyze_tables(read_folder(folder), lake, min_schedule_seconds=0))
    for each in examined:
        if each.error is not None:
            logger.warning("%s", each.error)
    return Workload(
        Nodes(examined, read_replications(lake, examined)),
        lambda: lake,
        lake,
        partial(past_of_logs, lake, examined),
        registered=True,
    )


def past_of_logs(lake: Lake, examined: Sequence[TableAnalysis]) -> Mapping[str, RefreshMemory]:
    """The last refreshes that committed anything, from the logs of the tables.

    Whether a definition has changed since then is found by the next refresh.
    """
    heads = lake.latest_versions()
    return {each.name: _memory(heads, each.name) for each in examined if each.error is None}


def _memory(heads: LatestVersions, name: str) -> RefreshMemory:
    try:
        state = heads.state(name)
    except Exception:  # its refresh reports the error
        state = None
    if state is None:
        return RefreshMemory()
    done = datetime.fromtimestamp(state.account.until, UTC)
    began = done - timedelta(seconds=state.account.seconds)
    return RefreshMemory(last=done, as_of=began)
