"""The command that declares replications, by options or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dagster_streamtables.cli.app import Json, Root
from dagster_streamtables.cli.output import err, errors_in_words, out, show_json
from dagster_streamtables.cli.replication_tables import status_values
from dagster_streamtables.cli.replications import opened, replications
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lifecycle.files import declaration, read_replications
from dagster_streamtables.replication.lifecycle.replication import Replication

_Some = list[str] | None


@replications.command()
def create(
    root: Root,
    name: Annotated[
        str, typer.Argument(help="The replication's name; with --file: only the one of that name.")
    ] = "",
    file: Annotated[str, typer.Option("--file", "-f", help="A YAML or TOML file.")] = "",
    postgres: Annotated[str, typer.Option(help="Address of a server, without a password.")] = "",
    lake: Annotated[str, typer.Option(help="Root of another lake.")] = "",
    publication: Annotated[_Some, typer.Option(help="A publication to read; repeatable.")] = None,
    table: Annotated[
        _Some, typer.Option(help="A table of the server, public.orders; repeatable.")
    ] = None,
    schema: Annotated[_Some, typer.Option(help="All tables of a schema; repeatable.")] = None,
    password_env: Annotated[str, typer.Option(help="Variable that holds the password.")] = "",
    password_file: Annotated[str, typer.Option(help="File that holds the password.")] = "",
    type_: Annotated[
        _Some, typer.Option("--type", help="interval=text, by type or column; repeatable.")
    ] = None,
    capture: Annotated[
        str, typer.Option(help="wal, trigger or auto: how changes of a server come. Default: wal.")
    ] = "",
    origin: Annotated[
        str, typer.Option(help="any; none: without what replications wrote.")
    ] = "any",
    target: Annotated[
        _Some, typer.Option(help="public.orders=raw.orders, by table; repeatable.")
    ] = None,
    target_schema: Annotated[str, typer.Option(help="Schema of the other targets.")] = "",
    copy: Annotated[bool, typer.Option(help="Copy the rows that are there at the start.")] = True,
    enabled: Annotated[bool, typer.Option(help="No: store it, and ask nothing yet.")] = True,
    slot: Annotated[str, typer.Option(help="Its slot. Default: its own name.")] = "",
    slot_deadline: Annotated[
        str, typer.Option(metavar="TIME", help="A lake lets the slot go if unused so long: 7d.")
    ] = "",
    create_slot: Annotated[bool, typer.Option(help="No: the slot is there already.")] = True,
    on_conflict: Annotated[str, typer.Option(help="error, apply or skip.")] = "error",
    add_columns: Annotated[bool, typer.Option(help="Add published columns to targets.")] = False,
    commit_by_commit: Annotated[bool, typer.Option(help="A commit for each transaction.")] = False,
    disable_on_error: Annotated[bool, typer.Option(help="Disable it at an error.")] = False,
    on_slot_lost: Annotated[str, typer.Option(help="error, or copy all again.")] = "error",
    max_rows: Annotated[int, typer.Option(help="Changes of a batch.")] = 200_000,
    as_json: Json = False,
) -> None:
    """Declare a replication by options, or those of a file; what a file changes is altered.

    Its publisher is asked whether it can begin. The first refresh copies. A password is never
    given here: --password-env or --password-file says where it is.
    """
    given = {
        "postgres": postgres, "lake": lake, "publications": publication, "tables": table,
        "schemas": schema, "password_env": password_env, "password_file": password_file,
        "types": _pairs("--type", type_), "targets": _pairs("--target", target), "slot": slot,
        "schema": target_schema, "slot_deadline": slot_deadline, "capture": capture,
    }  # fmt: skip
    settings = {
        "origin": origin, "copy": copy, "enabled": enabled, "create_slot": create_slot,
        "on_conflict": on_conflict, "add_columns": add_columns, "max_rows": max_rows,
        "commit_by_commit": commit_by_commit, "disable_on_error": disable_on_error,
        "on_slot_lost": on_slot_lost,
    }  # fmt: skip
    with errors_in_words():
        wanted = _wanted(
            name, file, {key: value for key, value in given.items() if value}, settings
        )
        done = _stored(root, wanted, may_be_there=bool(file))
    if as_json:
        show_json([status_values(status) for status, _ in done])
        return
    for status, what in done:
        tables = ", ".join(f"{each.name} → {each.target}" for each in status.tables)
        said = f": {tables}" if tables else "."
        out.print(f"Replication {status.name} is {what}{said}", soft_wrap=True)
        for warning in status.warnings:
            err.print(f"warning: {warning}", soft_wrap=True)


def _wanted(
    name: str, file: str, given: dict[str, Any], settings: dict[str, Any]
) -> list[Replication]:
    if not file:
        return [declaration({"name": name, **given, **settings}, "the options")]
    if given:
        raise InvalidDefinition(
            "a replication is declared twice", fix="give either --file or the options"
        )
    found = read_replications(file)
    chosen = [each for each in found if name in ("", each.name)]
    if not chosen:
        raise InvalidDefinition(
            f'the file does not declare replication "{name}"',
            where=str(Path(file)),
            fix=f"name one of these: {', '.join(each.name for each in found) or 'it has none'}",
        )
    return chosen


def _stored(root: str, wanted: list[Replication], *, may_be_there: bool) -> list[tuple[Any, str]]:
    known = opened(root)
    there = {each.name for each in known.list()} if may_be_there else set[str]()
    return [
        (known.alter(each), "altered") if each.name in there else (known.create(each), "created")
        for each in wanted
    ]


def _pairs(option: str, texts: _Some) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        key, is_pair, value = text.partition("=")
        if not (key and is_pair and value):
            raise typer.BadParameter(f"{text!r} is no pair: write {option} NAME=VALUE.")
        found[key] = value
    return found
