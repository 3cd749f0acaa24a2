"""Replications that a lake itself knows, as a worker over a folder of `.sql` files drives them.

`streamtables replications create` declared them. One follows its publisher as closely as the tables
that read its tables need, or at once if none of them has a duration: then nothing says how late it
may be.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dagster_streamtables.orchestration.declare import graph
from dagster_streamtables.orchestration.declare.analyze import Examined
from dagster_streamtables.orchestration.declare.schedule import OnChange, Schedule
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.lake import Lake

if TYPE_CHECKING:
    from dagster_streamtables.orchestration.catalog.replicated import ReplicationCatalog
    from dagster_streamtables.replication.lifecycle.status import ReplicationStatus

_REMOTE_PAUSE = 10.0
"""Seconds between two looks at an object store, where each replication takes requests."""


def registered(lake: Lake, examined: Sequence[Examined]) -> ReplicationCatalog | None:
    """What the lake knows now; None if it knows no replication.

    Raises:
        StreamTablesError: The root cannot be read.
    """
    found = _statuses(lake)
    if not found:
        return None
    # They import Dagster, which takes a second.
    from dagster_streamtables.orchestration.catalog.replicated import (
        ReplicationCatalog,
        ReplicationEntry,
    )
    from dagster_streamtables.orchestration.catalog.scheduled_replication import (
        ScheduledReplication,
        declared_tables,
    )

    entries = [
        ReplicationEntry(
            ScheduledReplication(each.replication),
            {**declared_tables(each.replication), **{t.name: t.target for t in each.tables}},
            {},
        )
        for each in found
    ]
    schedules = _schedules({each.node: [*each.tables.values()] for each in entries}, examined)
    return ReplicationCatalog(tuple(e.scheduled(*schedules[e.node]) for e in entries))


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


def _schedules(
    targets: dict[str, list[str]], examined: Sequence[Examined]
) -> dict[str, tuple[Schedule, tuple[str, ...]]]:
    """The schedule of each replication, by node, with the path to the table that it is from."""
    tables = {each.name: each for each in examined if each.error is None}
    writers = {target: node for node, several in targets.items() for target in several}
    reads: dict[str, list[str]] = {node: [] for node in targets}
    declared: dict[str, Schedule | None] = dict.fromkeys(targets)
    for name, each in tables.items():
        reads[name] = [writers.get(source, source) for source in each.sources]
        declared[name] = each.schedule if each.inherits is None else None
    paths = graph.inherited(declared, reads)
    return {node: (_last(paths[node], tables), paths[node]) for node in targets}


def _last(path: tuple[str, ...], tables: dict[str, Examined]) -> Schedule:
    return (tables[path[-1]].schedule if path else None) or OnChange()
