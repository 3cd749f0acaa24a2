"""Commands of publications: what of a lake others may replicate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

import typer

from dagster_streamtables.cli.console import Commands, Json, Root, app, out, show_json
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns
from dagster_streamtables.cli.lake_project import open_lake
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lake.publication import (
    Publication,
    PublicationEntry,
    Publications,
    qualify_name,
)

publications = Commands(no_args_is_help=True, help="What of a lake others may replicate.")
app.add_typer(publications, name="publications")

Name = Annotated[str, typer.Argument(help="The publication's name.")]
Some = list[str] | None
Tables = Annotated[Some, typer.Option("--table", help="A table, sales.orders; repeatable.")]
Columns = Annotated[str, typer.Option(help="The columns of the table, comma-separated.")]
Where = Annotated[str, typer.Option(help="Only the rows of the table with this condition.")]
Key = Annotated[str, typer.Option(help="The columns that identify a row, comma-separated.")]
Operations = Annotated[
    str, typer.Option("--publish", help="Some of insert,update,delete,truncate.")
]

PUBLICATIONS = TableLayout(
    *columns("publication", "publishes"),
    TableColumn("tables", text=True),
)


@publications.command()
def create(
    name: Name,
    root: Root,
    table: Tables = None,
    columns: Columns = "",
    where: Where = "",
    key: Key = "",
    schema: Annotated[Some, typer.Option(help="All tables of a schema; repeatable.")] = None,
    all_tables: Annotated[bool, typer.Option(help="Every table of the lake.")] = False,
    publish: Operations = "",
    as_json: Json = False,
) -> None:
    """Publish tables. By itself that does nothing: a replication reads them.

    --columns, --where and --key are of one table; others are added by `alter`.
    """
    entries = _entries(table, columns, where, key)
    made = Publication(name, entries, tuple(schema or ()), all_tables)
    if publish:
        made = replace(made, operations=_operations(publish))
    Publications(open_lake(root).root).create(made)
    _show(made, "is created", as_json=as_json)


@publications.command()
def alter(
    name: Name,
    root: Root,
    add: Annotated[Some, typer.Option(help="Publish this table, too; repeatable.")] = None,
    columns: Columns = "",
    where: Where = "",
    key: Key = "",
    remove: Annotated[Some, typer.Option(help="Publish it no more; repeatable.")] = None,
    publish: Operations = "",
    rename: Annotated[str, typer.Option(help="Its new name.")] = "",
    as_json: Json = False,
) -> None:
    """Change a publication. A replication has what is new after its next refresh.

    A table that is removed and added at once has the new columns, condition and key.
    """
    known = Publications(open_lake(root).root)
    entries = _entries(add, columns, where, key)

    def change_publication(before: Publication) -> Publication:
        after = before.without(remove or ()).with_entries(entries)
        if not publish:
            return after
        return Publication(
            name, after.tables, after.schemas, after.all_tables, _operations(publish)
        )

    made = known.alter(name, change_publication)
    if rename:
        made = known.rename(name, rename)
    _show(made, "is altered", as_json=as_json)


@publications.command("list")
def list_(root: Root, as_json: Json = False) -> None:
    """Show the publications of a lake."""
    known = Publications(open_lake(root).root)
    found = [known.read(name) for name in known.names()]
    if as_json:
        show_json([each.to_json() for each in found])
    elif found:
        rows = ((each.name, _operations_text(each), ", ".join(_tables(each))) for each in found)
        out.print(PUBLICATIONS.grid(rows))
    else:
        out.print("There are no publications.")


@publications.command()
def show(name: Name, root: Root, as_json: Json = False) -> None:
    """Show a publication: its tables with their columns, conditions and keys."""
    found = Publications(open_lake(root).root).read(name)
    _show(found, f"publishes {_operations_text(found)}", as_json=as_json)


@publications.command()
def drop(name: Name, root: Root) -> None:
    """Drop a publication. A replication that reads it is told at its next refresh."""
    Publications(open_lake(root).root).drop(name)
    out.print(f"Publication {name} is dropped.")


def _entries(tables: Some, columns: str, where: str, key: str) -> tuple[PublicationEntry, ...]:
    names = [qualify_name(each) for each in tables or ()]
    if len(names) != 1 and (columns or where or key):
        raise InvalidDefinition(
            "columns, a condition or a key are given, but not exactly one table",
            fix="name one table; add others by streamtables publications alter",
        )
    return tuple(PublicationEntry(each, _names(columns), where, _names(key)) for each in names)


def _names(text: str) -> tuple[str, ...] | None:
    return tuple(part.strip() for part in text.split(",")) if text else None


def _operations(text: str) -> Any:
    return frozenset(part.strip() for part in text.split(","))


def _operations_text(publication: Publication) -> str:
    return ", ".join(sorted(publication.operations)) or "nothing"


def _tables(publication: Publication) -> Iterable[str]:
    if publication.all_tables:
        yield "all tables"
    yield from (f"all of {schema}" for schema in publication.schemas)
    yield from (each.table for each in publication.tables)


def _show(publication: Publication, done: str, *, as_json: bool) -> None:
    if as_json:
        show_json(publication.to_json())
        return
    listed = ", ".join(_tables(publication)) or "no tables"
    out.print(f"Publication {publication.name} {done}: {listed}", soft_wrap=True)
    for each in publication.tables:
        about = (
            ("columns", ", ".join(each.columns or ())),
            ("where", each.where),
            ("key", ", ".join(each.key or ())),
        )
        said = "; ".join(f"{name} {value}" for name, value in about if value)
        if said:
            out.print(f"  {each.table}: {said}", soft_wrap=True)
