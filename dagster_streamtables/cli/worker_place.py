"""`DeclarationSource`: where a worker's declarations are, and what loads them again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dagster_streamtables.cli.project import open_lake
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.log import logger

if TYPE_CHECKING:
    from dagster_streamtables.worker.driven import Workload
    from dagster_streamtables.worker.reload import Reload
    from dagster_streamtables.worker.workspace import Location

    Drive: TypeAlias = Callable[[Any, str, str], Workload]


@dataclass(frozen=True)
class DeclarationSource:
    """The options of a worker that name its declarations.

    Raises:
        InvalidDefinition: No place is named, or several.
    """

    module: str
    file: str
    workspace: str
    folder: str
    root: str
    name: str
    report: bool
    report_every: float

    def __post_init__(self) -> None:
        named = (self.folder, self.module, self.file, self.workspace)
        if len([each for each in named if each]) != 1:
            raise InvalidDefinition(
                "a worker needs the declarations of one place",
                fix="give one of --module, --file, --workspace, and --tables with --root",
            )

    def reloads(self) -> list[Reload]:
        """What each worker drives: one for each resource of stream tables.

        Raises:
            InvalidDefinition: There is nothing to drive.
        """
        if self.folder:
            return [self._of_folder()]
        return self._of_workspace() if self.workspace else [self._of_location()]

    def _of_folder(self) -> Reload:
        from dagster_streamtables.worker.registered import Registry, of_folder
        from dagster_streamtables.worker.reload import Reload

        def load() -> Workload:
            return of_folder(self.folder, open_lake(self.root))

        first = load()
        return Reload(first, load, [Path(self.folder)], beside=Registry(first.logs).stamps)

    def _of_location(self) -> Reload:
        from dagster_streamtables.worker.workspace import Location

        location, drive = Location(self.module, self.file), self._drive()
        return _reload(location, location.load(), self.name, drive)

    def _of_workspace(self) -> list[Reload]:
        from dagster_streamtables.worker.location import names_in
        from dagster_streamtables.worker.workspace import locations_of

        found: list[Reload] = []
        drive = self._drive()
        for location in locations_of(self.workspace):
            definitions = location.load()
            names = [each for each in names_in(definitions) if self.name in ("", each)]
            found += [_reload(location, definitions, name, drive) for name in names]
            if not names:
                logger.info("%s has no refresh sensor that is meant", location.where)
        if not found:
            raise InvalidDefinition(
                "no code location of the workspace has a refresh sensor that is meant",
                where=self.workspace,
                why="a worker drives what the sensors would refresh",
                fix="use build_definitions or the component, and give --name as there, or not",
            )
        return found

    def _drive(self) -> Drive:
        """What makes of definitions, found in a place, what a resource of theirs drives."""
        from dagster_streamtables.worker.location import instance_to_report_to, of_definitions

        instance = instance_to_report_to() if self.report else None
        # Python takes a stored module for current if it was changed within the same second.
        sys.dont_write_bytecode = True

        def drive(definitions: Any, where: str, name: str) -> Workload:
            return of_definitions(
                definitions,
                where,
                instance,
                name=name,
                root=self.root,
                report_every=self.report_every,
            )

        return drive


def _reload(
    location: Location,
    definitions: Any,
    name: str,
    drive: Drive,
) -> Reload:
    from dagster_streamtables.worker.modules import folder_of, reimport
    from dagster_streamtables.worker.reload import Reload

    folder = folder_of(location.module, location.file)

    def again() -> Workload:
        return reimport(folder, lambda: drive(location.load(), location.where, name))

    return Reload(drive(definitions, location.where, name), again, [folder])
