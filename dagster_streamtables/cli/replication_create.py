"""The command that declares replications, by options or a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dagster_streamtables.cli.app import Json, Root
from dagster_streamtables.cli.output import err, errors_in_words, out, show_json
from dagster_streamtables.cli.replication_options import with_settings
from dagster_streamtables.cli.replication_tables import status_values
from dagster_streamtables.cli.replications import open_replications, replications
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.lifecycle.files import declaration, read_replications
from dagster_streamtables.replication.lifecycle.replication import Replication


@replications.command()
@with_settings
def create(
    root: Root,
    given: Mapping[str, Any],
    name: Annotated[
        str, typer.Argument(help="The replication's name; with --file: only the one of that name.")
    ] = "",
    file: Annotated[str, typer.Option("--file", "-f", help="A YAML or TOML file.")] = "",
    as_json: Json = False,
) -> None:
    """Declare a replication by options, or those of a file; what a file changes is altered.

    Its publisher is asked whether it can begin. The first refresh copies. A password is never
    given here: --password-env or --password-file says where it is.
    """
    with errors_in_words():
        wanted = _read_declarations(name, file, given)
        done = _store(root, wanted, may_be_there=bool(file))
    if as_json:
        show_json([status_values(status) for status, _ in done])
        return
    for status, what in done:
        tables = ", ".join(f"{each.name} → {each.target}" for each in status.tables)
        said = f": {tables}" if tables else "."
        out.print(f"Replication {status.name} is {what}{said}", soft_wrap=True)
        for warning in status.warnings:
            err.print(f"warning: {warning}", soft_wrap=True)


def _read_declarations(name: str, file: str, given: Mapping[str, Any]) -> list[Replication]:
    if not file:
        return [declaration({"name": name, **given}, "the options")]
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


def _store(root: str, wanted: list[Replication], *, may_be_there: bool) -> list[tuple[Any, str]]:
    known = open_replications(root)
    there = {each.name for each in known.list()} if may_be_there else set[str]()
    return [
        (known.alter(each), "altered") if each.name in there else (known.create(each), "created")
        for each in wanted
    ]
