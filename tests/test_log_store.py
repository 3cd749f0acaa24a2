"""The JAR of the log store is what its source says."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from dagster_streamtables.runtime.spark import log_store
from dagster_streamtables.runtime.spark.jars import check_java
from qa.log_store import build, manifest_of, source_digest

pytestmark = pytest.mark.process


def test_the_jar_was_made_of_its_source() -> None:
    assert manifest_of(log_store.JAR)["Source-Digest"] == source_digest()


def test_the_same_compiler_makes_the_same_jar(tmp_path: Path) -> None:
    compiler = check_java() / "bin" / "javac"
    if not compiler.is_file():
        pytest.skip("this Java has no compiler")
    said = subprocess.run([compiler, "-version"], capture_output=True, text=True, check=True)
    made = manifest_of(log_store.JAR)["Created-By"]
    if said.stdout.strip() != made:
        pytest.skip(f"the JAR was made by {made}, and another compiler may make other bytes")
    build(tmp_path / "made.jar")
    assert _files(tmp_path / "made.jar") == _files(log_store.JAR)


def _files(jar: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(jar) as opened:
        return {name: opened.read(name) for name in opened.namelist()}
