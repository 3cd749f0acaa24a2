"""The rest of a defs folder: who else has stream tables, and what a component must not observe as
its own because others write it.

An asset has one definition in a code location. So a source that a component, or a Python file,
beside a `StreamTablesComponent` writes is a dependency, and one that two such components read is
observed by the first of them. Assets beside such a component in one Python file are not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import dagster as dg
from dagster.components.core.decl import (
    ComponentDecl,
    ComponentLoaderDecl,
    PythonFileDecl,
    YamlDecl,
)
from dagster.components.core.defs_module import ComponentLoc

from dagster_streamtables.orchestration.catalog.catalog import Catalog
from dagster_streamtables.orchestration.definitions import asset_keys

_ASKING: ContextVar[frozenset[ComponentLoc]] = ContextVar("asking", default=frozenset())
"""The components that are looking around now. What they ask for may ask for them in turn."""

_COMPONENT = (YamlDecl, ComponentLoaderDecl)

CatalogOf = Callable[[dg.Component, dg.ComponentLoadContext], Catalog | None]


def written_elsewhere(context: dg.ComponentLoadContext, catalog_of: CatalogOf) -> set[dg.AssetKey]:
    """The keys that the rest of the code location defines.

    Args:
        context: Of the component that asks.
        catalog_of: The stream tables of a component, or None for one of another kind.
    """
    own = context.component_loc
    if own in _ASKING.get():
        return set()
    with _asking(own):
        return set(_keys(context, catalog_of))


def catalogs_elsewhere(
    context: dg.ComponentLoadContext, catalog_of: CatalogOf
) -> Iterator[Catalog]:
    """The stream tables of the other components of the code location.

    Args:
        context: Of the component that asks.
        catalog_of: As for `written_elsewhere`.
    """
    for _, decl, _ in _others(context):
        catalog = _catalog(context, decl, catalog_of)
        if catalog is not None:
            yield catalog


@contextmanager
def _asking(loc: ComponentLoc) -> Iterator[None]:
    token = _ASKING.set(_ASKING.get() | {loc})
    try:
        yield
    finally:
        _ASKING.reset(token)


def _keys(context: dg.ComponentLoadContext, catalog_of: CatalogOf) -> Iterator[dg.AssetKey]:
    for loc, decl, earlier in _others(context):
        catalog = _catalog(context, decl, catalog_of)
        if catalog is not None:
            yield from (entry.key for entry in catalog.entries)
            yield from catalog.observed.values() if earlier else ()
        elif isinstance(decl, _COMPONENT) or (
            isinstance(decl, PythonFileDecl) and _is_plain(context, decl, catalog_of)
        ):
            yield from _defined(context, loc)


def _others(
    context: dg.ComponentLoadContext,
) -> Iterator[tuple[ComponentLoc, ComponentDecl, bool]]:
    """All that is declared beside a component, and whether it comes earlier."""
    # In a test that makes a component out of nothing there is no folder around it.
    if not isinstance(context.component_decl, ComponentDecl):
        return
    earlier = True
    for loc, decl in context.component_tree.find_root_decl().iterate_loc_component_decl_pairs():
        if loc == context.component_loc:
            earlier = False
        else:
            yield loc, decl, earlier


def _catalog(
    context: dg.ComponentLoadContext, decl: ComponentDecl, catalog_of: CatalogOf
) -> Catalog | None:
    """The stream tables of what is declared, if it is a component of them."""
    return catalog_of(*_component(context, decl)) if isinstance(decl, _COMPONENT) else None


def _defined(context: dg.ComponentLoadContext, loc: ComponentLoc) -> Iterator[dg.AssetKey]:
    for asset in context.build_defs(loc).assets or ():
        yield from asset_keys(asset)


def _component(
    context: dg.ComponentLoadContext, decl: ComponentDecl
) -> tuple[dg.Component, dg.ComponentLoadContext]:
    component = context.component_tree.load_structural_component_at_loc(decl.loc)
    return component, dg.ComponentLoadContext.from_decl_load_context(decl.context, decl)


def _is_plain(
    context: dg.ComponentLoadContext, decl: PythonFileDecl, catalog_of: CatalogOf
) -> bool:
    """Whether a file has no component of stream tables, perhaps the one that asks."""
    components = (_component(context, each) for each in decl.iterate_child_component_decls())
    return all(catalog_of(*each) is None for each in components)
