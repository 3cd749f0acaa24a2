"""Loads declarations from a folder of `.sql` files, or from the definitions of a code location."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.declare.analyze import Examined, examine, reads
from dagster_streamtables.orchestration.declare.expected import expected
from dagster_streamtables.orchestration.declare.graph import readers, upstream
from dagster_streamtables.orchestration.declare.load import Declared, read_folder
from dagster_streamtables.runtime.delta.names import require_root
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.status import Expected


@dataclass(frozen=True)
class LakeProject:
    """Declared stream tables, and the lake that holds them."""

    declared: tuple[Declared, ...]
    logs: Lake
    """For reading logs only: its Spark would be the local server."""
    work: Callable[[], Lake]
    """Opens the lake with the Spark of the code location, if there is one."""

    @cached_property
    def examined(self) -> list[Examined]:
        """Each table after those it reads; broken ones last. The code location, not the command
        line, limits how short a schedule may be."""
        return examine(self.declared, min_schedule_seconds=0)

    @property
    def expected(self) -> list[Expected]:
        return [expected(each) for each in self.examined]

    def chosen(
        self, names: Iterable[str] | None, *, above: bool = False, below: bool = False
    ) -> list[Examined]:
        """The declarations with these names.

        Args:
            names: None or empty selects all.
            above: Include the tables upstream.
            below: Include the tables downstream.

        Raises:
            InvalidDefinition: A name is not declared.
        """
        known = {each.name: each for each in self.examined}
        chosen = list(names or known)
        for name in chosen:
            if name not in known:
                raise _unknown(name, list(known))
        edges = reads(self.examined)
        turned = readers(edges)
        more = {found for name in chosen if above for found in upstream(name, edges)}
        more |= {found for name in chosen if below for found in upstream(name, turned)}
        return [each for name, each in known.items() if name in {*chosen, *more}]

    def one(self, name: str) -> Examined:
        return self.chosen([name])[0]


def sound(examined: Sequence[Examined]) -> list[StreamTable]:
    """The stream tables whose declarations are valid."""
    return [each.table for each in examined if each.error is None]


def open_project(*, root: str, tables: str, module: str, file: str) -> LakeProject:
    """Load the declarations that the options name, if any.

    Raises:
        InvalidDefinition: The options name two places, or one that does not exist, or no root.
    """
    if len([each for each in (tables, module, file) if each]) > 1:
        raise InvalidDefinition(
            "declarations are given twice", fix="give one of --tables, --module and --file"
        )
    if module or file:
        return _of_code_location(root, module, file)
    declared = tuple(read_folder(tables)) if tables else ()
    lake = open_lake(root)
    return LakeProject(declared, lake, lambda: lake)


def open_lake(root: str) -> Lake:
    """The lake below an existing root. It is never created: for a misspelled root, every command
    would then report that there are no tables.

    Raises:
        InvalidDefinition: No root is given.
        EnvironmentProblem: The root does not exist, or cannot be read.
    """
    if not root:
        raise InvalidDefinition(
            "the root of the tables is not given", fix="give --root, or set STREAMTABLES_ROOT"
        )
    require_root(root)
    return Lake(root)


def require_declarations(project: LakeProject) -> LakeProject:
    """The project, which must have declarations: for commands that need the query."""
    if not project.declared:
        raise InvalidDefinition(
            "no declaration of a stream table is given",
            why="this command needs the query, which a stored table does not contain",
            fix="give --tables FOLDER (or STREAMTABLES_TABLES), --module or --file",
        )
    return project


def _of_code_location(root: str, module: str, file: str) -> LakeProject:
    # Importing Dagster takes a second.
    from dagster_streamtables.orchestration.code_location import load_code_location

    found = load_code_location(module=module, file=file)
    if root:
        lake = open_lake(root)
        return LakeProject(found.tables, lake, lambda: lake)
    return LakeProject(found.tables, found.resource.logs(), found.resource.lake)


def _unknown(name: str, known: list[str]) -> InvalidDefinition:
    near = difflib.get_close_matches(name, known, n=2)
    return InvalidDefinition(
        f'no stream table "{name}" is declared',
        fix=f"did you mean {' or '.join(near)}?" if near else f"declared are: {', '.join(known)}",
    )
