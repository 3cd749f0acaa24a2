"""The command that looks for commits that another writer has erased."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.text import Text

from dagster_streamtables.cli.console import (
    NO,
    Answers,
    File,
    Json,
    MaybeRoot,
    Module,
    Some,
    app,
    color_text,
    err,
    number_text,
    out,
    plain,
    show_json,
)
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns
from dagster_streamtables.cli.lake_project import open_project
from dagster_streamtables.runtime.delta.table_locations import TableNames
from dagster_streamtables.runtime.doctor.examination import examine_table
from dagster_streamtables.runtime.doctor.findings import Examination, Finding, Verdict

_COLORS = {Verdict.SURE: "red", Verdict.POSSIBLE: "yellow"}
_ADVICE = (
    "Compare the versions in doubt with the records of their writers. If a commit is missing, write"
    " its rows again, or RESTORE the table to the version before and repeat the later writes. Then"
    " let all Spark writers commit safely: docs/object_stores.md#commits-on-s3."
)

EXAMINATIONS = TableLayout(
    *columns("table", "verdict", "versions"),
    *columns("recent", "aborted", "not judged", number=True),
)
FINDINGS = TableLayout(
    *columns("table", "in doubt", "trace", "verdict"),
    TableColumn("count", number=True),
    TableColumn("found", text=True),
)


@app.command()
def doctor(
    tables: Some = None,
    root: MaybeRoot = "",
    module: Module = "",
    file: File = "",
    as_json: Json = False,
) -> None:
    """Look for commits that another writer erased, in the logs and files of tables.

    Examines sources and stream tables, and changes nothing; starts no Spark. Exits with 3 if a log
    was surely altered, and with 1 if a table cannot be read; the others still are.
    """
    lake = open_project(root=root, tables="", module=module, file=file).logs
    names = tables or sorted(TableNames(lake.root).tables(lake.storage_options))
    with err.status("Examining") as said:

        def examine_one(name: str) -> Examination:
            said.update(f"Examining {name}")
            place = lake.location(name)
            return examine_table(place, name, lake.access.catalog.logs.options_at(place))

        found = Answers(names, examine_one)
    if as_json:
        show_json([{**plain(each), "verdict": each.verdict} for each in found])
    else:
        _show(found)
    found.require_all()
    if any(each.verdict is Verdict.SURE for each in found):
        raise typer.Exit(NO)


def _show(found: Sequence[Examination]) -> None:
    out.print(EXAMINATIONS.grid(map(_examination, found)))
    doubtful = [_finding(each.table, finding) for each in found for finding in each.findings]
    if doubtful:
        out.print()
        out.print(FINDINGS.grid(doubtful))
        out.print()
        out.print(_ADVICE, soft_wrap=True)


def _examination(found: Examination) -> tuple[str | Text, ...]:
    versions = f"{found.oldest} to {found.newest}"
    files = map(number_text, (found.recent, found.aborted, found.unjudged))
    return (found.table, _verdict(found.verdict), versions, *files)


def _finding(table: str, found: Finding) -> tuple[str | Text, ...]:
    verdict = _verdict(Verdict.SURE if found.sure else Verdict.POSSIBLE)
    what = "\n".join((found.what, *found.examples))
    return (table, found.versions, found.trace, verdict, number_text(found.count), what)


def _verdict(verdict: Verdict) -> Text:
    return color_text(verdict, _COLORS.get(verdict, "green"))
