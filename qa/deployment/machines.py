"""`Machines`: the parts of a deployment, each in host, process and mount name spaces of its own.

So a part has another host name than the others, sees none of their processes, and takes its
children along when it is killed, as a container does. They share the network and the files.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from qa.ports import HOST, answers

_START_SECONDS = 180.0


@dataclass(frozen=True)
class Part:
    """A part of the deployment."""

    name: str
    command: str
    """As the documentation has it."""
    port: int | None = None
    """Where it answers; None if nowhere."""


@dataclass
class Machines:
    folder: Path
    """What all see: the project. Each part has its own `DAGSTER_HOME` below it."""
    environment: Mapping[str, str]
    """What the documentation says to set, but for `DAGSTER_HOME`."""
    instance: str
    """The text of `dagster.yaml`."""
    parts: Mapping[str, Part]
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _started: dict[str, int] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start a part, as a new machine: its host name has a number of its own."""
        part = self.parts[name]
        number = self._started[name] = self._started.get(name, 0) + 1
        machine = f"{name}-{number}"
        home = self.folder / "homes" / machine
        home.mkdir(parents=True)
        (home / "dagster.yaml").write_text(self.instance)
        hosts = home / "hosts"
        hosts.write_text("".join(f"{HOST} {each}\n" for each in ("localhost", *self.parts)))
        inside = (
            f"mount --bind {shlex.quote(str(hosts))} /etc/hosts && hostname {machine}"
            f" && exec {part.command}"
        )
        own = [
            "setpriv", "--pdeathsig", "KILL",
            "unshare", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
        ]  # fmt: skip
        with (self.folder / f"{machine}.log").open("wb") as log:
            self._running[name] = subprocess.Popen(
                [*own, "sh", "-c", inside],
                cwd=self.folder,
                env={**os.environ, **self.environment, "DAGSTER_HOME": str(home)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        if part.port is not None:
            self._await(name, part.port)

    def kill(self, name: str) -> None:
        """The machine is gone, with all that runs on it."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def kill_runs(self, name: str) -> int:
        """Kill the processes that execute runs beside a code server. Returns their number."""
        server = psutil.Process(self._running[name].pid).children()[0]
        runs = [each for each in server.children(recursive=True) if _executes_run(each)]
        for each in runs:
            each.kill()
        return len(runs)

    def stop(self) -> None:
        for name in list(self._running):
            self.kill(name)

    def _await(self, name: str, port: int) -> None:
        if not answers(port, _START_SECONDS, self._running[name]):
            said = (self.folder / f"{name}-{self._started[name]}.log").read_text()
            raise RuntimeError(f"{name} does not answer at port {port}:\n{said}")


def _executes_run(process: psutil.Process) -> bool:
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:
        return False
