"""`python -m qa.log_store`: compile the log store for S3.

The JAR is part of the wheel, so that a user needs no compiler. Its manifest has the digest of its
source, and the compiler; the same compiler makes the same bytes again.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path

from dagster_streamtables.runtime.spark.jars import check_java, delta_jars, jars_of_spark
from dagster_streamtables.runtime.spark.log_store import JAR, SOURCE

_RELEASE = "17"
_NEEDED = ("delta-storage", "hadoop-client-api")
_WHEN = (2026, 1, 1, 0, 0, 0)


def build(jar: Path) -> None:
    """Compile the log store into a JAR, which takes a JDK."""
    compiler = check_java() / "bin" / "javac"
    said = subprocess.run([compiler, "-version"], capture_output=True, text=True, check=True)
    jars = [*delta_jars(), *jars_of_spark()]
    classes = os.pathsep.join(str(each) for each in jars if each.name.startswith(_NEEDED))
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, "--release", _RELEASE, "-Xlint:all", "-Werror", "-proc:none"]
        subprocess.run([*command, "-cp", classes, "-d", folder, SOURCE], check=True)
        made = sorted(Path(folder).rglob("*.class"))
        files = {str(each.relative_to(folder)): each.read_bytes() for each in made}
    _write(jar, {"META-INF/MANIFEST.MF": _manifest(said.stdout.strip()), **files})


def source_digest() -> str:
    """A digest of the source, as the manifest has it, whose lines have 72 bytes at most."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:32]


def manifest_of(jar: Path) -> dict[str, str]:
    with zipfile.ZipFile(jar) as opened:
        lines = opened.read("META-INF/MANIFEST.MF").decode().splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


def _manifest(compiler: str) -> bytes:
    attributes = {
        "Manifest-Version": "1.0",
        "Created-By": compiler,
        "Source-Digest": source_digest(),
    }
    return "".join(f"{name}: {value}\r\n" for name, value in attributes.items()).encode() + b"\r\n"


def _write(jar: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    build(JAR)
