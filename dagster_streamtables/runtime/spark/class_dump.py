"""The process that makes a class archive beside a running server, from the classes it has loaded.

It runs as a file, with only the standard library and psutil, as the supervisor that starts it. It
ends with the server, and leaves nothing then.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

_MAIN = "org.apache.spark.deploy.SparkSubmit"
_OWN = ("-XX:DumpLoadedClassList=", "-XX:SharedArchiveFile=")
_POLL_SECONDS = 0.5
_QUIET_SECONDS, _PATIENCE_SECONDS = 30.0, 600.0


def failure_of(archive: Path) -> Path:
    """The file that says why an archive could not be made."""
    return archive.with_suffix(".failure")


def make(classes: Path, archive: Path, server: psutil.Process) -> bool:
    """Make the archive, and delete those of other JARs. Returns whether it was made."""
    options = _java_options(server)
    if not options or not classes.is_file():
        return False
    listed, made = (archive.with_suffix(f".{os.getpid()}.{what}") for what in ("list", "making"))
    # The server still writes to it: its last line may be half a name.
    listed.write_text(classes.read_text().rpartition("\n")[0] + "\n")
    sharing = [f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={made}"]
    try:
        said = _run([*options, "-Xshare:dump", *sharing], server)
        if said is None:
            return False
        if said:
            failure_of(archive).write_text(said)
            return False
        made.replace(archive)
        for other in archive.parent.iterdir():
            if not other.name.startswith(archive.stem):
                other.unlink()
        return True
    finally:
        listed.unlink(missing_ok=True)
        made.unlink(missing_ok=True)


def wait_until_quiet(classes: Path, server: psutil.Process) -> None:
    """Return when the server has loaded no class for a while, or ended, or after ten minutes: on a
    slow machine, the first refreshes still run after a minute."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while server.is_running() and time.monotonic() < end and classes.is_file():
        if time.time() - classes.stat().st_mtime > _QUIET_SECONDS:
            return
        time.sleep(_POLL_SECONDS)


def _java_options(server: psutil.Process) -> list[str]:
    """The beginning of the server's command: an archive is only used with the same class path."""
    command = server.cmdline()
    if _MAIN not in command:
        return []
    return [each for each in command[: command.index(_MAIN)] if not each.startswith(_OWN)]


def _run(command: list[str], server: psutil.Process) -> str | None:
    """Empty if it succeeded, what it said if it failed, None if the server ended before it did."""
    with tempfile.TemporaryFile() as said:
        java = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            while java.poll() is None:
                if not server.is_running():
                    return None
                try:
                    java.wait(_POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if java.poll() is None:
                java.kill()
                java.wait()
        said.seek(0)
        text = said.read().decode(errors="replace")[-2000:]
        return "" if java.returncode == 0 else text or f"exit code {java.returncode}"


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("classes", type=Path)
    parser.add_argument("archive", type=Path)
    parser.add_argument("server", type=int)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.umask(0o077)
    os.nice(19)
    server = psutil.Process(given.server)
    wait_until_quiet(given.classes, server)
    make(given.classes, given.archive, server)


if __name__ == "__main__":
    _main()
