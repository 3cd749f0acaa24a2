"""The place of a component in its project: its folder and name, and what the others define.

An asset has one definition in a code location. So a source that another component or Python file
writes is a plain dependency, and a source that two `StreamTablesComponent`s read is observed by the
first. Assets in the same Python file as such a component are not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

# Dagster exports the component tree, but neither the kinds of declarations in it nor places.
from dagster.components.core.decl import (
    ComponentDecl,
    ComponentLoaderDecl,
    PythonFileDecl,
    YamlDecl,
)
from dagster.components.core.defs_module import ComponentPath

from dagster_streamtables.orchestration.catalog.asset_catalog import RESOURCE_KEY, Catalog
from dagster_streamtables.orchestration.catalog.node_assets import ReplicationCatalog
from dagster_streamtables.orchestration.definitions import asset_keys

if TYPE_CHECKING:  # Dagster has it since 1.13.8
    from dagster.components.core.defs_module import ComponentLoc

# Before 1.13.8, Dagster has no places but paths, under other names.
_HAS_LOCS = hasattr(dg.ComponentLoadContext, "for_component_loc")
loc_of: Callable[[dg.ComponentLoadContext], ComponentLoc] = attrgetter(
    "component_loc" if _HAS_LOCS else "component_path"
)
_loc_of_decl: Callable[[ComponentDecl], ComponentLoc] = attrgetter("loc" if _HAS_LOCS else "path")


def folder_of(context: dg.ComponentLoadContext) -> Path:
    """The base of a component's relative paths: the folder of its YAML or Python file."""
    loc = loc_of(context)
    if not isinstance(loc, ComponentPath):
        return context.project_root
    return loc.file_path.parent if loc.file_path.is_file() else loc.file_path


def name_of(context: dg.ComponentLoadContext) -> str:
    """The path below the defs folder. If a file has several components, with the number of the YAML
    document or the name of the function.
    """
    loc = loc_of(context)
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
    file = loc_of(context).without_instance_key()
    decl = {_loc_of_decl(each): each for each in _decls(context)}[file]
    return len([*decl.iterate_child_component_decls()]) if isinstance(decl, PythonFileDecl) else 0


@dataclass(frozen=True)
class Catalogs:
    """What one component defines."""

    tables: Catalog
    """All sources that it does not replicate are observed, even those with a writer."""
    replicated: ReplicationCatalog


class CatalogComponent(dg.Component):
    """A component of stream tables."""

    def catalogs(self, context: dg.ComponentLoadContext) -> Catalogs:
        raise NotImplementedError


_ASKING: ContextVar[frozenset[ComponentLoc]] = ContextVar("asking", default=frozenset())
"""The components that are searching now: loading others may ask for these in turn."""

_COMPONENT = (YamlDecl, ComponentLoaderDecl)


def keys_elsewhere(context: dg.ComponentLoadContext) -> set[dg.AssetKey]:
    """The asset keys that the rest of the code location defines, beside the searching component."""
    own = loc_of(context)
    if own in _ASKING.get():
        return set()
    token = _ASKING.set(_ASKING.get() | {own})
    try:
        return set(_keys(context))
    finally:
        _ASKING.reset(token)


def catalogs_elsewhere(context: dg.ComponentLoadContext) -> Iterator[Catalog]:
    """The stream tables of the other components of the code location."""
    for _, decl, _ in _others(context):
        if isinstance(decl, _COMPONENT) and (found := _catalogs_at(context, decl)):
            yield found.tables


def _keys(context: dg.ComponentLoadContext) -> Iterator[dg.AssetKey]:
    for loc, decl, earlier in _others(context):
        is_component = isinstance(decl, _COMPONENT)
        found = _catalogs_at(context, decl) if is_component else None
        if found is not None:
            yield from (entry.key for entry in found.tables.entries)
            yield from found.replicated.nodes
            yield from found.tables.observed.values() if earlier else ()
        elif is_component or (isinstance(decl, PythonFileDecl) and _is_plain(context, decl)):
            for asset in context.build_defs(loc).assets or ():
                yield from asset_keys(asset)


def _others(
    context: dg.ComponentLoadContext,
) -> Iterator[tuple[ComponentLoc, ComponentDecl, bool]]:
    """All declarations beside a component, and whether each comes before it."""
    # A component that a test builds in Python has no folder.
    if not isinstance(context.component_decl, ComponentDecl):
        return
    earlier = True
    for decl in _decls(context):
        loc = _loc_of_decl(decl)
        if loc == loc_of(context):
            earlier = False
        else:
            yield loc, decl, earlier


def _decls(context: dg.ComponentLoadContext) -> Iterator[ComponentDecl]:
    return context.component_tree.find_root_decl().iterate_all_component_decls()


def _catalogs_at(context: dg.ComponentLoadContext, decl: ComponentDecl) -> Catalogs | None:
    """What the component of a declaration defines, if it is one of stream tables."""
    component = context.component_tree.load_component(_loc_of_decl(decl))
    if not isinstance(component, CatalogComponent):
        return None
    return component.catalogs(dg.ComponentLoadContext.from_decl_load_context(decl.context, decl))


def _is_plain(context: dg.ComponentLoadContext, decl: PythonFileDecl) -> bool:
    """Whether a file has no component of stream tables; it may hold the searching one."""
    return all(_catalogs_at(context, e) is None for e in decl.iterate_child_component_decls())
