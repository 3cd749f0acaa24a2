"""Replications that a lake itself knows, as a worker over a folder of `.sql` files drives them.

`streamtables replications create` declared them. One follows its publisher as closely as the tables
that read its tables need, or at once if none of them has a duration: then nothing says how late it
may be.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dagster_streamtables.declare.analyze import Examined
from dagster_streamtables.declare.replications import (
    ReplicationNode,
    ScheduledReplication,
    declared_tables,
    inherit_schedules,
)
from dagster_streamtables.declare.schedule import OnChange
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.scheduling.nodes import Nodes

if TYPE_CHECKING:
    from dagster_streamtables.replication.lifecycle.status import ReplicationStatus

_REMOTE_PAUSE = 10.0
"""Seconds between two looks at an object store, where each replication takes requests."""


def registered(lake: Lake, examined: Sequence[Examined]) -> tuple[ReplicationNode, ...]:
    """The replications that the lake knows now.

    Raises:
        StreamTablesError: The root cannot be read.
    """
    nodes = [_node(each) for each in _statuses(lake)]
    tables = {each.name: each for each in examined if each.error is None}
    reads = Nodes(tuple(examined), tuple(nodes)).reads
    found = inherit_schedules(nodes, tables, {name: reads[name] for name in tables})
    return tuple(
        replace(each, schedule=OnChange(), inherits=None) if each.schedule is None else each
        for each in found
    )


def _node(status: ReplicationStatus) -> ReplicationNode:
    tables = declared_tables(status.replication) | {t.name: t.target for t in status.tables}
    return ReplicationNode(ScheduledReplication(status.replication), tables)


class Registry:
    """Notices that a lake knows other replications, or other tables of theirs. Used by one
    thread."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._pause = _REMOTE_PAUSE if is_remote(lake.root) else 0.0
        self._looked: float | None = None
        self._seen: frozenset[tuple[str, int, int]] = frozenset()

    def stamps(self) -> frozenset[tuple[str, int, int]]:
        """What changes with them; as it was, if the root cannot be read."""
        if self._looked is None or time.monotonic() >= self._looked + self._pause:
            self._looked = time.monotonic()
            try:
                self._seen = frozenset(_stamps(_statuses(self._lake)))
            except Exception:  # the next look may succeed; refreshes report it
                return self._seen
        return self._seen


def _statuses(lake: Lake) -> list[ReplicationStatus]:
    from dagster_streamtables.replication.lifecycle.replications import Replications

    return Replications(lake).list()


def _stamps(found: Iterable[ReplicationStatus]) -> Iterator[tuple[str, int, int]]:
    for each in found:
        tables = sorted((table.name, table.target) for table in each.tables)
        yield f"replication {each.name} {each.replication!r} {tables}", 0, 0
