"""Where declarations come from: a folder of `.sql` files, or the definitions of a code location."""

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
class Project:
    """Declarations, and the lake that they are about."""

    declared: tuple[Declared, ...]
    logs: Lake
    """For what logs say; asking it for Spark would find the local server."""
    work: Callable[[], Lake]
    """With the Spark of the code location, where there is one."""

    @cached_property
    def examined(self) -> list[Examined]:
        """Each after those it reads, broken ones last. How tight a schedule may be is for the code
        location to say, and no matter here."""
        return examine(self.declared, min_schedule_seconds=0)

    @property
    def expected(self) -> list[Expected]:
        return [expected(each) for each in self.examined]

    def chosen(
        self, names: Iterable[str] | None, *, above: bool = False, below: bool = False
    ) -> list[Examined]:
        """The declarations of some names, or all.

        Args:
            names: None, or none, for all.
            above: Those, too, that they read.
            below: Those, too, that read them.

        Raises:
            InvalidDefinition: A name is not declared.
        """
        known = {each.name: each for each in self.examined}
        asked = list(names or known)
        for name in asked:
            if name not in known:
                raise _unknown(name, list(known))
        edges = reads(self.examined)
        turned = readers(edges)
        more = {found for name in asked if above for found in upstream(name, edges)}
        more |= {found for name in asked if below for found in upstream(name, turned)}
        return [each for name, each in known.items() if name in {*asked, *more}]

    def one(self, name: str) -> Examined:
        return self.chosen([name])[0]


def sound(examined: Sequence[Examined]) -> list[StreamTable]:
    """The declarations that are not broken."""
    return [each.table for each in examined if each.error is None]


def open_project(*, root: str, tables: str, module: str, file: str) -> Project:
    """Read the declarations that the options name; none, where they name none.

    Raises:
        InvalidDefinition: They name two places, or one that is not there, or nobody says where the
            tables are.
    """
    if len([each for each in (tables, module, file) if each]) > 1:
        raise InvalidDefinition(
            "declarations are given twice", fix="give one of --tables, --module and --file"
        )
    if module or file:
        return _of_code_location(root, module, file)
    declared = tuple(read_folder(tables)) if tables else ()
    lake = open_lake(root)
    return Project(declared, lake, lambda: lake)


def open_lake(root: str) -> Lake:
    """The tables below the root that somebody names, which must be there: a folder that is made
    where a name is misspelled shows nothing, and says so of every table.

    Raises:
        InvalidDefinition: Nobody says where the tables are.
        EnvironmentProblem: There is no such root, or it cannot be read.
    """
    if not root:
        raise InvalidDefinition(
            "nobody says where the tables are", fix="give --root, or set STREAMTABLES_ROOT"
        )
    require_root(root)
    return Lake(root)


def require_declarations(project: Project) -> Project:
    """For what cannot be done by name alone."""
    if not project.declared:
        raise InvalidDefinition(
            "there is no declaration of a stream table",
            why="this needs the query, which a stored table does not hold",
            fix="give --tables FOLDER (or STREAMTABLES_TABLES), --module or --file",
        )
    return project


def _of_code_location(root: str, module: str, file: str) -> Project:
    # Dagster takes a second to load.
    from dagster_streamtables.orchestration.code_location import load_code_location

    found = load_code_location(module=module, file=file)
    if root:
        lake = open_lake(root)
        return Project(found.tables, lake, lambda: lake)
    return Project(found.tables, found.resource.logs(), found.resource.lake)


def _unknown(name: str, known: list[str]) -> InvalidDefinition:
    near = difflib.get_close_matches(name, known, n=2)
    return InvalidDefinition(
        f'no stream table "{name}" is declared',
        fix=f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}",
    )
