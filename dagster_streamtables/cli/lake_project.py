"""Loads declarations from a folder of `.sql` files, or from the definitions of a code location."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dagster_streamtables.declare.analysis import (
    TableAnalysis,
    analyze_tables,
    reads,
    table_declaration,
)
from dagster_streamtables.declare.graph import readers, upstream
from dagster_streamtables.declare.sql_files import Declared, read_folder
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.runtime.delta.table_locations import require_root
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.monitor import tables_with_query
from dagster_streamtables.runtime.observe.table_status import TableDeclaration
from dagster_streamtables.runtime.spark.environment import variable

_ALIKE = 0.75
"""The share of letters, in order, that a misspelled name has in common with the one it means."""


@dataclass(frozen=True)
class LakeProject:
    """Declared stream tables, and the lake that holds them."""

    declared: tuple[Declared, ...] | None
    """None if only the root is given: then it is not known what is declared."""
    logs: Lake
    """For reading logs only: its Spark would be the local server."""
    work: Callable[[], Lake]
    """Opens the lake with the Spark of the code location, if there is one."""

    @cached_property
    def analyses(self) -> list[TableAnalysis]:
        """Each table after those it reads; broken ones last. The code location, not the command
        line, limits how short a schedule may be."""
        return analyze_tables(self.declared or (), min_schedule_seconds=0)

    @property
    def expectations(self) -> list[TableDeclaration] | None:
        if self.declared is None:
            return None
        return [table_declaration(each) for each in self.analyses]

    def select(
        self, names: Iterable[str] | None, *, above: bool = False, below: bool = False
    ) -> list[TableAnalysis]:
        """The declarations with these names, or all; with `above` also the tables upstream, with
        `below` those downstream. Raises `InvalidDefinition` if a name is not declared."""
        known = {each.name: each for each in self.analyses}
        chosen = list(names or known)
        for name in chosen:
            if name not in known:
                raise self._missing_declaration(name, known)
        edges = reads(self.analyses)
        turned = readers(edges)
        more = {found for name in chosen if above for found in upstream(name, edges)}
        more |= {found for name in chosen if below for found in upstream(name, turned)}
        return [each for name, each in known.items() if name in {*chosen, *more}]

    def one(self, name: str) -> TableAnalysis:
        return self.select([name])[0]

    def _missing_declaration(
        self, name: str, known: Mapping[str, TableAnalysis]
    ) -> InvalidDefinition:
        what = f'no stream table "{name}" is declared'
        near = _near(name, known)
        if not self._has_table(name):
            names = ", ".join(known) or "none"
            asked = f"did you mean {' or '.join(near)}?" if near else f"declared are: {names}"
            return InvalidDefinition(what, fix=asked)
        free = [each for each in sound(self.analyses) if not self._has_table(each.name)]
        renamed = tables_with_query(self.logs.monitor.catalog, name, free)
        new = renamed[0] if renamed else "NEW"
        return InvalidDefinition(
            what,
            why="its table is stored, and its declaration is removed or has another name now"
            + f": {', '.join(renamed)} has its query" * bool(renamed),
            fix=f"keep its rows under the new name by streamtables rename {name} {new}, delete "
            f"them by streamtables drop {name}, or declare it again; streamtables orphans lists "
            "all such tables",
        )

    def _has_table(self, name: str) -> bool:
        try:
            return self.logs.version(name) is not None
        except StreamTablesError:
            return False


def sound(examined: Sequence[TableAnalysis]) -> list[StreamTable]:
    """The stream tables whose declarations are valid."""
    return [each.table for each in examined if each.error is None]


def open_project(*, root: str, tables: str, module: str, file: str) -> LakeProject:
    """Load the declarations that the options name, if any. Raises `InvalidDefinition` if the
    options name two places, or one that does not exist, or no root."""
    if len([each for each in (tables, module, file) if each]) > 1:
        raise InvalidDefinition(
            "declarations are given twice", fix="give one of --tables, --module and --file"
        )
    if module or file:
        return _of_code_location(root, module, file)
    declared = tuple(read_folder(tables)) if tables else None
    return LakeProject(declared, open_lake(root), lambda: open_lake(root, ask_spark=True))


def open_lake(root: str, *, ask_spark: bool = False) -> Lake:
    """The lake below an existing root. It is never created: for a misspelled root, every command
    would then report that there are no tables. `ask_spark` as for `Lake`: of commands that use
    Spark anyway.

    Raises:
        InvalidDefinition: No root is given.
        EnvironmentProblem: The root does not exist, or cannot be read.
    """
    if not root:
        raise InvalidDefinition(
            "the root of the tables is not given", fix="give --root, or set STREAMTABLES_ROOT"
        )
    require_root(root)
    return Lake(
        root,
        catalogs=_catalogs(),
        catalog_token=variable("STREAMTABLES_CATALOG_TOKEN"),
        ask_spark=ask_spark,
    )


def _catalogs() -> dict[str, str]:
    """The catalogs of STREAMTABLES_CATALOGS, by the first parts of the names of their tables."""
    said = variable("STREAMTABLES_CATALOGS")
    pairs = [each.strip().partition("=") for each in said.split(",") if each.strip()]
    if not all(prefix and address for prefix, _, address in pairs):
        raise InvalidDefinition(
            f"STREAMTABLES_CATALOGS is {said}",
            fix="separate catalogs by commas, as in main=https://catalog.internal,sales=spark",
        )
    return {prefix: address for prefix, _, address in pairs}


def require_declarations(project: LakeProject) -> LakeProject:
    """The project, which must have declarations: for commands that need the query."""
    if not project.declared:
        raise no_declarations()
    return project


def no_declarations() -> InvalidDefinition:
    return InvalidDefinition(
        "no declaration of a stream table is given",
        why="this command needs the declarations, which stored tables do not contain",
        fix="give --tables FOLDER (or STREAMTABLES_TABLES), --module or --file",
    )


def _of_code_location(root: str, module: str, file: str) -> LakeProject:
    # Importing Dagster takes a second.
    from dagster_streamtables.orchestration.code_location import load_code_location

    found = load_code_location(module=module, file=file)
    if root:
        return LakeProject(found.tables, open_lake(root), lambda: open_lake(root, ask_spark=True))
    return LakeProject(found.tables, found.resource.logs(), found.resource.lake)


def _near(name: str, known: Iterable[str]) -> list[str]:
    """Up to two names that a misspelled one may mean. A schema that all have makes none alike.

    >>> _near("mart.besd", ["mart.best", "mart.busy"]), _near("best", ["mart.best"])
    (['mart.best'], ['mart.best'])
    >>> _near("mart.revenue", ["mart.turnover", "mart.users"])
    []
    """
    last = name.rpartition(".")[2]
    by_last = {each.rpartition(".")[2]: each for each in known}
    return [by_last[each] for each in difflib.get_close_matches(last, by_last, n=2, cutoff=_ALIKE)]
