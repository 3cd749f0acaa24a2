"""Commands of the worker: run one, and show the one that runs."""

from __future__ import annotations

import logging
import os
import signal
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as Grid

from dagster_streamtables.cli.app import NO, File, Folder, Json, Module, Root, app
from dagster_streamtables.cli.output import errors_in_words, lasting, out, pairs, show_json
from dagster_streamtables.cli.project import open_lake
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.observe.lease import Beats, Heartbeat

if TYPE_CHECKING:
    from dagster_streamtables.worker.driven import Driven
    from dagster_streamtables.worker.loop import Worker
    from dagster_streamtables.worker.reload import Reload

worker = typer.Typer(help="Refresh what is due, within a second, beside Dagster or without it.")
app.add_typer(worker, name="worker", invoke_without_command=True)

_NAME = "streamtables"
Name = Annotated[
    str, typer.Option(help="Name of the resource of the tables, if there are several.")
]


class LogFormat(StrEnum):
    """How the log is written."""

    TEXT = "text"
    JSON = "json"


@worker.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    module: Module = "",
    file: File = "",
    folder: Folder = "",
    root: Annotated[
        str, typer.Option(help="Folder or URI of the tables.", envvar="STREAMTABLES_ROOT")
    ] = "",
    name: Annotated[
        str, typer.Option(help="Resource of the tables, if the definitions have several.")
    ] = "",
    report: Annotated[bool, typer.Option(help="Report to the Dagster of DAGSTER_HOME.")] = True,
    report_every: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two reports of a table, at least.")
    ] = 10.0,
    max_concurrent: Annotated[
        int, typer.Option(min=1, help="Refresh at most this many tables at the same time.")
    ] = 4,
    heartbeat: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two heartbeats.")
    ] = 5.0,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for running refreshes when stopped.")
    ] = 30.0,
    log_format: Annotated[LogFormat, typer.Option(help="Lines of text, or of JSON.")] = (
        LogFormat.TEXT
    ),
    verbose: Annotated[bool, typer.Option(help="Log refreshes that found nothing, too.")] = False,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve /health and /metrics here."),
    ] = None,
    address: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Refresh what is due until stopped by SIGTERM or SIGINT.

    Give the definitions of a code location, or a folder of .sql files and a root.
    """
    if context.invoked_subcommand is not None:
        return
    with errors_in_words():
        # The worker is the only command that needs it.
        from dagster_streamtables.worker.loop import Worker
        from dagster_streamtables.worker.settings import WorkerSettings

        _log_to_stderr(log_format, verbose=verbose)
        settings = WorkerSettings(
            max_concurrent=max_concurrent,
            heartbeat=timedelta(seconds=heartbeat),
            grace=timedelta(seconds=grace),
        )
        place = _Place(module, file, folder, root, name, report, report_every)
        reload = place.reload()
        works = Worker(reload.first, settings, reload=reload.start())
        if port is not None:
            _serve(works, port, address)
        whole = _until_stopped(works)
    if not whole:
        os._exit(1)  # threads that still refresh would be waited for


@worker.command()
def status(root: Root, name: Name = _NAME, as_json: Json = False) -> None:
    """Show the worker that refreshes the tables below a root. Exits with 3 if none is alive."""
    with errors_in_words():
        lake = open_lake(root)
        said = Beats(lake.root, lake.storage_options, name).newest()
    alive = said is not None and said.seems_alive(datetime.now(UTC))
    if as_json:
        show_json({"alive": alive, "worker": said})
    else:
        out.print("No worker has ever run here." if said is None else _described(said, alive))
    if not alive:
        raise typer.Exit(NO)


@dataclass(frozen=True)
class _Place:
    """Where the definitions are."""

    module: str
    file: str
    folder: str
    root: str
    name: str
    report: bool
    report_every: float

    def reload(self) -> Reload:
        """The definitions, and what loads them again."""
        from dagster_streamtables.worker.reload import Reload

        if len([each for each in (self.folder, self.module, self.file) if each]) != 1:
            raise InvalidDefinition(
                "a worker needs the declarations of one place",
                fix="give one of --module, --file, and --tables with --root",
            )
        if self.folder:
            return Reload(self._of_folder(), self._of_folder, [Path(self.folder)])
        return self._of_location()

    def _of_folder(self) -> Driven:
        from dagster_streamtables.worker.project import of_folder

        return of_folder(self.folder, open_lake(self.root))

    def _of_location(self) -> Reload:
        from dagster_streamtables.orchestration.code_location import load_definitions
        from dagster_streamtables.worker.location import instance_to_report_to, of_definitions
        from dagster_streamtables.worker.modules import folder_of, imported_again
        from dagster_streamtables.worker.reload import Reload

        instance = instance_to_report_to() if self.report else None
        # Python takes a stored module for current if it was changed within the same second.
        sys.dont_write_bytecode = True

        def load() -> Driven:
            definitions = load_definitions(module=self.module, file=self.file)
            where = self.module or self.file
            return of_definitions(
                definitions,
                where,
                instance,
                name=self.name,
                root=self.root,
                report_every=self.report_every,
            )

        first = load()
        folder = folder_of(self.module, self.file)
        return Reload(first, lambda: imported_again(folder, load), [folder])


def _serve(works: Worker, port: int, address: str) -> None:
    from dagster_streamtables.metrics import StreamTablesCollector
    from dagster_streamtables.metrics.health import serve_with_health
    from dagster_streamtables.orchestration.declare.expected import expected
    from dagster_streamtables.replication.lifecycle.replications import Replications

    logs = works.driven.logs
    collector = StreamTablesCollector(
        logs.monitor, lambda: map(expected, works.driven.examined), Replications(logs)
    )
    server = serve_with_health(collector, works.health, port=port, address=address)
    logger.info("serving http://%s:%d/health and /metrics", address, server.server_port)


def _until_stopped(runs: Worker) -> bool:
    def stop(number: int, frame: FrameType | None) -> None:
        runs.stop()
        signal.signal(number, signal.SIG_DFL)  # a second signal ends the process

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return runs.run()


def _log_to_stderr(log_format: LogFormat, *, verbose: bool) -> None:
    from dagster_streamtables.worker.lines import JsonLines

    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if log_format is LogFormat.JSON else text)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    logger.propagate = False


def _described(said: Heartbeat, alive: bool) -> Grid:
    about = said.about
    state = "alive" if alive else "stopped" if said.ended else "dead: its heartbeats are missed"
    return pairs(
        ("worker", f"{said.place}, {state}"),
        ("started", f"{said.started[:19].replace('T', ' ')}"),
        (
            "last heartbeat",
            f"{lasting(max(0.0, said.age(datetime.now(UTC))))} ago, one every {said.every:g} s",
        ),
        ("tables", str(len(said.tables))),
        ("refreshes", f"{about.get('refreshes', 0)}, and {about.get('failures', 0)} failures"),
        ("running", ", ".join(about.get("running", ()))),
        ("waiting", str(about.get("waiting") or "")),
        ("not loaded", str(about.get("not_loaded") or "")),
        ("broken", ", ".join(about.get("broken", ()))),
        ("not reported", str(about.get("not_reported") or "")),
        *((f"error of {name}", error) for name, error in about.get("errors", {}).items()),
    )
