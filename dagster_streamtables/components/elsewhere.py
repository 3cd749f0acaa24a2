"""Searches the rest of a defs folder for stream tables, and for sources that others define.

An asset has one definition in a code location. So a source that another component or Python file
writes is a plain dependency, and a source that two `StreamTablesComponent`s read is observed by the
first. Assets in the same Python file as such a component are not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import dagster as dg

# Dagster exports the component tree, but not the kinds of declarations in it.
from dagster.components.core.decl import (
    ComponentDecl,
    ComponentLoaderDecl,
    PythonFileDecl,
    YamlDecl,
)
from dagster.components.core.defs_module import ComponentLoc

from dagster_streamtables.components.catalogs import Catalogs
from dagster_streamtables.orchestration.catalog.catalog import Catalog
from dagster_streamtables.orchestration.definitions import asset_keys

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
