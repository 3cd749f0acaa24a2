"""The command itself, to which the other modules add theirs, and the options that they share."""

from __future__ import annotations

from typing import Annotated

import typer

NO = 3
"""The exit code of an answer that is no; see the package."""

_EPILOG = (
    "Exit codes: 0 done; 1 an error; 2 a wrong command line; 3 the answer is no (differences found,"
    " a query that cannot be maintained, a table that is not well, no server)."
)

app = typer.Typer(
    no_args_is_help=True,
    help="Stream tables on Delta Lake.",
    epilog=_EPILOG,
    pretty_exceptions_enable=False,
)

Table = Annotated[str, typer.Argument(help="As queries say it, for example mart.revenue.")]
Some = Annotated[
    list[str] | None, typer.Argument(help="As queries say them; all, if none is named.")
]
Root = Annotated[
    str, typer.Option(help="The folder or URI of the tables.", envvar="STREAMTABLES_ROOT")
]
MaybeRoot = Annotated[
    str,
    typer.Option(
        help="The folder or URI of the tables; that of the code location, if one is given.",
        envvar="STREAMTABLES_ROOT",
    ),
]
Folder = Annotated[
    str,
    typer.Option("--tables", help="The folder of .sql files.", envvar="STREAMTABLES_TABLES"),
]
Module = Annotated[
    str, typer.Option("--module", "-m", help="A module whose Dagster Definitions hold them.")
]
File = Annotated[
    str, typer.Option("--file", "-f", help="A Python file whose Dagster Definitions hold them.")
]
Json = Annotated[bool, typer.Option("--json", help="For programs: JSON, times in ISO 8601.")]
