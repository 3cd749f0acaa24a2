"""The demo: `python -m example_defs.demo` replays the year and shows it in Dagster's UI.

Five programs run side by side until Ctrl-C: the replay, the local Spark server, `dagster dev`, the
worker that refreshes the stream tables, and the PostgreSQL server of the second code location, the
org chart. What they write is under `.demo/`, and a demo that was stopped goes on where it was.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import psutil
import typer

from dagster_streamtables import Lake, Replications
from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.spark.local_server import ensure_server, stop_server
from example_defs.org_chart.postgres import Database, started
from example_defs.org_chart.replication import org_chart
from example_defs.replay import Replay

PROJECT = Path(__file__).resolve().parent.parent
_FOLDER = PROJECT / ".demo"
_STOP_SECONDS = 30.0
TABLES = PROJECT / "example_defs" / "tables"
RENAME = "UPDATE departments SET name = 'R&D' WHERE id = 2"
"""What the org chart's stream tables then follow."""
FOUND = "INSERT INTO departments VALUES (8, 'Legal', 1)"
"""A division by zero: nobody works there, and `org/pay_per_head` divides by the heads."""
HIRE = "INSERT INTO employees (name, department_id, salary) VALUES ('Heidi', 8, 105000)"
"""What mends it."""


def main(
    port: Annotated[int, typer.Option(help="Of the UI; 0 takes a free one.")] = 0,
    pace: Annotated[float, typer.Option(help="Seconds for which a replayed step lasts.")] = 30,
    step_hours: Annotated[float, typer.Option(help="Replayed hours in a step.")] = 24,
    start: Annotated[
        datetime, typer.Option(help="Up to where the sources have a history at once (UTC).")
    ] = datetime(2013, 4, 1),
    fresh: Annotated[bool, typer.Option(help="Begin the year again.")] = False,
    browser: Annotated[bool, typer.Option(help="Open the UI when it answers.")] = False,
    worker: Annotated[
        bool, typer.Option(help="Refresh by a worker; without, Dagster's sensors start runs.")
    ] = True,
    default_instance: Annotated[
        bool, typer.Option(help="Run on Dagster's own settings instead of the demo's.")
    ] = False,
) -> None:
    """Replays flights of 2013 while Dagster keeps the stream tables over them fresh."""
    os.environ |= _environment()
    if fresh:
        stop_server()  # one that a killed demo left keeps its state in that folder
        shutil.rmtree(_FOLDER, ignore_errors=True)
    stopping = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stopping.set())
    try:
        with ExitStack() as running:
            _create_home(default_instance)
            database = running.enter_context(started(_FOLDER / "postgres"))
            os.environ["STREAMTABLES_DEMO_POSTGRES"] = database.address
            _prepare(running, start.replace(tzinfo=UTC), timedelta(hours=step_hours))
            address = f"http://127.0.0.1:{port or _free_port()}"
            steps = ("--pace", str(pace), "--step-hours", str(step_hours), "--tables", str(TABLES))
            welcome = _welcome(address, database)
            _run(running, stopping, address, welcome, steps, browser=browser, worker=worker)
            print("stopping", flush=True)
    except EnvironmentProblem as problem:
        print(problem, file=sys.stderr)
        raise typer.Exit(1) from None


def _run(
    running: ExitStack,
    stopping: threading.Event,
    address: str,
    welcome: str,
    steps: tuple[str, ...],
    *,
    browser: bool,
    worker: bool,
) -> None:
    """Starts everything, and returns when it is time to stop all that `running` holds."""
    if worker:
        # Each of the two code locations: on two cores, more would only wait for one another.
        drive = ("worker", "-w", "workspace.yaml", "--max-concurrent", "2")
        told = _FOLDER / "worker.log"
        running.enter_context(
            _program("dagster_streamtables.cli", *drive, stop=signal.SIGTERM, log=told)
        )
    log = _FOLDER / "dagster.log"
    dev = ("dev", "-w", "workspace.yaml", "-p", address.rpartition(":")[2])
    dagster = running.enter_context(_program("dagster", *dev, stop=signal.SIGINT, log=log))
    while not stopping.wait(0.5) and not answers(address):
        if dagster.poll() is not None:
            raise EnvironmentProblem("dagster dev ended while it was starting", where=_end(log))
    if stopping.is_set():
        return
    print(welcome, flush=True)
    if browser:
        webbrowser.open(address)
    lake = ("--root", os.environ["STREAMTABLES_DEMO_ROOT"])
    # Killed in the middle of a commit, it goes on with that commit the next time.
    running.enter_context(_program("example_defs.replay", *lake, *steps, stop=signal.SIGTERM))
    while not stopping.wait(1):
        if dagster.poll() is not None:
            raise EnvironmentProblem("dagster dev ended", where=_end(log))


def _welcome(address: str, database: Database) -> str:
    return (
        f"\n    {address}\n\n"
        "The org chart's tables are in PostgreSQL. Rename a department, and watch four levels of\n"
        f"stream tables follow, at {address}/locations/org_chart/asset-groups/org_chart :\n\n"
        f"    {database.shell(RENAME)}\n\n"
        "Found a department without people, and org/pay_per_head fails and keeps its rows, and\n"
        "its check reflects_its_sources says why; hire somebody, and it goes on:\n\n"
        f"    {database.shell(FOUND)}\n"
        f"    {database.shell(HIRE)}\n\n"
        f"Ctrl-C stops everything; the logs are in {_FOLDER}: dagster.log and worker.log\n"
    )


def _prepare(running: ExitStack, start: datetime, step: timedelta) -> None:
    """What the programs need to find: a Spark server, and the source tables."""
    print(f"starting Spark and playing up to {start:%B %-d} into the source tables", flush=True)
    running.callback(stop_server)
    with ThreadPoolExecutor() as pool:
        server = pool.submit(ensure_server)
        root = os.environ["STREAMTABLES_DEMO_ROOT"]
        Replay(root, step=step).advance(start)
        Replications(Lake(root)).refresh(org_chart(os.environ["STREAMTABLES_DEMO_POSTGRES"]))
        server.result()


def _create_home(default_instance: bool) -> None:
    """Dagster's settings, and its databases, which several of its processes would otherwise make at
    once."""
    from dagster import DagsterInstance

    home = Path(os.environ["DAGSTER_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    if default_instance:
        (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    else:
        shutil.copy(Path(__file__).with_name("dagster.yaml"), home)

    with DagsterInstance.get() as instance:
        instance.get_runs_count()
        instance.all_instigator_state()


@contextmanager
def _program(
    module: str, *arguments: str, stop: signal.Signals, log: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program in a process group of its own, which ends with the block."""
    with ExitStack() as files:
        out = files.enter_context(log.open("ab")) if log else None
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            # `dagster dev` ends its children on SIGINT, which a shell may have made it ignore.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        yield process
    finally:
        _stop(process, stop)


def _stop(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Asks a program to end, and ends what is left of it and its children."""
    if process.poll() is None:
        left = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(how)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _, alive = psutil.wait_procs(left, timeout=5)
        for each in alive:
            each.kill()


def _environment() -> Mapping[str, str]:
    """Folders of the demo's own; the Spark server is the one of the project under `make`."""
    return {
        "DAGSTER_HOME": str(_FOLDER / "dagster"),
        "STREAMTABLES_HOME": os.environ.get("STREAMTABLES_HOME") or str(_FOLDER / "spark"),
        "STREAMTABLES_DEMO_ROOT": os.environ.get("STREAMTABLES_DEMO_ROOT") or str(_FOLDER / "lake"),
    }


def answers(address: str) -> bool:
    """Whether a Dagster webserver is there."""
    try:
        with urllib.request.urlopen(f"{address}/server_info", timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _end(log: Path, lines: int = 10) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


if __name__ == "__main__":
    typer.run(main)
