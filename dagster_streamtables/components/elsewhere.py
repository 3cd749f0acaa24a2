"""What the rest of a defs folder writes: tables that a component must not observe as its own.

An asset has one definition in a code location. So a source that a component, or a Python file,
beside a `StreamTablesComponent` writes is a dependency, and one that two such components read is
observed by the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import dagster as dg
from dagster.components.core.decl import ComponentDecl, PythonFileDecl, YamlDecl
from dagster.components.core.defs_module import ComponentLoc

from dagster_streamtables.orchestration.catalog import Catalog
from dagster_streamtables.orchestration.definitions import asset_keys

_ASKING: ContextVar[frozenset[ComponentLoc]] = ContextVar("asking", default=frozenset())
"""The components that are looking around now. What they ask for may ask for them in turn."""

CatalogOf = Callable[[dg.Component, dg.ComponentLoadContext], Catalog | None]


def written_elsewhere(context: dg.ComponentLoadContext, catalog_of: CatalogOf) -> set[dg.AssetKey]:
    """The keys that the rest of the code location defines.

    Args:
        context: Of the component that asks.
        catalog_of: The stream tables of a component, or None for one of another kind.
    """
    own = context.component_loc
    # In a test that makes a component out of nothing there is no folder around it.
    if not isinstance(context.component_decl, ComponentDecl) or own in _ASKING.get():
        return set()
    with _asking(own):
        return set(_keys(context, catalog_of))


@contextmanager
def _asking(loc: ComponentLoc) -> Iterator[None]:
    token = _ASKING.set(_ASKING.get() | {loc})
    try:
        yield
    finally:
        _ASKING.reset(token)


def _keys(context: dg.ComponentLoadContext, catalog_of: CatalogOf) -> Iterator[dg.AssetKey]:
    own, tree = context.component_loc, context.component_tree
    earlier = True
    for loc, decl in tree.find_root_decl().iterate_loc_component_decl_pairs():
        if loc == own:
            earlier = False
        elif _holds(decl, own):
            continue
        elif isinstance(decl, YamlDecl | PythonFileDecl):
            found = [catalog_of(*each) for each in _components(context, decl)]
            catalogs = [catalog for catalog in found if catalog is not None]
            for catalog in catalogs:
                yield from (entry.key for entry in catalog.entries)
                yield from catalog.observed.values() if earlier else ()
            if not catalogs:
                defs = context.build_defs(loc)
                yield from (key for asset in defs.assets or () for key in asset_keys(asset))


def _components(
    context: dg.ComponentLoadContext, decl: ComponentDecl
) -> Iterator[tuple[dg.Component, dg.ComponentLoadContext]]:
    """The component of a YAML document, or those that functions of a Python file return."""
    decls = [decl] if isinstance(decl, YamlDecl) else decl.iterate_child_component_decls()
    for each in decls:
        component = context.component_tree.load_structural_component_at_loc(each.loc)
        yield component, dg.ComponentLoadContext.from_decl_load_context(each.context, each)


def _holds(decl: ComponentDecl, loc: ComponentLoc) -> bool:
    return any(each.loc == loc for each in decl.iterate_child_component_decls())
