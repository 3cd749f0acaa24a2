"""The place of a component in its project: its folder and name, and what the others define.

An asset has one definition in a code location. So a source that another component or Python file
writes is a plain dependency, and a source that two `StreamTablesComponent`s read is observed by the
first. Assets in the same Python file as such a component are not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import dagster as dg

# Dagster exports the component tree, but neither the kinds of declarations in it nor places.
from dagster.components.core.decl import (
    ComponentDecl,
    ComponentLoaderDecl,
    PythonFileDecl,
    YamlDecl,
)
from dagster.components.core.defs_module import ComponentLoc, ComponentPath

from dagster_streamtables.compiler import View
from dagster_streamtables.declare.replication_nodes import ScheduledReplication
from dagster_streamtables.declare.sql_files import Declared
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.catalog.asset_catalog import RESOURCE_KEY, Catalog
from dagster_streamtables.orchestration.catalog.node_assets import ReplicationCatalog
from dagster_streamtables.orchestration.catalog.translator import StreamTablesTranslator
from dagster_streamtables.orchestration.definitions import asset_keys, build_declared_catalog
from dagster_streamtables.orchestration.replication.replication_definitions import (
    replication_catalog,
)


def folder_of(context: dg.ComponentLoadContext) -> Path:
    """The base of a component's relative paths: the folder of its YAML or Python file."""
    loc = context.component_loc
    if not isinstance(loc, ComponentPath):
        return context.project_root
    return loc.file_path.parent if loc.file_path.is_file() else loc.file_path


def name_of(context: dg.ComponentLoadContext) -> str:
    """The path below the defs folder. If a file has several components, with the number of the YAML
    document or the name of the function.
    """
    loc = context.component_loc
    if not isinstance(loc, ComponentPath) or not loc.file_path.is_relative_to(
        context.defs_module_path
    ):
        return RESOURCE_KEY
    path = loc.file_path.relative_to(context.defs_module_path)
    path = path.parent if path.name == "component.py" else path.with_suffix("")
    alone = loc.instance_key in (None, 0) or _functions_in(context) == 1
    parts = [*path.parts, *([] if alone else [str(loc.instance_key)])]
    return "_".join(re.sub(r"[^A-Za-z0-9_]", "_", part) for part in parts) or RESOURCE_KEY


def _functions_in(context: dg.ComponentLoadContext) -> int:
    """How many components the Python file of the component has."""
    file = context.component_loc.without_instance_key()
    decl = dict(context.component_tree.find_root_decl().iterate_loc_component_decl_pairs())[file]
    return len([*decl.iterate_child_component_decls()]) if isinstance(decl, PythonFileDecl) else 0


@dataclass(frozen=True)
class Catalogs:
    """What one component defines."""

    tables: Catalog
    """All sources that it does not replicate are observed, even those with a writer."""
    replicated: ReplicationCatalog


class Declarations(Protocol):
    """The fields of the component that declare what it defines."""

    resource: StreamTablesResource
    folder: str | None
    tables: Sequence[Declared]
    views: Sequence[View]
    replications: Sequence[ScheduledReplication]
    group_name: str | None
    source_group_name: str | None
    source_keys: dict[str, dg.AssetKey]
    min_schedule_seconds: float
    compile_at_load: bool
    strict: bool


def build_catalogs(
    declared: Declarations, here: Path, name: str, translator: StreamTablesTranslator
) -> Catalogs:
    """
    Args:
        declared: The component.
        here: The base of relative paths.
        name: The name of the resource.
        translator: Decides the assets.

    Raises:
        StreamTablesError: The folder does not exist or, if `strict`, a definition is broken.
    """
    about: dict[str, Any] = {
        "translator": translator,
        "min_schedule_seconds": declared.min_schedule_seconds,
    }
    replicated = replication_catalog(
        declared.replications,
        declared.resource,
        name,
        group_name=declared.source_group_name,
        source_keys=declared.source_keys,
        **about,
    )
    folder = here / declared.folder if declared.folder else None
    catalog = build_declared_catalog(
        declared.tables,
        folder,
        declared.views,
        resource=declared.resource,
        compile_at_load=declared.compile_at_load,
        strict=declared.strict,
        not_here={*replicated.nodes},
        group_name=declared.group_name,
        source_keys={**declared.source_keys, **replicated.keys},
        written_by_dagster={*replicated.nodes},
        **about,
    )
    if not catalog.entries and not replicated.entries:
        raise InvalidDefinition(
            "there are no stream tables",
            where=str(folder or here),
            fix="give a folder with .sql files, or declare tables below `tables`",
        )
    return Catalogs(catalog, replicated)


_ASKING: ContextVar[frozenset[ComponentLoc]] = ContextVar("asking", default=frozenset())
"""The components that are searching now: loading others may ask for these in turn."""

_COMPONENT = (YamlDecl, ComponentLoaderDecl)

CatalogsOf = Callable[[dg.Component, dg.ComponentLoadContext], Catalogs | None]


def keys_elsewhere(context: dg.ComponentLoadContext, catalogs_of: CatalogsOf) -> set[dg.AssetKey]:
    """The asset keys that the rest of the code location defines.

    Args:
        context: The context of the searching component.
        catalogs_of: Returns what a component defines; None for other kinds of components.
    """
    own = context.component_loc
    if own in _ASKING.get():
        return set()
    with _asking(own):
        return set(_keys(context, catalogs_of))


def catalogs_elsewhere(
    context: dg.ComponentLoadContext, catalogs_of: CatalogsOf
) -> Iterator[Catalog]:
    """The stream tables of the other components of the code location.

    Args:
        context: The context of the searching component.
        catalogs_of: As for `keys_elsewhere`.
    """
    for _, decl, _ in _others(context):
        catalog = _catalog(context, decl, catalogs_of)
        if catalog is not None:
            yield catalog.tables


@contextmanager
def _asking(loc: ComponentLoc) -> Iterator[None]:
    token = _ASKING.set(_ASKING.get() | {loc})
    try:
        yield
    finally:
        _ASKING.reset(token)


def _keys(context: dg.ComponentLoadContext, catalogs_of: CatalogsOf) -> Iterator[dg.AssetKey]:
    for loc, decl, earlier in _others(context):
        catalog = _catalog(context, decl, catalogs_of)
        if catalog is not None:
            yield from (entry.key for entry in catalog.tables.entries)
            yield from catalog.replicated.nodes
            yield from catalog.tables.observed.values() if earlier else ()
        elif isinstance(decl, _COMPONENT) or (
            isinstance(decl, PythonFileDecl) and _is_plain(context, decl, catalogs_of)
        ):
            yield from _keys_at(context, loc)


def _others(
    context: dg.ComponentLoadContext,
) -> Iterator[tuple[ComponentLoc, ComponentDecl, bool]]:
    """All declarations beside a component, and whether each comes before it."""
    # A component that a test builds in Python has no folder.
    if not isinstance(context.component_decl, ComponentDecl):
        return
    earlier = True
    for loc, decl in context.component_tree.find_root_decl().iterate_loc_component_decl_pairs():
        if loc == context.component_loc:
            earlier = False
        else:
            yield loc, decl, earlier


def _catalog(
    context: dg.ComponentLoadContext, decl: ComponentDecl, catalogs_of: CatalogsOf
) -> Catalogs | None:
    """What a declaration defines, if it is a component of stream tables."""
    return catalogs_of(*_component(context, decl)) if isinstance(decl, _COMPONENT) else None


def _keys_at(context: dg.ComponentLoadContext, loc: ComponentLoc) -> Iterator[dg.AssetKey]:
    for asset in context.build_defs(loc).assets or ():
        yield from asset_keys(asset)


def _component(
    context: dg.ComponentLoadContext, decl: ComponentDecl
) -> tuple[dg.Component, dg.ComponentLoadContext]:
    component = context.component_tree.load_structural_component_at_loc(decl.loc)
    return component, dg.ComponentLoadContext.from_decl_load_context(decl.context, decl)


def _is_plain(
    context: dg.ComponentLoadContext, decl: PythonFileDecl, catalogs_of: CatalogsOf
) -> bool:
    """Whether a file has no component of stream tables; it may hold the searching one."""
    components = (_component(context, each) for each in decl.iterate_child_component_decls())
    return all(catalogs_of(*each) is None for each in components)
