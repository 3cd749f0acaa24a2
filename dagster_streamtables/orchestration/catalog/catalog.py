"""`Catalog`: the stream tables of a code location, analyzed and sorted, each with its asset.

Every factory takes declarations or a catalog. Pass the same catalog to all of them, so that the
declarations are analyzed only once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.compiler import View
from dagster_streamtables.declare.analyze import (
    TableAnalysis,
    analyze_tables,
    combine_errors,
)
from dagster_streamtables.declare.load import Declared, with_views
from dagster_streamtables.declare.schedule import MIN_SCHEDULE_SECONDS
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.load_kind import problem_level
from dagster_streamtables.orchestration.catalog.translator import (
    StreamTableProps,
    StreamTablesTranslator,
    asset_key,
)
from dagster_streamtables.runtime.model.stream_table import StreamTable

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

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
    entries = [
        _entry(e, translator, names, given, group_name, change_sql=len(examined) <= SHOWN)
        for e in examined
    ]
    sources = {name: key for entry in entries for name, key in entry.source_keys.items()}
    written = {*names.values(), *written_by_dagster}
    return Catalog(tuple(entries), {n: key for n, key in sources.items() if key not in written})


def _key(examined: TableAnalysis, translator: StreamTablesTranslator) -> dg.AssetKey:
    """The key alone, for the dependencies of other assets. The plan is left out: rendering it takes
    longer than the rest."""
    return translator.get_asset_spec(StreamTableProps(replace(examined, plan=None))).key


def _entry(
    examined: TableAnalysis,
    translator: StreamTablesTranslator,
    names: Mapping[str, dg.AssetKey],
    given: Mapping[str, dg.AssetKey],
    group_name: str | None,
    *,
    change_sql: bool,
) -> CatalogEntry:
    sources = {
        name: names.get(name) or given.get(name) or asset_key(name) for name in examined.sources
    }
    if examined.error is not None:  # Dagster cannot load a cycle of assets
        sources = {name: key for name, key in sources.items() if name not in names}
    spec = translator.get_asset_spec(StreamTableProps(examined, sources, change_sql))
    spec = spec.merge_attributes(metadata=_metadata_for_refresh(examined, sources))
    # A refresh yields nothing if another one of the same table is in progress.
    spec = spec.replace_attributes(skippable=True)
    if group_name is not None and spec.group_name is None:
        spec = spec.replace_attributes(group_name=group_name)
    return CatalogEntry(examined, spec, sources)


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
