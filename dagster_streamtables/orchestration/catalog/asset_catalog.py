"""`Catalog`: the stream tables of a code location, analyzed and sorted, each with its asset.

Every factory takes declarations or a catalog. Pass the same catalog to all of them, so that the
declarations are analyzed only once.

`read_by` lets tables inherit schedules from readers in other catalogs. Tables of two catalogs may
have the same name, so their asset keys identify them there.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dagster as dg

from dagster_streamtables.compiler import View
from dagster_streamtables.dagster_private import DefinitionsLoadContext, DefinitionsLoadType
from dagster_streamtables.declare import graph
from dagster_streamtables.declare.analysis import (
    TableAnalysis,
    analyze_tables,
    combine_errors,
)
from dagster_streamtables.declare.nodes import ReplicationNode
from dagster_streamtables.declare.schedule import MIN_SCHEDULE_SECONDS, Cron, Schedule
from dagster_streamtables.declare.sql_files import Declared, with_views
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.freshness import freshness_policy
from dagster_streamtables.orchestration.catalog.translator import (
    StreamTableProps,
    StreamTablesTranslator,
    asset_key,
)
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable

RESOURCE_KEY = "streamtables"
"""The resource key in a code location with one root."""


SHOWN = 100
"""With more stream tables than this, assets show their plans but not the SQL of their changes:
rendering it takes longer than the rest of loading."""


@dataclass(frozen=True)
class CatalogEntry:
    """A stream table and its asset."""

    examined: TableAnalysis
    spec: dg.AssetSpec
    source_keys: Mapping[str, dg.AssetKey]
    """The asset key of each source, by its name in the query."""

    @property
    def name(self) -> str:
        return self.examined.name

    @property
    def key(self) -> dg.AssetKey:
        return self.spec.key


@dataclass(frozen=True)
class Catalog:
    """Stream tables, each after those it reads; broken ones last."""

    entries: tuple[CatalogEntry, ...]
    observed: Mapping[str, dg.AssetKey]
    """Source tables that no asset writes, each with the key of its external asset."""

    @cached_property
    def sound(self) -> list[CatalogEntry]:
        """The entries that can be refreshed."""
        return [entry for entry in self.entries if entry.examined.error is None]

    def __getitem__(self, name: str) -> CatalogEntry:
        return next(entry for entry in self.entries if entry.name == name)


Tables = Catalog | Iterable[Declared]


def build_catalog(
    tables: Tables,
    *,
    lake: Lake | None = None,
    translator: StreamTablesTranslator | None = None,
    group_name: str | None = None,
    source_keys: Mapping[str, dg.AssetKey] | None = None,
    written_by_dagster: Collection[dg.AssetKey] = (),
    min_schedule_seconds: float = MIN_SCHEDULE_SECONDS,
    strict: bool = False,
    views: Iterable[View] = (),
) -> Catalog:
    """Analyze declarations and define their assets. Returns a catalog unchanged.

    Args:
        tables: Declarations from files or from Python, in any order.
        lake: Where the tables are. With it, queries are compiled against the columns in the Delta
            logs, and assets show columns, lineage and plan before their first refresh.
        translator: Decides the key, dependencies and metadata of each asset.
        group_name: The group of assets to which neither declaration nor translator gives one.
        source_keys: Asset keys of sources that are not stream tables, by their names in queries.
            The default key is the name, split at the dots.
        written_by_dagster: Keys of assets that other code writes: plain dependencies, not observed.
        min_schedule_seconds: Refuse shorter schedules.
        strict: Raise the errors of all broken definitions. Otherwise their assets fail when run.
        views: Queries that other queries may name. A view is not an asset: the tables that name it
            depend on the tables that it reads.

    Raises:
        StreamTablesError: With `strict`, a definition is broken.
    """
    if isinstance(tables, Catalog):
        return tables
    declared = with_views(tables, views)
    examined = analyze_tables(declared, lake, min_schedule_seconds=min_schedule_seconds)
    _report(examined, strict)
    translator = translator or StreamTablesTranslator()
    names = {e.name: _key(e, translator) for e in examined}
    given = dict(source_keys or {})
    entries: list[CatalogEntry] = []
    for each in examined:
        sources = {
            name: names.get(name) or given.get(name) or asset_key(name) for name in each.sources
        }
        if each.error is not None:  # Dagster cannot load a cycle of assets
            sources = {name: key for name, key in sources.items() if name not in names}
        props = StreamTableProps(each, sources, change_sql=len(examined) <= SHOWN)
        needed = _metadata_for_refresh(each, sources)
        spec = complete_spec(translator.get_asset_spec(props), needed, group_name)
        entries.append(CatalogEntry(each, spec, sources))
    read = {name: key for entry in entries for name, key in entry.source_keys.items()}
    written = {*names.values(), *written_by_dagster}
    return Catalog(tuple(entries), {n: key for n, key in read.items() if key not in written})


def _key(examined: TableAnalysis, translator: StreamTablesTranslator) -> dg.AssetKey:
    """The key alone, for the dependencies of other assets. The plan is left out: rendering it takes
    longer than the rest."""
    return translator.get_asset_spec(StreamTableProps(replace(examined, plan=None))).key


def complete_spec(
    spec: dg.AssetSpec, metadata: Mapping[str, Any], group_name: str | None
) -> dg.AssetSpec:
    """The asset of a translator with what the factories add. It is skippable: nothing is
    materialized if another process refreshes the table, or its publisher has removed it."""
    spec = spec.merge_attributes(metadata=metadata).replace_attributes(skippable=True)
    if group_name is not None and spec.group_name is None:
        spec = spec.replace_attributes(group_name=group_name)
    return spec


def _metadata_for_refresh(
    examined: TableAnalysis, sources: Mapping[str, dg.AssetKey]
) -> dict[str, Any]:
    """The metadata that a refresh needs, even if a translator leaves it out."""
    needed: dict[str, Any] = {
        keys.SOURCE_KEYS: dg.MetadataValue.json({name: key.path for name, key in sources.items()})
    }
    if examined.error is not None:
        needed[keys.PROBLEM] = keys.problem_metadata(examined.error)
    elif isinstance(examined.declared, StreamTable):
        needed[keys.DEFINITION] = keys.definition_metadata(examined.declared)
    return needed


def _report(examined: Sequence[TableAnalysis], strict: bool) -> None:
    errors = [each.error for each in examined if each.error is not None]
    if strict and errors:
        raise combine_errors(errors)
    for problem in (each.error or each.doubt for each in examined):
        if problem is not None:
            logger.log(problem_level(), "%s", problem)


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
        before = after = entry.examined
        if path := paths.get(_id(entry)):
            schedule = known[path[-1]].examined.schedule
            if schedule != before.schedule:
                names = tuple(known[each].name for each in path)
                after = replace(before, schedule=schedule, inherits=names)
        elif before.inherits is not None:
            waiting = crons & graph.upstream(_id(entry), turned)
            if names := tuple(sorted(known[each].name for each in waiting)):
                after = replace(before, cron_readers_elsewhere=names)
                said = 'stream table "%s": %s'
                logger.log(problem_level(), said, entry.name, after.resolved_schedule)
        if after is not before:
            spec = with_schedule(entry.spec, before.schedule, after)
            entry = replace(entry, examined=after, spec=spec)
        entries.append(entry)
    return replace(catalog, entries=tuple(entries))


def with_schedule(
    spec: dg.AssetSpec, before: Schedule | None, after: TableAnalysis | ReplicationNode
) -> dg.AssetSpec:
    """An asset whose schedule was `before`, with an inherited one. A policy that a translator has
    set stays."""
    if spec.freshness_policy == freshness_policy(before):
        spec = spec.replace_attributes(freshness_policy=freshness_policy(after.schedule))
    if keys.RESOLVED_SCHEDULE in spec.metadata:
        spec = spec.merge_attributes(metadata={keys.RESOLVED_SCHEDULE: after.resolved_schedule})
    return spec


def _own_schedule(examined: TableAnalysis) -> Schedule | None:
    return examined.schedule if examined.inherits is None else None


def _id(entry: CatalogEntry) -> str:
    return entry.key.to_user_string()


_shown_here: set[str | None] = set()
"""The code locations that this process has loaded first."""


def is_only_for_runs() -> bool:
    """Whether this process loads a code location only to run some of its assets: then no user sees
    what they show.

    Dagster loads a code location again in the process of each run, from what the first load stored.
    A code server also loads it a second time if the definitions are a function (`@definitions`),
    and serves that second load; but the first load was made by the same process.
    """
    if not DefinitionsLoadContext.is_set():
        return False
    context = DefinitionsLoadContext.get()
    # Dagster 1.12 does not tell it; its code servers have one each.
    location = getattr(context, "code_location_name", None)
    if context.load_type is DefinitionsLoadType.INITIALIZATION:
        _shown_here.add(location)
        return False
    return location not in _shown_here


def problem_level() -> int:
    """The log level for problems of definitions: only the first load warns, not the later ones that
    Dagster makes in this process or for a run."""
    first = (
        not DefinitionsLoadContext.is_set()
        or DefinitionsLoadContext.get().load_type is DefinitionsLoadType.INITIALIZATION
    )
    return logging.WARNING if first else logging.DEBUG


def read_from_first_load(key: str) -> str | None:
    """The text that the first load of the code location stored; None in the first load itself."""
    context = DefinitionsLoadContext.get()
    if context.load_type is DefinitionsLoadType.INITIALIZATION:
        return None
    return context.reconstruction_metadata.get(key)


def store_for_later_loads(key: str, text: str) -> None:
    DefinitionsLoadContext.get().add_to_pending_reconstruction_metadata(key, text)
