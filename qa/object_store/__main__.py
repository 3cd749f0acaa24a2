"""The parts of the suite, as commands."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from qa.object_store.azure import azure
from qa.object_store.cases import cases
from qa.object_store.competing import competing
from qa.object_store.race import Race
from qa.object_store.refreshes import refreshes
from qa.object_store.requests import requests
from qa.object_store.spark import CONNECTOR_VARIABLE, LogStore
from qa.object_store.store import AuditedStore, audited_store

app = typer.Typer(
    help="Commits to S3. Without a command: all parts but `azure`, one after the other.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def everything(
    context: typer.Context,
    connector: Annotated[
        Path | None,
        typer.Option(help="A folder with the JARs of hadoop-aws, which are downloaded otherwise."),
    ] = None,
) -> None:
    if connector:
        os.environ[CONNECTOR_VARIABLE] = str(connector.resolve())
    if context.invoked_subcommand is None:
        failed = [part.__name__ for part in (refreshes_, competing_, cases_, requests_, race)
                  if _fails(part)]  # fmt: skip
        print("failed:", *failed or ["nothing"])
        raise typer.Exit(int(bool(failed)))


def _fails(part: Callable[[], None]) -> bool:
    try:
        part()
    except typer.Exit as end:
        return bool(end.exit_code)
    return False


@app.command("refreshes")
def refreshes_(windows: int = 3) -> None:
    """Refresh stream tables over the store, and compare them with plain Spark."""
    with _store() as store:
        refreshes(store, windows)


@app.command("competing")
def competing_(minutes: float = 10) -> None:
    """Refresh all kinds of stream tables by both engines at once; the end is 1 if one is wrong."""
    with _store() as store:
        wrong = competing(store, minutes)
    print(*wrong or ["nothing is wrong"], sep="\n")
    raise typer.Exit(int(bool(wrong)))


@app.command("cases")
def cases_(names: Annotated[str, typer.Option(help="A pattern of their names.")] = "*") -> None:
    """Stores that do what they should not, one after the other."""
    with _store() as store:
        if cases(store, names):
            raise typer.Exit(1)


@app.command("requests")
def requests_(statements: int = 20) -> None:
    """The requests of each commit of Spark, with both log stores."""
    with _store() as store:
        requests(store, statements)


@app.command("azure")
def azure_(commits: int = 200, windows: int = 10) -> None:
    """What delta-rs does on Azurite, which npm installs; the end is 1 if something is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        wrong = azure(Path(folder), commits, windows)
    print(*wrong or ["nothing is wrong"], sep="\n")
    raise typer.Exit(int(bool(wrong)))


@app.command()
def race(
    commits: Annotated[int, typer.Option(help="Of all tables together.")] = 10_000,
    per_table: Annotated[int, typer.Option(help="Each engine reads a log again and again.")] = 250,
    log_store: LogStore = LogStore.ours,
    kills: bool = True,
    calm: Annotated[bool, typer.Option(help="Without faults of the store.")] = False,
    seed: int = 1,
) -> None:
    """Writers of both engines race; the end is 1 if a commit is lost, or made twice."""
    with _store() as store:
        running = Race(store, log_store, store.audit.parent, seed, per_table, kills, calm)
        verdict = running.run(commits)
        print(f"{log_store}: {verdict.right}", f"events: {dict(sorted(running.events.items()))}",
              f"wrong: {verdict.wrong or 'nothing'}", *verdict.examples, sep="\n")  # fmt: skip
    raise typer.Exit(int(bool(verdict.wrong)))


@contextmanager
def _store() -> Iterator[AuditedStore]:
    # Not even a command in the background leaves its JVMs behind.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory(prefix="object_store_", ignore_cleanup_errors=True) as folder,
        audited_store(Path(folder)) as store,
    ):
        yield store


if __name__ == "__main__":
    app()
