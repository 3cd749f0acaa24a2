"""Finds the stream tables of an existing code location, for the command line.

Each asset carries its declaration, so the loaded definitions are enough, whether they come from
`build_definitions`, a component, or a factory, and nothing is declared twice.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg

# What `@dg.definitions` makes; the type is not exported.
from dagster.components.definitions import LazyDefinitions

from dagster_streamtables.declare.sql_files import BrokenTable, Declared
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.catalog import metadata as keys


@dataclass(frozen=True)
class CodeLocation:
    """The stream tables of one code location, and their resource."""

    tables: tuple[Declared, ...]
    resource: StreamTablesResource
    """With the values of environment variables filled in."""


def load_code_location(*, module: str = "", file: str = "") -> CodeLocation:
    """Import a module, or a file, and find the stream tables in its `Definitions`. Raises
    `InvalidDefinition` if it cannot be imported, or has no definitions with stream tables."""
    where = module or file
    found = load_definitions(module=module, file=file)
    specs = found.resolve_all_asset_specs()
    tables = tuple(
        _declaration(spec)
        for spec in specs
        if keys.DEFINITION in spec.metadata or keys.PROBLEM in spec.metadata
    )
    if not tables:
        raise InvalidDefinition(
            f"no asset in the definitions of {where} is a stream table",
            fix="name the module whose Definitions declare the stream tables",
        )
    return CodeLocation(tables, _resource(found, where))


def load_definitions(
    *, module: str = "", file: str = "", attribute: str = "", beside: str = ""
) -> dg.Definitions:
    """Import a module, or a file, and find its `Definitions`: those in `attribute`, or the first.
    It can import from the folder `beside`, in addition to its own. Raises `InvalidDefinition` if it
    cannot be imported, or has none."""
    found = _import_code(module, file, beside)
    if not attribute:
        return _definitions([*vars(found).values()], module or file)
    return _definitions([getattr(found, attribute, None)], f"{module or file}:{attribute}")


def _import_code(module: str, file: str, beside: str) -> ModuleType:
    """Imports it like `dagster -m` and `-f`: it can also import its neighbors."""
    own = str(Path(file).absolute().parent) if file else str(Path.cwd())
    for folder in filter(None, (own, beside)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        if module:
            return importlib.import_module(module)
        spec = importlib.util.spec_from_file_location(Path(file).stem, file)
        if spec is None or spec.loader is None or not Path(file).is_file():
            raise FileNotFoundError(f"there is no Python file {file}")
        loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded
    except StreamTablesError:
        raise
    except Exception as error:
        raise InvalidDefinition(
            f"{module or file} cannot be imported",
            why=f"{type(error).__name__}: {error}",
            fix="give the same module or file as to dagster dev -m or -f",
        ) from error


def _definitions(values: Sequence[Any], where: str) -> dg.Definitions:
    lazy = [each for each in values if isinstance(each, LazyDefinitions)]
    ready = [each for each in values if isinstance(each, dg.Definitions)]
    found = [*(each() for each in lazy), *ready]
    for each in found:
        if isinstance(each, dg.Definitions):
            return each
    raise InvalidDefinition(
        f"{where} has no dagster.Definitions",
        fix="name the module that dagster dev loads, or give a folder of .sql files with --tables",
    )


def _declaration(spec: dg.AssetSpec) -> Declared:
    try:
        return keys.read_definition(spec.metadata)
    except StreamTablesError as error:
        name = spec.metadata.get(keys.TABLE_NAME) or ".".join(spec.key.path)
        return BrokenTable(str(name), error)


def _resource(definitions: dg.Definitions, where: str) -> StreamTablesResource:
    resources = dict(definitions.resources or {})
    ours = {n: each for n, each in resources.items() if isinstance(each, StreamTablesResource)}
    if not ours:
        raise InvalidDefinition(
            f"the definitions of {where} have no StreamTablesResource",
            why="the resource says where the tables are",
            fix='add resources={"streamtables": StreamTablesResource(root=…)} to the Definitions',
        )
    return open_resource(ours.get("streamtables") or next(iter(ours.values())))


def open_resource(resource: StreamTablesResource) -> StreamTablesResource:
    """The resource, with the values of environment variables filled in, until the process ends."""
    opened = ExitStack()
    atexit.register(opened.close)
    return opened.enter_context(resource.process_config_and_initialize_cm())
