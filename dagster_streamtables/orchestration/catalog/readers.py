"""Inheritance of schedules from readers in other catalogs of the code location.

Tables of two catalogs may have the same name, so asset keys identify tables and readers here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dagster_streamtables.declare import graph
from dagster_streamtables.declare.analyze import TableAnalysis
from dagster_streamtables.declare.schedule import Cron, Schedule
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.catalog import Catalog, CatalogEntry
from dagster_streamtables.orchestration.catalog.freshness import freshness_policy
from dagster_streamtables.orchestration.catalog.load_kind import problem_level


def read_by(catalog: Catalog, others: Iterable[Catalog]) -> Catalog:
    """The catalog, with the durations that its tables inherit from readers in other catalogs.

    Cron schedules are not inherited: a reader with one refreshes its upstream tables in its own
    run, and a run covers one catalog. So a table without a schedule that such a reader of another
    catalog waits for is reported.
    """
    elsewhere = [entry for other in others for entry in other.sound]
    if not elsewhere:
        return catalog
    known = {_id(entry): entry for entry in [*catalog.sound, *elsewhere]}
    reads = {
        each: [key.to_user_string() for key in entry.source_keys.values()]
        for each, entry in known.items()
    }
    paths = graph.inheritance_paths(
        {each: _own_schedule(e.examined) for each, e in known.items()}, reads
    )
    crons = {_id(e) for e in elsewhere if isinstance(_own_schedule(e.examined), Cron)}
    turned = graph.readers(reads)
    entries: list[CatalogEntry] = []
    for entry in catalog.entries:
        if path := paths.get(_id(entry)):
            entry = _inherit_schedule(entry, [known[each] for each in path])
        elif entry.examined.inherits is not None:
            waiting = crons & graph.upstream(_id(entry), turned)
            entry = _add_cron_readers(entry, sorted(known[each].name for each in waiting))
        entries.append(entry)
    return replace(catalog, entries=tuple(entries))


def _inherit_schedule(entry: CatalogEntry, path: Sequence[CatalogEntry]) -> CatalogEntry:
    schedule = path[-1].examined.schedule
    if schedule == entry.examined.schedule:
        return entry
    names = tuple(each.name for each in path)
    return _update_entry(entry, replace(entry.examined, schedule=schedule, inherits=names))


def _add_cron_readers(entry: CatalogEntry, readers: Sequence[str]) -> CatalogEntry:
    if not readers:
        return entry
    after = replace(entry.examined, cron_readers_elsewhere=tuple(readers))
    said = 'stream table "%s": %s'
    logger.log(problem_level(), said, entry.name, after.resolved_schedule)
    return _update_entry(entry, after)


def _update_entry(entry: CatalogEntry, after: TableAnalysis) -> CatalogEntry:
    spec = entry.spec
    # A policy that a translator has set stays.
    if spec.freshness_policy == freshness_policy(entry.examined.schedule):
        spec = spec.replace_attributes(freshness_policy=freshness_policy(after.schedule))
    if keys.RESOLVED_SCHEDULE in spec.metadata:
        spec = spec.merge_attributes(metadata={keys.RESOLVED_SCHEDULE: after.resolved_schedule})
    return replace(entry, examined=after, spec=spec)


def _own_schedule(examined: TableAnalysis) -> Schedule | None:
    return examined.schedule if examined.inherits is None else None


def _id(entry: CatalogEntry) -> str:
    return entry.key.to_user_string()
