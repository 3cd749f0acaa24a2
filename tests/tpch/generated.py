"""What TPC-H's generator makes, kept in ``$STREAMTABLES_HOME/tpch`` once it is made."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dagster_streamtables.runtime.spark.home import home
from tests.tpch import generate

VERSION = "1.5.5"
"""Of DuckDB and of its extension, which fit each other only where they are equal."""


def generated(scale: float) -> Path:
    """The folder with a Parquet file for each table, and the texts."""
    cache = home() / "tpch"
    folder = cache / f"data-{VERSION}-{scale}"
    if not folder.exists():
        python = _environment(cache / f"environment-{VERSION}")
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            arguments = [python, generate.__file__, unfinished, str(scale)]
            subprocess.run([str(each) for each in arguments], check=True)
            shutil.copytree(unfinished, folder)
    return folder


def texts(folder: Path) -> dict[int, str]:
    """The queries by number, as DuckDB reads them."""
    read = json.loads((folder / generate.TEXTS).read_text())
    return {int(number): text for number, text in read.items()}


def _environment(folder: Path) -> Path:
    """The Python of an environment that has the extension."""
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        packages = [f"duckdb=={VERSION}", f"duckdb-extension-tpch=={VERSION}"]
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *packages], check=True
        )
        ready.touch()
    return python
