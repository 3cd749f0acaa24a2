"""Commands that prove: explain how a query is maintained, check a table against its query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer
from rich.syntax import Syntax
from rich.text import Text

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.console import (
    NO,
    Answers,
    Json,
    Some,
    app,
    color_text,
    err,
    moment,
    number_text,
    out,
    plain,
    show_json,
    show_values,
)
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns
from dagster_streamtables.cli.lake_project import LakeProject, require_declarations, sound
from dagster_streamtables.declare.analysis import Problem, TableAnalysis, find_problems
from dagster_streamtables.errors import QueryPosition, StreamTablesError, legible
from dagster_streamtables.runtime.checks.comparison import Comparison
from dagster_streamtables.runtime.model.definition import Explanation, planned_columns
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.storage.history import PastRefresh

LAST_FULL = TableLayout(
    *columns("table", "time"),
    TableColumn("version", number=True),
    TableColumn("code"),
    TableColumn("inserted", number=True),
    TableColumn("took", number=True),
    TableColumn("reason", text=True),
)
COMPARISONS = TableLayout(
    *columns("table", "equal"),
    *columns("missing", "unexpected", "version", "took", number=True),
)


@app.command()
def explain(
    project: LakeProject,
    tables: Some = None,
    sql: bool = typer.Option(False, "--sql", help="Also show the SQL of the change."),
    last_full: bool = typer.Option(
        False, help="Show only the last refresh that ran the whole query, and why."
    ),
    as_json: Json = False,
) -> None:
    """Show how queries are maintained: operators, their laws and costs, intermediate tables.

    If one cannot be maintained, shows where in the SQL and why, and exits with 3. Starts no Spark.
    """
    chosen = {each.name: each for each in require_declarations(project).select(tables)}
    if last_full:
        _show_last_full(project, chosen, as_json)
        return
    answers = Answers(
        chosen,
        lambda name: project.logs.explain(chosen[name].table, upstream=_upstream(project, name)),
    )
    if as_json:
        show_values([_values(each) for each in answers], tables)
    else:
        for i, each in enumerate(answers):
            out.print("\n" * (i > 0), end="")
            _show(each, sql)
    answers.require_all()
    if not all(each.is_differential for each in answers):
        raise typer.Exit(NO)


def _show_last_full(
    project: LakeProject, chosen: Mapping[str, TableAnalysis], as_json: bool
) -> None:
    def answer(name: str) -> tuple[str, PastRefresh | None]:
        if (error := chosen[name].error) is not None:
            raise error
        return name, project.logs.monitor.last_full(name)

    found = Answers(chosen, answer)
    if as_json:
        show_values([{"table": name, "refresh": past} for name, past in found], list(chosen))
    else:
        out.print(LAST_FULL.grid(_last_full_row(*each) for each in found))
    found.require_all()


def _last_full_row(name: str, past: PastRefresh | None) -> tuple[str | Text, ...]:
    if past is None:
        return (name, "", "", "", "", "", "none in the log")
    return (name, moment(past.time), str(past.version), str(past.full_reason or "unknown"),
            number_text(past.inserted), duration(past.seconds), past.reason)  # fmt: skip


def _upstream(project: LakeProject, table: str) -> dict[str, Mapping[str, str | None]]:
    """The columns of the upstream stream tables, which may not exist yet."""
    columns: dict[str, Mapping[str, str | None]] = {}
    for each in sound(project.select([table], above=True)):
        if each.name == table:
            break
        try:
            plan = project.logs.plan(each, upstream=columns)
            columns[each.name] = planned_columns(each, plan)
        except StreamTablesError:
            continue  # reported when a plan needs it
    return columns


def _values(found: Explanation) -> dict[str, Any]:
    refusal, place = found.refusal, found.place
    at = _position(place)
    return {
        "table": found.table,
        "mode": found.mode,
        "maintained": found.is_differential,
        "law": found.plan.law if found.plan is not None else None,
        "sources": found.sources,
        "intermediate_tables": [each.name for each in found.queries if each.name],
        "queries": found.queries,
        "change_sql": found.change_sql or None,
        "refusal": None if refusal is None else {**plain(refusal), **at},
    }


def _position(place: QueryPosition | None) -> dict[str, Any]:
    file, line, column = (place.file, place.line, place.column) if place else (None, None, None)
    return {"file": file or None, "line": line, "column": column}


def _show(found: Explanation, sql: bool) -> None:
    out.print(f"{found.table}, mode {found.mode}; reads {', '.join(found.sources)}\n")
    out.print(str(found), soft_wrap=True)
    if sql and found.is_differential:
        out.print("\nChange, in SQL")
        out.print(
            Syntax(legible(found.change_sql), "sql", background_color="default", word_wrap=True)
        )


@app.command()
def validate(project: LakeProject, as_json: Json = False) -> None:
    """Look for all problems of the declarations, as a code location does when it is loaded; for CI.

    Exits with 3 if a definition must change. A source that cannot be read now is told, too. Starts
    no Spark.
    """
    declared = require_declarations(project).declared or ()
    found = find_problems(declared, project.logs, min_schedule_seconds=0)
    broken = {each.table for each in found if each.fatal}
    if as_json:
        show_json([_problem_values(each) for each in found])
    else:
        for each in found:
            out.print(str(each.error), soft_wrap=True)
            out.print()
        out.print(f"{len(broken)} of {len(declared)} stream tables are broken.")
    if broken:
        raise typer.Exit(NO)


def _problem_values(found: Problem) -> dict[str, Any]:
    return {"table": found.table, "broken": found.fatal, **plain(found.error),
            **_position(found.error.place)}  # fmt: skip


@app.command()
def check(project: LakeProject, tables: Some = None, as_json: Json = False) -> None:
    """Compare stream tables with their recomputed queries.

    Spark runs each query at the source versions that the table reflects. Exits with 3 if a table
    differs, and with 1 if one cannot be compared; the others still are.
    """
    chosen = sound(require_declarations(project).select(tables))
    lake = project.work()
    with err.status("Comparing") as said:

        def compare_table(table: StreamTable) -> Comparison:
            said.update(f"Comparing {table.name}")
            return lake.check(table)

        found = Answers(chosen, compare_table)
    show_json(found) if as_json else _show_comparisons(found)
    found.require_all()
    if not all(each.equal for each in found):
        raise typer.Exit(NO)


def _show_comparisons(found: list[Comparison]) -> None:
    out.print(COMPARISONS.grid(map(_comparison, found)))
    for each in found:
        if each.columns:
            out.print(f"\nColumns of {each.table} differ: {each.columns}")
        if each.sample:
            layout = TableLayout(*columns(*each.sample[0], text=True))
            rows = [[str(value) for value in row.values()] for row in each.sample]
            out.print(f"\nRows of {each.table} that differ:")
            out.print(layout.grid(rows))


def _comparison(found: Comparison) -> tuple[str | Text, ...]:
    equal = color_text("yes", "green") if found.equal else color_text("no", "red")
    counts = (f"{found.missing:,}", f"{found.unexpected:,}", str(found.version))
    return (found.table, equal, *counts, duration(found.seconds))
