"""The location of a component: the base of its relative paths, and its default name."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg

# Dagster exports no way to ask where a component is, and what else its file declares.
from dagster.components.core.decl import PythonFileDecl
from dagster.components.core.defs_module import ComponentPath

from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY


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
