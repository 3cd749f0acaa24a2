"""Readers in other catalogs of the code location, which inherited schedules look at, too.

A catalog names its tables for itself, and two may keep different tables under one name. So here
asset keys say who reads what.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import dagster as dg

from dagster_streamtables.orchestration import graph
from dagster_streamtables.orchestration import metadata as keys
from dagster_streamtables.orchestration.catalog import Catalog, Entry
from dagster_streamtables.orchestration.examine import Examined
from dagster_streamtables.orchestration.freshness import freshness_policy
from dagster_streamtables.orchestration.schedule import Cron, Schedule

logger = logging.getLogger("dagster_streamtables")


def read_by(catalog: Catalog, others: Iterable[Catalog]) -> Catalog:
    """The catalog, with the durations that its tables inherit from those of other catalogs, too.

    A reader with a cron schedule has what it reads refreshed in its own run, and a run is of one
    catalog. A table without a schedule that such a reader of another catalog waits for says so.
    """
    elsewhere = [entry for other in others for entry in other.sound]
    if not elsewhere:
        return catalog
    known = _Graph.of([*catalog.sound, *elsewhere])
    paths = graph.inherited(known.declared, known.reads)
    crons = {_id(e) for e in elsewhere if isinstance(known.declared[_id(e)], Cron)}
    turned = graph.readers(known.reads)
    entries: list[Entry] = []
    for entry in catalog.entries:
        path = paths.get(_id(entry), ())
        idle = entry.examined.inherits is not None and not path
        waiting = crons & graph.upstream(_id(entry), turned) if idle else set[str]()
        entries.append(_inheriting(entry, path, waiting, known))
    return replace(catalog, entries=tuple(entries))


@dataclass(frozen=True)
class _Graph:
    """The tables of all catalogs, by their asset keys as the UI writes them."""

    names: Mapping[str, str]
    declared: Mapping[str, Schedule | None]
    reads: graph.Reads

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> _Graph:
        by_id = {_id(entry): entry for entry in entries}
        return cls(
            {each: entry.name for each, entry in by_id.items()},
            {each: _declared(entry.examined) for each, entry in by_id.items()},
            {
                each: [key.to_user_string() for key in entry.source_keys.values()]
                for each, entry in by_id.items()
            },
        )


def _inheriting(entry: Entry, path: tuple[str, ...], waiting: set[str], known: _Graph) -> Entry:
    before = entry.examined
    if waiting:
        names = tuple(sorted(known.names[each] for each in waiting))
        after = replace(before, cron_readers_elsewhere=names)
        logger.warning('stream table "%s": %s', entry.name, after.resolved_schedule)
    elif path and known.declared[path[-1]] != before.schedule:
        inherits = tuple(known.names[each] for each in path)
        after = replace(before, schedule=known.declared[path[-1]], inherits=inherits)
    else:
        return entry
    return replace(entry, examined=after, spec=_retold(entry, after))


def _retold(entry: Entry, after: Examined) -> dg.AssetSpec:
    spec = entry.spec
    if spec.freshness_policy == freshness_policy(entry.examined.schedule):  # no translator's own
        spec = spec.replace_attributes(freshness_policy=freshness_policy(after.schedule))
    if keys.RESOLVED_SCHEDULE in spec.metadata:
        spec = spec.merge_attributes(metadata={keys.RESOLVED_SCHEDULE: after.resolved_schedule})
    return spec


def _declared(examined: Examined) -> Schedule | None:
    return examined.schedule if examined.inherits is None else None


def _id(entry: Entry) -> str:
    return entry.key.to_user_string()
