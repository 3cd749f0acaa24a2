"""The code locations of a `workspace.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import dagster as dg

# Public names load a workspace only into servers of its own.
from dagster._core.remote_origin import CodeLocationOrigin, ManagedGrpcPythonEnvCodeLocationOrigin
from dagster._core.workspace.load import location_origins_from_yaml_paths

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.code_location import load_definitions


@dataclass(frozen=True)
class Location:
    """Where the definitions of one code location are."""

    module: str = ""
    file: str = ""
    attribute: str = ""
    beside: str = ""
    """The folder from which it is loaded; empty for the present one."""

    @property
    def where(self) -> str:
        """For messages."""
        return self.module or self.file

    def load(self) -> dg.Definitions:
        """Raises `InvalidDefinition` if it cannot be imported, or has no definitions."""
        return load_definitions(
            module=self.module, file=self.file, attribute=self.attribute, beside=self.beside
        )


def locations_of(workspace: str) -> list[Location]:
    """What `dagster dev -w` would load. Raises `InvalidDefinition` if the file cannot be read, or a
    location is not loaded from Python, or by another Python."""
    if not Path(workspace).is_file():
        raise InvalidDefinition(
            f"there is no workspace {workspace}", fix="give the file that dagster dev -w is given"
        )
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
