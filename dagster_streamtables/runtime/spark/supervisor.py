"""The process beside the local Spark server that starts it, watches it and stops it.

It belongs to no terminal and no parent, so the server outlives the program that happened to need
it first. It alone writes the state file: when the server has been started, when it answers, and
when it is gone. A lock that it holds for as long as it lives makes it the only one in its folder.

It is run as a file, with nothing but the standard library and psutil, so that it starts at once
and keeps running while the package around it is being edited.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

START_SECONDS = 120.0
STOP_SECONDS = 15.0
_POLL_SECONDS = 2.0


@dataclass(frozen=True)
class ServerState:
    """What the state file says: two processes, each with the second it was created in.

    The number of a process alone proves nothing, since the machine gives it to another program
    later.
    """

    pid: int
    pid_created: float
    supervisor: int
    supervisor_created: float
    port: int
    started: float
    token: str = field(default="", repr=False)
    """What the server asks of every client: whoever has it can do all that its owner can."""
    answers: bool = False

    @property
    def is_alive(self) -> bool:
        return len(self.processes()) == 2

    def processes(self) -> list[psutil.Process]:
        """Those of the two that live, the supervisor first."""
        named = ((self.supervisor, self.supervisor_created), (self.pid, self.pid_created))
        return [found for pid, created in named if (found := _living(pid, created))]


def read_state(folder: Path) -> ServerState | None:
    """What the state file says, or None if there is none that can be read."""
    try:
        return ServerState(**json.loads(_state_file(folder).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def heartbeat_file(folder: Path) -> Path:
    """The file whose time of change says when a program last asked for the server."""
    return folder / "heartbeat"


def stop_processes(processes: Sequence[psutil.Process]) -> None:
    """Asks them to end, and ends those that have not after `STOP_SECONDS`."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=STOP_SECONDS)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=STOP_SECONDS)


def supervise(folder: Path, port: int, idle_seconds: float, command: Sequence[str]) -> None:
    """Runs the server until it ends by itself, is idle, or this process is asked to end.

    The files of this process are its owner's alone. The server keeps the umask of who started it,
    since it writes that user's tables.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    theirs = os.umask(0o077)
    token = secrets.token_urlsafe(32)
    (folder / "server.log").unlink(missing_ok=True)  # an older one would keep its mode
    with (folder / "server.log").open("wb") as log:
        server = psutil.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            umask=theirs,
            # Other users see a command, and not an environment.
            env={**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": token},
        )
    try:
        state = _state_of(server, port, token)
        _write_state(folder, state)
        if _wait_until_it_listens(server, port):
            heartbeat_file(folder).touch()
            _write_state(folder, ServerState(**{**asdict(state), "answers": True}))
            _wait_until_idle(server, port, heartbeat_file(folder), idle_seconds)
    finally:
        # A second request to end must not cut this short and leave the server behind.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stop_processes([server])
        _state_file(folder).unlink(missing_ok=True)


def _wait_until_it_listens(server: psutil.Popen, port: int) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        # The port may belong to another program that was quicker; only the server's own counts.
        if _has_connection(server, port, psutil.CONN_LISTEN):
            return True
        time.sleep(0.05)
    return False


def _wait_until_idle(server: psutil.Popen, port: int, heartbeat: Path, idle_seconds: float) -> None:
    """Returns when the server ended, or nobody has asked for it nor talked to it for so long."""
    while server.poll() is None:
        # A refresh that runs for hours asks only once; an unused connection closes by itself
        # after gRPC's idle timeout of half an hour.
        if _has_connection(server, port, psutil.CONN_ESTABLISHED):
            heartbeat.touch()
        idle = time.time() - heartbeat.stat().st_mtime
        if idle >= idle_seconds:
            return
        with contextlib.suppress(subprocess.TimeoutExpired, psutil.TimeoutExpired):
            server.wait(min(_POLL_SECONDS, idle_seconds - idle))


def _has_connection(server: psutil.Popen, port: int, status: str) -> bool:
    try:
        connections = server.net_connections("tcp")
    except psutil.Error:
        return False
    return any(each.status == status and each.laddr.port == port for each in connections)


def _state_of(server: psutil.Popen, port: int, token: str) -> ServerState:
    me = psutil.Process()
    return ServerState(
        server.pid, server.create_time(), me.pid, me.create_time(), port, time.time(), token
    )


def _state_file(folder: Path) -> Path:
    return folder / "server.json"


def _write_state(folder: Path, state: ServerState) -> None:
    written = _state_file(folder).with_suffix(".writing")
    written.write_text(json.dumps(asdict(state)))
    written.replace(_state_file(folder))


def _living(pid: int, created: float) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
        # Two readings of one process differ by a little when the clock was set in between.
        same = abs(process.create_time() - created) < 2
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("idle_seconds", type=float)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    with (
        contextlib.suppress(Timeout),
        FileLock(given.folder / "supervisor.lock", mode=0o600, timeout=0),
    ):
        supervise(given.folder, given.port, given.idle_seconds, given.command)


if __name__ == "__main__":
    _main()
