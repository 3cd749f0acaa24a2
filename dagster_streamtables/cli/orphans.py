"""Commands about stored tables whose declaration is removed or renamed: orphans, rename."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.console import (
    NO,
    Json,
    Table,
    app,
    color_text,
    extent,
    moment,
    number_text,
    out,
    plain,
    show_json,
    size,
)
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns
from dagster_streamtables.cli.lake_project import (
    LakeProject,
    no_declarations,
    require_declarations,
    sound,
)
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.replication.lake.publication import Publications, qualify_name
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.observe.monitor import Orphan, orphans as orphans_of
from dagster_streamtables.runtime.rename import RenameResult

ORPHANS = TableLayout(
    TableColumn("table"),
    *columns("rows", "size", number=True),
    TableColumn("refreshed"),
    TableColumn("age", number=True),
    *columns("read by", "to do", text=True),
)


@app.command()
def orphans(
    project: LakeProject,
    strict: Annotated[bool, typer.Option(help="Exit with 3 if a table is orphaned.")] = False,
    as_json: Json = False,
) -> None:
    """Show stored stream tables that no declaration names, and what to do with each.

    Knows the declarations that the options give: another code location may declare a table that is
    shown here. Reads only Delta logs.
    """
    if project.expectations is None:
        raise no_declarations()
    found = orphans_of(project.logs.monitor, project.expectations)
    published = _publications(project.logs) if found else {}
    if as_json:
        show_json([_values(each, published) for each in found])
    elif found:
        out.print(ORPHANS.grid(_row(each, published) for each in found))
    else:
        out.print("Every stored stream table is declared.")
    if strict and found:
        raise typer.Exit(NO)


def _publications(lake: Lake) -> dict[str, list[str]]:
    """The publications that name each table."""
    publications = Publications(lake.root, lake.storage_options)
    named: dict[str, list[str]] = {}
    for name in publications.names():
        for entry in publications.read(name).tables:
            named.setdefault(entry.table, []).append(name)
    return named


def _values(found: Orphan, published: Mapping[str, list[str]]) -> dict[str, Any]:
    publications = published.get(qualify_name(found.table), [])
    return {**plain(found), "publications": publications, "commands": [*_commands(found)]}


def _row(found: Orphan, published: Mapping[str, list[str]]) -> tuple[str | Text, ...]:
    readers = [
        *found.readers,
        *(f"slot {each}" for each in found.slots),
        *(f"publication {each}" for each in published.get(qualify_name(found.table), ())),
    ]
    to_do = color_text(found.problem, "red") if found.problem else "; or ".join(_commands(found))
    return (found.table, number_text(found.rows), size(found.bytes), moment(found.refreshed_at),
            duration(found.age_seconds), ", ".join(readers), to_do)  # fmt: skip


def _commands(found: Orphan) -> Iterator[str]:
    """The commands that keep the rows under another name, or delete them."""
    yield from (f"streamtables rename {found.table} {new}" for new in found.renamed)
    yield f"streamtables drop {found.table}"


@app.command()
def rename(
    project: LakeProject,
    table: Table,
    new: Annotated[str, typer.Argument(help="The name that its declaration has now.")],
    as_json: Json = False,
) -> None:
    """Keep the rows and the history of a stream table whose declaration has another name now.

    Rename the declaration first, and the name in the queries that read it. The query of the table
    stays the same; queries that differ from the stored ones in this name only are not run again.
    """
    tables = sound(require_declarations(project).analyses)
    if table not in {each.name for each in tables}:
        _ = project.one(new).table  # its error, if it is not declared, or broken
    _check_publications(table, _publications(project.logs).get(qualify_name(table), ()))
    done = project.work().rename(table, new, tables)
    show_json(done) if as_json else out.print(_describe_rename(done), soft_wrap=True)


def _check_publications(table: str, publications: Iterable[str]) -> None:
    for name in publications:
        raise RefusedOperation(
            f'"{table}" is published by "{name}"',
            why="its replications know the table by this name",
            fix=f"remove it (streamtables publications alter {name} --remove {table}), rename, and "
            "add the new name",
        )


def _describe_rename(done: RenameResult) -> str:
    said = f"Renamed {done.former} to {done.table}: {extent(done.rows, done.bytes)}."
    if done.readers:
        said += f" These stream tables read it: {', '.join(done.readers)}."
    if done.rebuilt:
        said += f" The next refresh of {', '.join(done.rebuilt)} runs the query again."
    return said
