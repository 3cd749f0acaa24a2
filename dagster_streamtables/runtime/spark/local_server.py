"""One warm Spark Connect server on this machine, shared by every program of its user.

A JVM takes ten seconds to its first result and a minute to full speed; a refresh takes one second.
So the first program that needs the server starts it, others find it through a state file in
``$STREAMTABLES_HOME``, and it stops by `stop_server` or after ``STREAMTABLES_IDLE_MINUTES`` (60)
without use. Its memory is ``STREAMTABLES_SPARK_MEMORY`` (2g). It listens on 127.0.0.1 only, where
every user of the machine may connect, and answers only clients with its token. Each start creates a
new token in the state file, which only the owner of the folder can read.

A start loads and verifies 20,000 classes. From a class archive Java maps them instead, which halves
the work until the first row. The first server of a folder lists the classes that it loads; once it
loads no more, its supervisor archives them at the lowest priority, for later servers. Java checks
that an archive fits its build and the path, size and time of each JAR, and otherwise ignores it.
The name of an archive has a hash of the same, so another one is made then.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from filelock import FileLock, Timeout

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.spark import class_dump, supervisor
from dagster_streamtables.runtime.spark.environment import (
    home,
    lock,
    memory_bytes,
    temporary,
    variable,
)
from dagster_streamtables.runtime.spark.jars import (
    check_java,
    class_path,
    jars_of_spark,
    spark_folder,
)
from dagster_streamtables.runtime.spark.settings import (
    CONNECT_SETTINGS,
    driver_memory,
    spark_settings,
)
from dagster_streamtables.runtime.spark.supervisor import ServerState, read_state, stop_processes

_TRIES = 3


@dataclass(frozen=True)
class ServerStatus:
    """The current state of the local Spark server."""

    pid: int
    address: str
    started: datetime
    memory_bytes: int
    """Resident memory of the server's process, including the JVM itself."""
    idle_seconds: float
    """Time since a program last opened a session or was connected."""
    log: Path
    supervised: bool
    """False if its supervisor was killed: it then never stops when idle. The next program that
    needs a server replaces it."""


def ensure_server() -> str:
    """The address of the local Spark server, ``sc://127.0.0.1:<port>``; starts it if necessary.

    Open it with `open_session`, which finds the token; for any other client, see `key_of`.

    Takes a millisecond if the server runs, otherwise five to ten seconds.

    Raises:
        EnvironmentProblem: There is no Java, Delta's JARs cannot be downloaded, or the server ends
            or does not answer; the message then shows the end of its log.
    """
    folder = home()
    supervisor.heartbeat_file(folder).touch(mode=0o600)
    state = read_state(folder)
    if state is None or not (state.answers and state.token and state.is_alive):
        with _lock(folder):
            state = _running(folder) or _start(folder)
    return _address(state)


def server_status() -> ServerStatus | None:
    """The server of this folder; None if none runs."""
    folder = home()
    state = read_state(folder)
    server = None if state is None else state.server
    if state is None or server is None:
        return None
    try:
        memory = server.memory_info().rss
    except psutil.NoSuchProcess:
        return None
    return ServerStatus(
        pid=state.pid,
        address=_address(state),
        started=datetime.fromtimestamp(state.started, UTC),
        memory_bytes=memory,
        idle_seconds=max(0.0, time.time() - supervisor.heartbeat_file(folder).stat().st_mtime),
        log=_log(folder),
        supervised=state.is_alive,
    )


def stop_server() -> bool:
    """Stop the server and wait until it has ended; False if none was running.

    Raises:
        EnvironmentProblem: One runs that its state file does not name.
    """
    folder = home()
    with _lock(folder):
        state = read_state(folder)
        was_running = state is not None and state.server is not None
        _clear_away(folder, state)
        return was_running


@dataclass(frozen=True)
class ServerKey:
    """The port and the token of the local server."""

    port: int
    token: str = field(repr=False)

    @property
    def address(self) -> str:
        """For Spark's own clients, which send a token without TLS only to this host."""
        return f"sc://localhost:{self.port}/;token={self.token}"


def key_of(address: str) -> ServerKey | None:
    """The key of the server at an address; None if it is not the local server."""
    parts, state = urlsplit(address), read_state(home())
    here = parts.hostname in ("127.0.0.1", "localhost")
    if state is None or not here or parts.port != state.port or not state.is_alive:
        return None
    return ServerKey(state.port, state.token)


# The functions below take their folder as an argument: a program may name another one meanwhile, as
# tests do, and a lock of this folder must not permit to delete files in that one.


_WIDE_POINTERS = 32 * 2**30
"""From this heap on, Java lays out its objects in another way."""


@dataclass(frozen=True)
class ClassArchive:
    """The files of one archive, which need not exist."""

    folder: Path
    key: str

    @property
    def archive(self) -> Path:
        return self.folder / f"{self.key}.jsa"

    @property
    def classes(self) -> Path:
        """The names of the classes that a server has loaded."""
        return self.folder / f"{self.key}.classlist"

    @property
    def failure(self) -> Path:
        """Why the archive could not be made; it is not tried again."""
        return class_dump.failure_of(self.archive)

    def java_options(self) -> list[str]:
        """Java's options to use the archive, or to list the classes for it."""
        if self.archive.is_file():
            return [f"-XX:SharedArchiveFile={self.archive}"]
        if self.failure.is_file():
            return []
        self.folder.mkdir(mode=0o700, exist_ok=True)
        return [f"-XX:DumpLoadedClassList={self.classes}"]

    def making(self) -> list[str]:
        """The command that makes the archive, but for the server's process id at its end; empty if
        it exists or cannot be made."""
        if self.archive.is_file() or self.failure.is_file():
            return []
        return [sys.executable, "-P", class_dump.__file__, str(self.classes), str(self.archive)]

    def discard(self) -> bool:
        """Delete the archive. Returns whether there was one."""
        was = self.archive.is_file()
        self.archive.unlink(missing_ok=True)
        return was


def class_archive(folder: Path, java: Path, jars: Sequence[Path]) -> ClassArchive | None:
    """The archive of a folder's server, for a Java and all JARs; None if it should have none."""
    if not variable("STREAMTABLES_CLASS_ARCHIVE"):
        return None
    wide = memory_bytes(driver_memory()) >= _WIDE_POINTERS
    about = [str(wide), os.environ.get("SPARK_CONF_DIR", ""), *_stamps([*_java(java), *jars])]
    key = hashlib.sha256("\n".join(about).encode()).hexdigest()[:16]
    return ClassArchive(folder / "classes", key)


def _java(folder: Path) -> Iterator[Path]:
    for place in ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/java"):
        if (folder / place).is_file():
            yield folder / place


def _stamps(files: Sequence[Path]) -> Iterator[str]:
    for file in files:
        about = file.stat() if file.exists() else None
        yield f"{file} {about and (about.st_size, about.st_mtime_ns)}"


def server_command(folder: Path, port: int, java_options: Sequence[str]) -> list[str]:
    """The command of the server, which becomes the process of Java."""
    options = [f"-Djava.io.tmpdir={temporary(folder)}", *java_options]
    settings = {
        **spark_settings(),
        **CONNECT_SETTINGS,
        "spark.local.dir": str(temporary(folder)),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # The driver also listens on two ports for executors, which accept serialized Java objects:
        # without authentication, any user could run code. Spark creates the key.
        "spark.authenticate": "true",
        # Libraries of the JVM unpack themselves, and sessions store files, in Java's temporary one.
        "spark.driver.defaultJavaOptions": " ".join(map(_java_word, options)),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    confs = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    return [
        str(spark_folder() / "bin" / "spark-submit"),
        "--class=org.apache.spark.sql.connect.service.SparkConnectServer",
        "--name=streamtables",
        "--master=local[*]",
        f"--driver-memory={driver_memory()}",
        # Not by `spark.jars`: Java archives only classes of the class path.
        f"--driver-class-path={os.pathsep.join(map(str, class_path()))}",
        *confs,
        "spark-internal",
    ]


def server_environment(java: Path) -> dict[str, str]:
    """This program's environment, without variables that would change what spark-submit does."""
    theirs = ("PYSPARK_", "SPARK_REMOTE", "SPARK_CONNECT_", "SPARK_LOCAL_", "SPARK_API_MODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    ours = {"JAVA_HOME": str(java), "SPARK_HOME": str(spark_folder())}
    # Without a local IP, Spark looks up the machine's name, which may take long.
    return kept | ours | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def _java_word(option: str) -> str:
    """One word of Java's options, which Spark splits at blanks and quotes.

    >>> print(_java_word('-Dfolder=/my "own" folder'))
    "-Dfolder=/my \\"own\\" folder"
    """
    return '"' + re.sub(r'(["\\])', r"\\\1", option) + '"'


def _running(folder: Path) -> ServerState | None:
    """The running server, once it answers; None if missing, or if it ends while starting."""
    while (state := read_state(folder)) is not None and state.token and state.is_alive:
        if state.answers:
            return state
        time.sleep(0.05)
    return None


def _start(folder: Path) -> ServerState:
    """Start the server; try again if another program took its port in the meantime."""
    _clear_away(folder, read_state(folder))
    java = check_java()
    archive = class_archive(folder, java, [*class_path(), *jars_of_spark()])
    for _ in range(_TRIES):
        supervising = _supervise(folder, java, archive)
        while supervising.is_alive():
            if state := _running(folder):
                return state
            time.sleep(0.05)
        taken = "Address already in use" in _log_end(folder)
        # Java should ignore an archive that does not fit, but nothing may depend on that.
        if not taken and not (archive is not None and archive.discard()):
            break
    raise EnvironmentProblem(
        "the local Spark server ended while it was starting",
        where=_log_end(folder),
        why=f"its log is {_log(folder)}",
        fix="if there was too little memory, set STREAMTABLES_SPARK_MEMORY, for example to 1g; "
        "to use your own Spark, set STREAMTABLES_SPARK to its address",
    )


def idle_minutes() -> float:
    """Minutes without use after which the server stops."""
    return variable("STREAMTABLES_IDLE_MINUTES")


def _supervise(folder: Path, java: Path, archive: ClassArchive | None) -> threading.Thread:
    """Start the supervisor; the thread lives as long as it does."""
    port, idle_seconds = _free_port(), 60 * idle_minutes()
    later = json.dumps([] if archive is None else archive.making())
    command = server_command(folder, port, [] if archive is None else archive.java_options())
    arguments = [str(folder), str(port), str(idle_seconds), later, "--", *command]
    # -P keeps this folder off the path, where a module might hide one of the standard library.
    process = subprocess.Popen(
        [sys.executable, "-P", supervisor.__file__, *arguments],
        cwd=folder,
        env=server_environment(java),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # Waiting for an ended child clears its entry in the process table.
    waiting = threading.Thread(target=process.wait, daemon=True)
    waiting.start()
    return waiting


def _clear_away(folder: Path, state: ServerState | None) -> None:
    """End the remaining processes of a server, and delete the files that a killed one leaves.

    Raises:
        EnvironmentProblem: A supervisor lives that no readable state names, so that the files of
            its server are in use.
    """
    if state is not None:
        *supervising, last = state.processes() or [None]
        for process in (*supervising, last):
            if process is not None:
                stop_processes([process])
    try:
        # A supervisor deletes its state shortly before it ends.
        with supervisor.only_one(folder, wait=2):
            (folder / "server.json").unlink(missing_ok=True)
            shutil.rmtree(temporary(folder), ignore_errors=True)
    except Timeout:
        raise EnvironmentProblem(
            "a local Spark server runs that its state file does not name",
            where=str(folder),
            why="supervisor.lock is held, and server.json is missing or of another version",
            fix="end its process, whose command line has supervisor.py and this folder, or name "
            "another folder in STREAMTABLES_HOME",
        ) from None
    for made in (temporary(folder), folder / "warehouse"):
        made.mkdir(mode=0o700, exist_ok=True)


def _address(state: ServerState) -> str:
    return f"sc://127.0.0.1:{state.port}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _log(folder: Path) -> Path:
    return folder / "server.log"


def _log_end(folder: Path) -> str:
    with contextlib.suppress(OSError):
        return "\n".join(_log(folder).read_text(errors="replace").splitlines()[-5:])
    return ""


def _lock(folder: Path) -> FileLock:
    """The lock under which the server is started and stopped."""
    return lock("server.lock", folder=folder)
