"""The command ``streamtables``: the local Spark server; stream tables stopped, resumed, kept up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table as Grid

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.control import Controls
from dagster_streamtables.runtime.lake import Lake
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


@app.command()
def retention(
    root: Root,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """Show how far each stream table is behind its sources, and for how long it may be."""
    with _errors_in_words():
        kept = Lake(root).retention
        found = [each for table in kept.stream_tables() for each in kept.of(table)]
    if as_json:
        _out.print_json(data=[asdict(each) for each in found])
        return
    columns = ("stream table", "source", "reflects", "newest", "behind", "read by", "history left")
    grid = Grid(*columns, box=SIMPLE)
    for each in found:
        behind = "?" if each.bytes_behind is None else decimal(each.bytes_behind)
        grid.add_row(
            each.table, each.source, str(each.frontier), str(each.newest), behind, each.capture,
            each.lost or ("all" if each.seconds_left is None else _long(each.seconds_left)),
        )  # fmt: skip
    _out.print(grid)


@app.command()
def vacuum(
    table: Table,
    root: Root,
    keep_hours: Annotated[
        float | None, typer.Option(help="Keep files this long; else the table's own setting.")
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Delete nothing.")] = False,
) -> None:
    """Delete files of a table that are out of use, but none that a stream table still needs."""
    keep = None if keep_hours is None else timedelta(hours=keep_hours)
    with _errors_in_words(), _err.status("Looking for files"):
        done = Lake(root).retention.vacuum(table, keep=keep, dry=dry_run)
    if done.held_since is not None:
        since = datetime.fromtimestamp(done.held_since, UTC).isoformat(timespec="seconds")
        _out.print(
            f"Stream tables still need what {table} was at {since}; nothing since is touched."
        )
    said = "would be deleted" if dry_run else "were deleted"
    _out.print(f"{done.files} files, out of use for more than {done.hours} hours, {said}.")


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


def _long(seconds: float) -> str:
    """Days and hours.

    >>> _long(100_000), _long(-5)
    ('1 d 3 h', 'none: may go any time')
    """
    if seconds < 0:
        return "none: may go any time"
    days, hours = divmod(int(seconds // 3600), 24)
    return f"{days} d {hours} h"


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
