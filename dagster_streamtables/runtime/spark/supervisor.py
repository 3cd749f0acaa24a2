"""The process that starts, watches and stops the local Spark server.

It belongs to no terminal and no parent, so the server outlives the program that started it. It
alone writes the state file: when the server has started, when it answers, and when it has ended. It
holds a lock, so its folder has only one supervisor.

It runs as a file, with only the standard library, psutil and filelock, so that it starts at once
and keeps running while the package is edited.
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
LATER_SECONDS = 60.0
_POLL_SECONDS = 2.0


@dataclass(frozen=True)
class ServerState:
    """The contents of the state file: two processes, each with its birth."""

    pid: int
    pid_birth: str
    supervisor: int
    supervisor_birth: str
    port: int
    started: float
    token: str = field(default="", repr=False)
    """The server requires it of every client: whoever has it can do all that its owner can."""
    answers: bool = False

    @property
    def is_alive(self) -> bool:
        return len(self.processes()) == 2

    @property
    def server(self) -> psutil.Process | None:
        """The server, even if its supervisor was killed; None if it has ended."""
        return _living(self.pid, self.pid_birth)

    def processes(self) -> list[psutil.Process]:
        """The living ones of the two, the supervisor first."""
        named = ((self.supervisor, self.supervisor_birth), (self.pid, self.pid_birth))
        return [found for pid, born in named if (found := _living(pid, born))]


def birth(pid: int) -> str | None:
    """A text that distinguishes a process from later ones of the same number; None if it ended.

    On Linux, the id of the system's start and the ticks since then. psutil's time of birth would
    change whenever the clock is set, as after a virtual machine was paused.

    Raises:
        psutil.Error: The system does not provide it.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return _birth_on_linux(pid) if psutil.LINUX else f"{process.create_time():.3f}"
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return None


def _birth_on_linux(pid: int) -> str:
    # The name of the program, in parentheses, may contain spaces and parentheses.
    _, _, fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
    started = Path("/proc/sys/kernel/random/boot_id")
    return f"{started.read_text()[:8] if started.exists() else ''}.{fields.split()[19]}"


def read_state(folder: Path) -> ServerState | None:
    """The contents of the state file; None if it is missing or cannot be read."""
    try:
        return ServerState(**json.loads(_state_file(folder).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def heartbeat_file(folder: Path) -> Path:
    """The file whose modification time is when a program last used the server."""
    return folder / "heartbeat"


def only_one(folder: Path, wait: float = 0) -> FileLock:
    """The lock that a supervisor holds throughout, with a time limit in seconds."""
    return FileLock(folder / "supervisor.lock", mode=0o600, timeout=wait)


def stop_processes(processes: Sequence[psutil.Process]) -> None:
    """Terminate the processes, and kill those that have not ended after `STOP_SECONDS`."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=STOP_SECONDS)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=STOP_SECONDS)


class Later:
    """A command that runs once beside the server, after it has answered for a minute."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._at = time.monotonic() + LATER_SECONDS
        self._process: psutil.Popen | None = None

    def turn(self, server: psutil.Popen) -> None:
        """Start it, if it is time."""
        if self._command and self._process is None and time.monotonic() >= self._at:
            null = subprocess.DEVNULL
            command = [*self._command, str(server.pid)]
            self._process = psutil.Popen(command, stdin=null, stdout=null, stderr=null)
        elif self._process is not None:
            self._process.poll()  # clears its entry in the process table

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            stop_processes([self._process])


def supervise(
    folder: Path,
    port: int,
    idle_seconds: float,
    command: Sequence[str],
    later: Sequence[str] = (),
) -> None:
    """Run the server until it ends, is idle, or this process is terminated.

    Only the owner may read the files of this process. The server keeps the umask of its starter,
    since it writes that user's tables. `later` is a command to run beside it, with its process id
    as the last argument.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    theirs = os.umask(0o077)
    token = secrets.token_urlsafe(32)
    (folder / "server.log").unlink(missing_ok=True)  # an existing file would keep its mode
    with (folder / "server.log").open("wb") as log:
        server = psutil.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            umask=theirs,
            # Other users can see a command line, but not an environment.
            env={**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": token},
        )
    beside = Later(later)
    try:
        me = os.getpid()
        births = birth(server.pid) or "", birth(me) or ""
        state = ServerState(server.pid, births[0], me, births[1], port, time.time(), token)
        _write_state(folder, state)
        if _wait_until_it_listens(server, port):
            heartbeat_file(folder).touch()
            _write_state(folder, ServerState(**{**asdict(state), "answers": True}))
            _wait_until_idle(server, port, heartbeat_file(folder), idle_seconds, beside)
    finally:
        # A second signal must not interrupt this and leave the server running.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        beside.end()
        stop_processes([server])
        _state_file(folder).unlink(missing_ok=True)


def _wait_until_it_listens(server: psutil.Popen, port: int) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        # Another program may have taken the port first; only the server's own socket counts.
        if _has_connection(server, port, psutil.CONN_LISTEN):
            return True
        time.sleep(0.05)
    return False


def _wait_until_idle(
    server: psutil.Popen, port: int, heartbeat: Path, idle_seconds: float, beside: Later
) -> None:
    """Return when the server has ended, or was neither requested nor connected for a time."""
    while server.poll() is None:
        beside.turn(server)
        # A refresh that runs for hours touches the heartbeat only once, but stays connected; gRPC
        # closes an unused connection after half an hour.
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


def _state_file(folder: Path) -> Path:
    return folder / "server.json"


def _write_state(folder: Path, state: ServerState) -> None:
    written = _state_file(folder).with_suffix(".writing")
    written.write_text(json.dumps(asdict(state)))
    written.replace(_state_file(folder))


def _living(pid: int, born: str) -> psutil.Process | None:
    try:
        return psutil.Process(pid) if birth(pid) == born else None
    except psutil.Error:
        return None


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("idle_seconds", type=float)
    parser.add_argument("later", type=json.loads, help="a command, as JSON")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    with contextlib.suppress(Timeout), only_one(given.folder):
        supervise(given.folder, given.port, given.idle_seconds, given.command, given.later)


if __name__ == "__main__":
    _main()
