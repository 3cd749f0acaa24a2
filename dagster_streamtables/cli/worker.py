"""Commands of the worker: run one, and show the one that runs."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.console import (
    NO,
    Commands,
    File,
    Folder,
    Json,
    Module,
    Root,
    app,
    errors_in_words,
    out,
    show_json,
)
from dagster_streamtables.cli.grid import Pairs, pairs
from dagster_streamtables.cli.lake_project import open_lake
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.observe.lease import Heartbeat, Heartbeats
from dagster_streamtables.runtime.spark.environment import variable

if TYPE_CHECKING:
    from dagster_streamtables.orchestration.code_location import Location
    from dagster_streamtables.worker.reload import Reload
    from dagster_streamtables.worker.workload import Workload

    Drive: TypeAlias = Callable[..., Workload]
    from dagster_streamtables.runtime.observe.table_status import TableDeclaration
    from dagster_streamtables.worker.loop import WorkerGroup


worker = Commands(help="Refresh what is due, within a second, beside Dagster or without it.")
app.add_typer(worker, name="worker", invoke_without_command=True)

_NAME = "streamtables"
Name = Annotated[
    str, typer.Option(help="Name of the resource of the tables, if there are several.")
]


@worker.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    module: Module = "",
    file: File = "",
    folder: Folder = "",
    root: Annotated[
        str, typer.Option(help="Folder or URI of the tables.", envvar="STREAMTABLES_ROOT")
    ] = "",
    workspace: Annotated[
        str, typer.Option("--workspace", "-w", help="A workspace.yaml: all of its code locations.")
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
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="Lines of text, or of JSON.")
    ] = "text",
    verbose: Annotated[bool, typer.Option(help="Log refreshes that found nothing, too.")] = False,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve /health and /metrics here."),
    ] = None,
    address: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Refresh what is due until stopped by SIGTERM or SIGINT.

    Give the definitions of a code location, a workspace, or a folder of .sql files and a root. Of
    definitions, the variables STREAMTABLES_TABLES and STREAMTABLES_ROOT mean nothing.
    """
    if context.invoked_subcommand is not None:
        return
    with errors_in_words():
        from dagster_streamtables.worker.warm_up import remember, start_early

        if module or file or workspace:
            folder, root = (
                _command_line_value(context, "folder"),
                _command_line_value(context, "root"),
            )
        place = DeclarationSource(module, file, workspace, folder, root, name, report, report_every)
        declared_in = " ".join((module, file, workspace, folder))
        start_early(declared_in, local=bool(folder) and not variable("STREAMTABLES_SPARK"))
        # The worker is the only command that needs it.
        from dagster_streamtables.worker.loop import Worker, WorkerGroup, WorkerSettings

        context.call_on_close(_log_to_stderr(log_format, verbose=verbose))
        settings = WorkerSettings(
            max_concurrent=max_concurrent,
            heartbeat=timedelta(seconds=heartbeat),
            grace=timedelta(seconds=grace),
        )
        found = place.reloads()
        remember(declared_in, [each.first for each in found])
        works = WorkerGroup([Worker(each.first, settings, reload=each.start()) for each in found])
        if port is not None:
            _serve(works, port, address)
        whole = _run_until_signal(works)
    if not whole:
        os._exit(1)  # threads that still refresh would be waited for


@worker.command()
def status(root: Root, name: Name = _NAME, as_json: Json = False) -> None:
    """Show the worker that refreshes the tables below a root. Exits with 3 if none is alive."""
    lake = open_lake(root)
    said = Heartbeats(lake.root, lake.storage_options, name).newest()
    alive = said is not None and said.seems_alive(datetime.now(UTC))
    if as_json:
        show_json({"alive": alive, "worker": said})
    else:
        out.print("No worker has ever run here." if said is None else _describe(said, alive))
    if not alive:
        raise typer.Exit(NO)


def _command_line_value(context: typer.Context, option: str) -> str:
    """The value of an option on the command line; empty if it is from a variable, which is set for
    all commands of a shell: definitions have a root of their own."""
    # By its name: newer versions of Typer have an enumeration of their own.
    source = context.get_parameter_source(option)
    by_variable = source is not None and source.name == "ENVIRONMENT"
    return "" if by_variable else context.params[option]


def _serve(works: WorkerGroup, port: int, address: str) -> None:
    from dagster_streamtables.declare.analysis import table_declaration
    from dagster_streamtables.metrics.collector import StreamTablesCollector, serve
    from dagster_streamtables.replication.lifecycle.replication_manager import Replications

    def list_expectations() -> list[TableDeclaration]:
        return [
            table_declaration(table)
            for each in works.workers
            for table in each.driven.nodes.examined
        ]

    logs = works.workers[0].driven.logs
    if roots := sorted({each.driven.logs.root for each in works.workers} - {logs.root}):
        raise InvalidDefinition(
            "a worker with a port has tables below several roots",
            where=", ".join([logs.root, *roots]),
            why="no metric tells the root of a table",
            fix="run a worker for each root, or leave out --port",
        )
    collector = StreamTablesCollector(logs.monitor, list_expectations, Replications(logs))
    server, _ = serve(collector, works.health, port=port, address=address)
    logger.info("serving http://%s:%d/health and /metrics", address, server.server_port)


def _run_until_signal(runs: WorkerGroup) -> bool:
    def stop(number: int, frame: FrameType | None) -> None:
        runs.stop()
        signal.signal(number, signal.SIG_DFL)  # a second signal ends the process

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return runs.run()


def _log_to_stderr(log_format: str, *, verbose: bool) -> Callable[[], None]:
    """Log to stderr from now on, until the function that is returned is called."""
    from dagster_streamtables.worker.worker_log import JsonFormatter

    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if log_format == "json" else text)
    logger.addHandler(handler)
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    logger.propagate = False

    def restore() -> None:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate

    return restore


def _describe(said: Heartbeat, alive: bool) -> Pairs:
    about = said.about
    state = "alive" if alive else "stopped" if said.ended else "dead: its heartbeats are missed"
    return pairs(
        ("worker", f"{said.place}, {state}"),
        ("started", f"{said.started[:19].replace('T', ' ')}"),
        (
            "last heartbeat",
            f"{duration(max(0.0, said.age(datetime.now(UTC))))} ago, one every {said.every:g} s",
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


@dataclass(frozen=True)
class DeclarationSource:
    """The options of a worker that name its declarations.

    Raises:
        InvalidDefinition: No place is named, or several.
    """

    module: str
    file: str
    workspace: str
    folder: str
    root: str
    name: str
    report: bool
    report_every: float

    def __post_init__(self) -> None:
        named = (self.folder, self.module, self.file, self.workspace)
        if len([each for each in named if each]) != 1:
            raise InvalidDefinition(
                "a worker needs declarations from one place",
                fix="give one of --module, --file, --workspace, and --tables with --root",
            )

    def reloads(self) -> list[Reload]:
        """What each worker drives: one for each resource of stream tables. Raises
        `InvalidDefinition` if there is nothing to drive."""
        if self.folder:
            return [self._of_folder()]
        from dagster_streamtables.orchestration.code_location import Location
        from dagster_streamtables.worker.location import instance_to_report_to, of_definitions

        # Python takes a stored module for current if it was changed within the same second.
        sys.dont_write_bytecode = True
        drive = partial(
            of_definitions,
            instance=instance_to_report_to() if self.report else None,
            root=self.root,
            report_every=self.report_every,
        )
        if self.workspace:
            return self._of_workspace(drive)
        location = Location(self.module, self.file)
        return [_reload(location, location.load(), self.name, drive)]

    def _of_folder(self) -> Reload:
        from dagster_streamtables.worker.lake_workload import Registry, of_folder
        from dagster_streamtables.worker.reload import Reload

        def load() -> Workload:
            return of_folder(self.folder, open_lake(self.root, ask_spark=True))

        first = load()
        return Reload(first, load, [Path(self.folder)], beside=Registry(first.logs).stamps)

    def _of_workspace(self, drive: Drive) -> list[Reload]:
        from dagster_streamtables.orchestration.automation.refresh_sensor import targets_of
        from dagster_streamtables.orchestration.code_location import locations_of

        found: list[Reload] = []
        for location in locations_of(self.workspace):
            definitions = location.load()
            names = [each.resource_key for each in targets_of(definitions)]
            names = [each for each in names if self.name in ("", each)]
            found += [_reload(location, definitions, name, drive) for name in names]
            if not names:
                logger.info("%s has no refresh sensor that is meant", location.where)
        if not found:
            raise InvalidDefinition(
                "no code location of the workspace has a matching refresh sensor",
                where=self.workspace,
                why="a worker drives what the sensors would refresh",
                fix="use build_definitions or the component, and give --name as there, or not",
            )
        return found


def _reload(location: Location, definitions: Any, name: str, drive: Drive) -> Reload:
    from dagster_streamtables.worker.reload import Reload, folder_of, reimport

    folder = folder_of(location.module, location.file)

    def again() -> Workload:
        return reimport(folder, lambda: drive(location.load(), location.where, name=name))

    return Reload(drive(definitions, location.where, name=name), again, [folder])
