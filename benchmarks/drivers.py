"""What drives the refreshes of a benchmark: a worker, or the sensor and runs of `dagster dev`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from dagster_streamtables.runtime.spark.local_server import server_status

WORKER, SENSOR = "worker", "sensor"
_DEFINITIONS = """
from dagster_streamtables import SensorSettings, StreamTablesResource, build_definitions
defs = build_definitions(
    folder={tables!r},
    resource=StreamTablesResource(root={root!r}),
    sensor=SensorSettings(interval_seconds=1),
    min_schedule_seconds=0,
)
"""


@dataclass(frozen=True)
class Driver:
    """A running driver, with all that it started."""

    process: psutil.Popen

    def busy(self) -> float:
        """Seconds of processor time of all its processes that live, and of the local Spark."""
        spark = server_status()
        # A server that the driver started is below it, one that it found is not.
        found = {self.process, *self._below()}
        found |= set() if spark is None else {psutil.Process(spark.pid)}
        return sum(map(_spent, found))

    def stop(self) -> None:
        """End it, and wait until it has ended."""
        below = self._below()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        for each in below:  # those of dagster dev end by themselves, but later
            with contextlib.suppress(psutil.Error):
                each.terminate()
        psutil.wait_procs(below, timeout=30)

    def _below(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            return self.process.children(recursive=True)
        return []


def start(kind: str, folder: Path, tables: Path, root: Path) -> Driver:
    """Start a driver of the tables of a folder; its log is in `folder`."""
    command = [*_command(kind, folder, tables, root)]
    place = {"DAGSTER_HOME": str(folder / "dagster")}
    with (folder / f"{kind}.log").open("w") as log:
        started = psutil.Popen(
            command,
            stdout=log,
            stderr=log,
            env={**os.environ, **place},
            # `dagster dev` ends its children on SIGINT, which a shell may have made it ignore.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    return Driver(started)


def _command(kind: str, folder: Path, tables: Path, root: Path) -> Iterator[str]:
    yield from (sys.executable, "-m")
    if kind == WORKER:
        yield from ("dagster_streamtables.cli", "worker", "--root", str(root))
        yield from ("--tables", str(tables))
        return
    (folder / "dagster").mkdir(exist_ok=True)
    (folder / "dagster/dagster.yaml").write_text("telemetry: {enabled: false}\n")
    definitions = folder / "definitions.py"
    definitions.write_text(_DEFINITIONS.format(tables=str(tables), root=str(root)))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    yield from ("dagster", "dev", "-f", str(definitions), "-p", str(port))


def _spent(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        spent = process.cpu_times()
        # Runs of the sensor end and are waited for: they count as children.
        return spent.user + spent.system + spent.children_user + spent.children_system
    return 0.0
