"""Commands of the local Spark server (start, show, stop), and the settings of others, which are
examined."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.console import (
    NO,
    Commands,
    Json,
    Root,
    app,
    err,
    out,
    plain,
    show_json,
)
from dagster_streamtables.cli.grid import Pairs, TableColumn, TableLayout, columns, pairs
from dagster_streamtables.cli.lake_project import open_lake
from dagster_streamtables.runtime.delta.table_locations import TableNames
from dagster_streamtables.runtime.doctor.server_examination import examine_server
from dagster_streamtables.runtime.spark.local_server import (
    ServerStatus,
    ensure_server,
    key_of,
    server_status,
    stop_server,
)
from dagster_streamtables.runtime.spark.session import open_session
from dagster_streamtables.runtime.spark.settings import connect_settings

FINDINGS = TableLayout(TableColumn("check"), *columns("found", "to do", text=True))
_KILLED = (
    "killed: this server does not stop when idle. The next command that needs Spark replaces it; "
    "`streamtables spark stop` ends it"
)
spark = Commands(no_args_is_help=True, help="The local Spark server that all runs share.")
app.add_typer(spark, name="spark")


@spark.command()
def status(as_json: Json = False) -> None:
    """Show the server. Exits with 3 if none is running, as service scripts do."""
    found = server_status()
    if as_json:
        show_json(found)
    else:
        out.print("No Spark server is running." if found is None else _describe(found))
    if found is None:
        raise typer.Exit(NO)


@spark.command()
def start() -> None:
    """Start the server unless it is running, and print its address."""
    with err.status("Starting Spark"):
        address = ensure_server()
    out.print(address, soft_wrap=True)


@spark.command()
def url() -> None:
    """Start the server unless it is running; print its address with its token, for other clients.

    The token is a secret: whoever has it can run code as you.
    """
    with err.status("Starting Spark"):
        key = key_of(ensure_server())
    if key is not None:
        out.print(key.address, soft_wrap=True)


@spark.command()
def stop() -> None:
    """Stop the server, if one is running."""
    stopped = stop_server()
    out.print("Stopped the Spark server." if stopped else "No Spark server is running.")


@spark.command()
def properties() -> None:
    """Print the settings of a Spark Connect server of your own, for spark-submit.

    They name JARs on this machine: those of Delta, and the log store for S3.
    """
    found = connect_settings()
    for name, value in found.items():
        out.print(f"{name} {value}", soft_wrap=True)


@spark.command()
def doctor(
    root: Root,
    address: Annotated[
        str,
        typer.Argument(
            help="As in sc://host:15002. Default: STREAMTABLES_SPARK, or the local server."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Check that Spark at an address can refresh the tables below a root.

    Looks at its version, its settings, its clock and its memory, and writes a small table below the
    root from both sides, which is deleted. Exits with 3 if something must be changed.
    """
    lake = open_lake(root)
    tables = sum(1 for _ in TableNames(lake.root).tables(lake.storage_options))
    with err.status("Examining Spark"):
        session = open_session(address or None)
        found = list(examine_server(session, lake.root, lake.storage_options, tables))
    if as_json:
        show_json([{**plain(each), "fits": each.fits} for each in found])
    else:
        out.print(FINDINGS.grid((each.subject, each.found, each.fix) for each in found))
    if not all(each.fits for each in found):
        raise typer.Exit(NO)


def _describe(found: ServerStatus) -> Pairs:
    running = datetime.now(UTC) - found.started
    return pairs(
        ("address", found.address),
        ("process", str(found.pid)),
        ("running for", duration(running.total_seconds())),
        ("last used", f"{duration(found.idle_seconds)} ago"),
        ("memory", f"{found.memory_bytes / 2**20:,.0f} MB"),
        ("log", str(found.log)),
        ("supervisor", "" if found.supervised else _KILLED),
    )
