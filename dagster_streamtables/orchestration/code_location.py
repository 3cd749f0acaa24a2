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
from typing import TYPE_CHECKING, Any

import dagster as dg

# What `@dg.definitions` makes; the type is not exported.
from dagster.components.definitions import LazyDefinitions

from dagster_streamtables.declare.sql_files import BrokenTable, Declared
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.catalog import metadata as keys

if TYPE_CHECKING:
    from dagster._core.remote_origin import CodeLocationOrigin


@dataclass(frozen=True)
class Location:
    """Where the definitions of one code location are: in a module, or in a file."""

    module: str = ""
    file: str = ""
    attribute: str = ""
    """The name of the definitions; empty for the first that it has."""
    beside: str = ""
    """The folder from which it is loaded; empty for the present one."""

    @property
    def where(self) -> str:
        """For messages."""
        return self.module or self.file

    def load(self) -> dg.Definitions:
        """Import it, and find its `Definitions`. Raises `InvalidDefinition` if it cannot be
        imported, or has none."""
        found = self._import_code()
        if not self.attribute:
            return _definitions([*vars(found).values()], self.where)
        found = getattr(found, self.attribute, None)
        return _definitions([found], f"{self.where}:{self.attribute}")

    def _import_code(self) -> ModuleType:
        """Imports it like `dagster -m` and `-f`: it can also import its neighbors."""
        own = str(Path(self.file).absolute().parent) if self.file else str(Path.cwd())
        for folder in filter(None, (own, self.beside)):
            if folder not in sys.path:
                sys.path.insert(0, folder)
        try:
            if self.module:
                return importlib.import_module(self.module)
            spec = importlib.util.spec_from_file_location(Path(self.file).stem, self.file)
            if spec is None or spec.loader is None or not Path(self.file).is_file():
                raise FileNotFoundError(f"there is no Python file {self.file}")
            loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
            return loaded
        except StreamTablesError:
            raise
        except Exception as error:
            raise InvalidDefinition(
                f"{self.where} cannot be imported",
                why=f"{type(error).__name__}: {error}",
                fix="give the same module or file as to dagster dev -m or -f",
            ) from error


@dataclass(frozen=True)
class CodeLocation:
    """The stream tables of one code location, and their resource."""

    tables: tuple[Declared, ...]
    resource: StreamTablesResource
    """With the values of environment variables filled in."""


def locations_of(workspace: str) -> list[Location]:
    """What `dagster dev -w` would load. Raises `InvalidDefinition` if the file cannot be read, or a
    location is not loaded from Python, or by another Python."""
    if not Path(workspace).is_file():
        raise InvalidDefinition(
            f"there is no workspace {workspace}", fix="give the file that dagster dev -w is given"
        )
    # Public names load a workspace only into servers of its own.
    from dagster._core.workspace.load import location_origins_from_yaml_paths

    try:
        origins = location_origins_from_yaml_paths([workspace])
    except Exception as error:
        raise InvalidDefinition(
            f"the workspace {workspace} cannot be read",
            why=str(error),
            fix="give the file that dagster dev -w is given",
        ) from error
    return [_location(each, workspace) for each in origins]


def _location(origin: CodeLocationOrigin, workspace: str) -> Location:
    from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin

    if not isinstance(origin, ManagedGrpcPythonEnvCodeLocationOrigin):
        raise _not_here(origin, workspace, "it is a server of its own, which has the definitions")
    found = origin.loadable_target_origin
    if found.executable_path:
        raise _not_here(origin, workspace, f"it is loaded by {found.executable_path}")
    module = found.module_name or found.package_name or found.autoload_defs_module_name or ""
    return Location(
        module,
        found.python_file or "",
        found.attribute or "",
        found.working_directory or "",
    )


def _not_here(origin: CodeLocationOrigin, workspace: str, why: str) -> InvalidDefinition:
    return InvalidDefinition(
        f"a worker cannot load the code location {origin.location_name}",
        where=workspace,
        why=why,
        fix="run a worker beside it, with -m or -f and its Python",
    )


def load_code_location(*, module: str = "", file: str = "") -> CodeLocation:
    """Import a module, or a file, and find the stream tables in its `Definitions`. Raises
    `InvalidDefinition` if it cannot be imported, or has no definitions with stream tables."""
    location = Location(module, file)
    found, where = location.load(), location.where
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
