"""The command ``streamtables`` and its shared options; the other modules add its subcommands."""

from __future__ import annotations

from typing import Annotated

import typer

from dagster_streamtables.setting.text import seconds_in

NO = 3
"""The exit code for the answer "no": see the package docstring."""

_EPILOG = (
    "Exit codes: 0 success; 1 error; 2 invalid command line; 3 the answer is no (differences found,"
    " a query that cannot be maintained, a stale, stopped or orphaned table, an altered log, no"
    " server or worker)."
)

app = typer.Typer(
    no_args_is_help=True,
    help="Stream tables on Delta Lake.",
    epilog=_EPILOG,
    pretty_exceptions_enable=False,
)

Table = Annotated[str, typer.Argument(help="The table's name in queries, such as mart.revenue.")]
Some = Annotated[
    list[str] | None, typer.Argument(help="Names, such as mart.revenue. Default: all tables.")
]
Root = Annotated[str, typer.Option(help="Folder or URI of the tables.", envvar="STREAMTABLES_ROOT")]
MaybeRoot = Annotated[
    str,
    typer.Option(
        help="Folder or URI of the tables. Default: the root of the code location.",
        envvar="STREAMTABLES_ROOT",
    ),
]
Folder = Annotated[
    str,
    typer.Option("--tables", help="Folder of .sql files.", envvar="STREAMTABLES_TABLES"),
]
Module = Annotated[
    str, typer.Option("--module", "-m", help="Module whose Dagster Definitions declare the tables.")
]
File = Annotated[str, typer.Option("--file", "-f", help="Python file, instead of a module.")]
Wide = Annotated[bool, typer.Option("--wide", help="Show all columns.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, with times in ISO 8601.")]


def seconds(text: str) -> float:
    """
    >>> seconds("10s"), seconds("1.5"), seconds("500ms"), seconds("7d")
    (10.0, 1.5, 0.5, 604800.0)
    """
    found = seconds_in(str(text))
    if found is None:
        raise typer.BadParameter(f"{text!r} is no time: write 500ms, 10s, 5m, 2h or 7d.")
    return found
