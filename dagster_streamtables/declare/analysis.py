"""Analyzes declarations before the first refresh: sources, schedules, plans and errors.

Runs no query and starts no JVM. A broken declaration is kept with its error, so that the others of
its code location still work.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import asks_for_time
from dagster_streamtables.declare import graph
from dagster_streamtables.declare.schedule import (
    MIN_SCHEDULE_SECONDS,
    Schedule,
    parse_schedule,
    resolved_text,
)
from dagster_streamtables.declare.sql_files import BrokenTable, Declared
from dagster_streamtables.errors import (
    EnvironmentProblem,
    InvalidDefinition,
    QueryPosition,
    SourceProblem,
    StreamTablesError,
    UnsupportedQuery,
    underline,
)
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.model.definition import planned_columns
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import match_name, with_exact_names
from dagster_streamtables.runtime.observe.table_status import TableDeclaration

if TYPE_CHECKING:
    from dagster_streamtables.compiler import Plan
    from dagster_streamtables.runtime.lake import Lake


@dataclass(frozen=True)
class TableAnalysis:
    """A declaration and the results of its analysis."""

    declared: Declared
    sources: tuple[str, ...] = ()
    """The tables that its query reads, by their names in the query."""
    schedule: Schedule | None = None
    """Its own schedule, or the one it inherits; None if it is refreshed on demand."""
    inherits: tuple[str, ...] | None = None
    """The path to the table whose duration it inherits; None if it has its own schedule."""
    cron_readers_elsewhere: tuple[str, ...] = ()
    """Tables of other catalogs with a cron schedule, whose runs do not refresh it."""
    plan: Plan | None = None
    """None if a source does not exist yet, or if the root of the tables is unknown."""
    refusal: str = ""
    """Why its change cannot be computed, so that each refresh recomputes; its mode allows that."""
    error: StreamTablesError | None = None
    """Why its definition must change before it can be refreshed."""
    doubt: StreamTablesError | None = None
    """Why a source cannot be read now; it may be readable when the table is refreshed."""

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def definition(self) -> str:
        """Text that changes with its declaration."""
        return repr(self.declared)

    @property
    def table(self) -> StreamTable:
        """The declaration. Raises `StreamTablesError` if it is broken."""
        if self.error is not None:
            raise self.error
        assert isinstance(self.declared, StreamTable)
        return self.declared

    @cached_property
    def is_time_dependent(self) -> bool:
        """Whether the result of its query changes as time passes."""
        if self.error is not None:
            return False
        if self.plan is not None:
            return self.plan.is_time_dependent
        try:
            return asks_for_time(self.table.text())
        except StreamTablesError:  # another dialect, to be translated once columns are known
            return False

    @property
    def resolved_schedule(self) -> str:
        """The schedule as text, with the tables it is inherited from."""
        if self.inherits is not None and self.cron_readers_elsewhere:
            readers = " and ".join(self.cron_readers_elsewhere)
            return (
                f"on demand: the cron schedule of {readers}, elsewhere in the code location, does "
                "not refresh it; give it a schedule of its own"
            )
        return resolved_text(self.schedule, self.inherits, "table")


@dataclass(frozen=True)
class Problem:
    """Something wrong with a stream table."""

    table: str
    error: StreamTablesError

    @property
    def fatal(self) -> bool:
        """Whether the definition must change. Otherwise a source does not fit the query now."""
        return not isinstance(self.error, (SourceProblem, EnvironmentProblem))


def combine_errors(errors: Sequence[StreamTablesError]) -> StreamTablesError:
    """One error that says all, each with its table."""
    if len(errors) == 1:
        return errors[0]
    return InvalidDefinition(
        f"{len(errors)} stream tables are broken",
        why="\n\n".join(str(each) for each in errors),
        fix="change their definitions; or load without strict, and their assets fail when run",
    )


def find_problems(
    tables: Iterable[Declared],
    lake: Lake | None = None,
    *,
    min_schedule_seconds: float = MIN_SCHEDULE_SECONDS,
) -> list[Problem]:
    """All problems that can be found without running a query; for tests and CI.

    Args:
        tables: The declarations, including broken ones.
        lake: Where the tables are. Without it, columns and types are not checked.
        min_schedule_seconds: Refuse shorter schedules.
    """
    examined = analyze_tables(tables, lake, min_schedule_seconds=min_schedule_seconds)
    return [Problem(e.name, error) for e in examined for error in (e.error, e.doubt) if error]


def analyze_tables(
    tables: Iterable[Declared],
    lake: Lake | None = None,
    *,
    min_schedule_seconds: float = MIN_SCHEDULE_SECONDS,
) -> list[TableAnalysis]:
    """Analyze declarations. Each follows those it reads; broken ones come last."""
    declared = _one_of_each_name(tables)
    names = {each.name for each in declared}
    found = {e.name: e for e in (_read(each, names, lake) for each in declared)}
    found |= {e.name: e for e in _without_cycles(found)}
    found = {e.name: _with_schedule(e, min_schedule_seconds) for e in found.values()}
    order = graph.dependency_order(reads(found.values()))
    if lake is not None:
        _plan(found, order, lake)
        order = graph.dependency_order(reads(found.values()))
    return [*_inheriting(found, order), *(e for e in found.values() if e.error)]


def reads(examined: Iterable[TableAnalysis]) -> dict[str, tuple[str, ...]]:
    """The dependency graph of the tables that are not broken."""
    return {e.name: e.sources for e in examined if e.error is None}


def _one_of_each_name(tables: Iterable[Declared]) -> list[Declared]:
    named: dict[str, list[Declared]] = {}
    for table in tables:
        named.setdefault(table.name, []).append(table)
    return [same[0] if len(same) == 1 else _ambiguous(same) for same in named.values()]


def _ambiguous(tables: Sequence[Declared]) -> BrokenTable:
    places = [table.file or "a declaration in Python" for table in tables]
    name = tables[0].name
    error = InvalidDefinition(
        f"{len(tables)} stream tables have this name",
        where="\n".join(places),
        why="a name must identify one table",
        fix="give all but one of them another name",
    )
    return BrokenTable(name, error.about(name))


def _read(declared: Declared, names: Collection[str], lake: Lake | None) -> TableAnalysis:
    if isinstance(declared, BrokenTable):
        return TableAnalysis(declared, error=declared.error)
    try:
        spelled = with_exact_names(declared, lambda name: _exact_name(name, names, lake))
        return TableAnalysis(spelled, sources=spelled.sources)
    except StreamTablesError as error:
        return TableAnalysis(declared, error=error.about(declared.name))


def _exact_name(name: str, names: Collection[str], lake: Lake | None) -> str:
    """The name of a source as it is declared; of a table that is spelled like it, its own."""
    meant = match_name(name, names) or name
    if meant != name and lake is not None and lake.version(name) is not None:
        return name
    return meant


def _without_cycles(found: Mapping[str, TableAnalysis]) -> list[TableAnalysis]:
    return [
        replace(found[name], error=graph.cycle_error(path).about(name))
        for path in graph.cycles(reads(found.values()))
        for name in path[:-1]
    ]


def _with_schedule(examined: TableAnalysis, min_schedule_seconds: float) -> TableAnalysis:
    table = examined.declared
    if examined.error is not None or not isinstance(table, StreamTable):
        return examined
    try:
        schedule = parse_schedule(
            table.schedule, table.timezone, min_schedule_seconds=min_schedule_seconds
        )
    except StreamTablesError as error:
        return replace(examined, error=_with_place(error, table).about(table.name))
    return replace(examined, schedule=schedule)


def _with_place(error: StreamTablesError, table: StreamTable) -> StreamTablesError:
    """An error of `parse_schedule`, with the line of the schedule or the time zone in the file of
    the table."""
    _, _, carets = error.where.partition("\n")
    key, value = ("schedule", table.schedule) if carets else ("timezone", table.timezone)
    found = _line(table, key, (value or "").strip()) if table.file else None
    if found is None:
        return error
    number, text, start = found
    first = start + len(carets) - len(carets.lstrip())
    shown = underline(text, first, first + (carets.count("^") or len(value or "")) - 1)
    return error.with_parts(where=QueryPosition(number, shown.column, shown.shown, table.file))


def _line(table: StreamTable, key: str, value: str) -> tuple[int, str, int] | None:
    """The number of the line, its text, and where the value begins in it."""
    try:
        lines = Path(table.file or "").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):  # it was deleted or changed after it was read
        return None
    setting = re.compile(rf"\b{key}\b\W*?(?P<value>{re.escape(value)})", re.IGNORECASE)
    found = [(n, line, at) for n, line in enumerate(lines, 1) if (at := setting.search(line))]
    if not found:
        return None
    number, line, at = min(found, key=lambda each: abs(each[0] - table.line))
    return number, line, at.start("value")


def _plan(found: dict[str, TableAnalysis], order: Sequence[str], lake: Lake) -> None:
    """Compile in dependency order, so that the columns of tables not created yet are known."""
    columns: dict[str, Mapping[str, str | None]] = {}
    for name in order:
        table = found[name].table
        try:
            plan = lake.plan(table, upstream=columns)
            columns[name] = planned_columns(table, plan)
            if set(plan.sources) != set(found[name].sources):  # in another case
                spelled = with_exact_names(table, lake.exact_name)
                found[name] = replace(found[name], declared=spelled, sources=spelled.sources)
            found[name] = replace(found[name], plan=plan)
        except (SourceProblem, EnvironmentProblem) as error:
            found[name] = replace(found[name], doubt=error.about(name))
        except StreamTablesError as error:
            in_full = isinstance(error, UnsupportedQuery) and not table.is_differential_only
            known = {"refusal": error.what} if in_full else {"error": error.about(name)}
            found[name] = replace(found[name], **known)
        except Exception:  # the code location must load; the refresh reports the error
            logger.warning('stream table "%s" could not be compiled', name, exc_info=True)


def _inheriting(found: Mapping[str, TableAnalysis], order: Sequence[str]) -> list[TableAnalysis]:
    edges = reads(found.values())
    paths = graph.inheritance_paths({name: found[name].schedule for name in order}, edges)
    return [
        replace(
            found[name],
            inherits=paths[name],
            schedule=found[paths[name][-1]].schedule if paths[name] else None,
        )
        if name in paths
        else found[name]
        for name in order
    ]


def expected_tables(
    tables: Iterable[Declared], *, min_schedule_seconds: float = MIN_SCHEDULE_SECONDS
) -> list[TableDeclaration]:
    """The input that `Lake.monitor` needs to decide which tables are stale. Reads no table.

    Args:
        tables: The declarations, including broken ones, with their views.
        min_schedule_seconds: Treat shorter schedules as broken.
    """
    examined = analyze_tables(tables, min_schedule_seconds=min_schedule_seconds)
    return [table_declaration(each) for each in examined]


def table_declaration(examined: TableAnalysis) -> TableDeclaration:
    """The expectation for one table."""
    declared = examined.declared if isinstance(examined.declared, StreamTable) else None
    return TableDeclaration(
        name=examined.name,
        table=None if examined.error is not None else declared,
        schedule=examined.schedule,
        resolved="" if examined.error is not None else examined.resolved_schedule,
        problem=examined.error,
    )
