"""The command ``streamtables``: the local Spark server, and stream tables stopped and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.control import Controls
from dagster_streamtables.runtime.server import (
    ServerStatus,
    ensure_server,
    server_status,
    stop_server,
)

_ROOT = "STREAMTABLES_ROOT"

app = typer.Typer(no_args_is_help=True, help="Stream tables on Delta Lake.")
spark = typer.Typer(no_args_is_help=True, help="The Spark server that this machine's runs share.")
app.add_typer(spark, name="spark")

_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)


Root = Annotated[str, typer.Option(help="The folder or URI of the tables.", envvar=_ROOT)]
Table = Annotated[str, typer.Argument(help="As queries say it, for example mart.revenue.")]


@app.command()
def suspend(
    table: Table,
    root: Root,
    why: Annotated[str, typer.Option(help="Shown to whoever asks for a refresh.")] = "",
) -> None:
    """Leave a stream table alone, whatever asks for its refresh, until it is resumed."""
    with _errors_in_words():
        Controls(root).suspend(table, why)
    _out.print(f"{table} is suspended.")


@app.command()
def resume(table: Table, root: Root) -> None:
    """Let a stream table be refreshed again, its errors forgotten."""
    with _errors_in_words():
        was = Controls(root).resume(table)
    _out.print(f"{table} is resumed." if was else f"{table} was not suspended.")


@spark.command()
def status() -> None:
    """Show the server. Exits with 3 if none is running, as service scripts do."""
    found = server_status()
    if found is None:
        _out.print("No Spark server is running.")
        raise typer.Exit(3)
    _out.print(_described(found))


@spark.command()
def start() -> None:
    """Start the server unless it runs, and print its address."""
    with _errors_in_words():
        with _err.status("Starting Spark"):
            address = ensure_server()
        _out.print(address, soft_wrap=True)


@spark.command()
def stop() -> None:
    """Stop the server. It is no error if none is running."""
    with _errors_in_words():
        stopped = stop_server()
    _out.print("Stopped the Spark server." if stopped else "No Spark server is running.")


def _described(found: ServerStatus) -> Grid:
    table = Grid.grid(padding=(0, 2))
    running = datetime.now(UTC) - found.started
    table.add_row("address", found.address)
    table.add_row("process", str(found.pid))
    table.add_row("running for", _duration(running.total_seconds()))
    table.add_row("last used", f"{_duration(found.idle_seconds)} ago")
    table.add_row("memory", f"{found.memory_bytes / 2**20:,.0f} MB")
    table.add_row("log", str(found.log))
    return table


def _duration(seconds: float) -> str:
    """Whole minutes and seconds.

    >>> _duration(59.4), _duration(125)
    ('59 s', '2 min 5 s')
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def _errors_in_words() -> Iterator[None]:
    try:
        yield
    except StreamTablesError as error:
        _err.print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
