"""What a generator of the TPC makes, kept in ``$STREAMTABLES_HOME`` once it is made."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dagster_streamtables.runtime.spark.environment import home
from qa.tpc import generate

VERSION = "1.5.5"
"""Of DuckDB and of its extensions, which fit each other only where they are equal."""


def generated(benchmark: str, scale: float) -> Path:
    """The folder with a Parquet file for each table of ``tpch`` or ``tpcds``, and the texts."""
    cache = home() / benchmark
    folder = cache / f"data-{VERSION}-{scale}"
    if not folder.exists():
        python = _environment(cache / f"environment-{VERSION}", benchmark)
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            arguments = [python, generate.__file__, unfinished, benchmark, str(scale)]
            subprocess.run([str(each) for each in arguments], check=True)
            shutil.copytree(unfinished, folder)
    return folder


def tables(folder: Path) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.parquet"))


def texts(folder: Path) -> dict[int, str]:
    """The queries by number, as DuckDB reads them."""
    read = json.loads((folder / generate.TEXTS).read_text())
    return {int(number): text for number, text in read.items()}


def chosen(folder: Path, numbers: str) -> dict[int, str]:
    """The texts of some queries, whose numbers have commas between; of all if there is none."""
    wanted = [int(each) for each in numbers.split(",") if each]
    return {
        number: text for number, text in texts(folder).items() if not wanted or number in wanted
    }


def _environment(folder: Path, benchmark: str) -> Path:
    """The Python of an environment that has the extension."""
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        packages = [f"duckdb=={VERSION}", f"duckdb-extension-{benchmark}=={VERSION}"]
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *packages], check=True
        )
        ready.touch()
    return python
