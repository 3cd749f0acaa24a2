"""Seconds until a code location with many stream tables is loaded, in a new process.

    python -m benchmarks.load [--tables 500] [--runs 5]

The tables are those of the example graph, as often as it takes; their sources are there, so that
each query is compiled. What a run worker loads is measured beside it: it compiles nothing.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import typer

from benchmarks.results import CONSOLE, Figure, Results, print_figures
from example_defs.dataset import START
from example_defs.replay import Replay

_SQL = Path(__file__).parent.parent / "example_defs/tables"
_LOAD = """
import json, sys, time
begin = time.perf_counter()
from dagster._core.definitions.definitions_load_context import (
    DefinitionsLoadContext, DefinitionsLoadType)
from dagster._core.definitions.repository_definition import RepositoryLoadData
from dagster_streamtables import StreamTablesResource, build_definitions
imported = time.perf_counter()
if sys.argv[3] == "run":
    kind = DefinitionsLoadType.RECONSTRUCTION
    DefinitionsLoadContext.set(DefinitionsLoadContext(kind, RepositoryLoadData({})))
resource = StreamTablesResource(root=sys.argv[1])
defs = build_definitions(folder=sys.argv[2], resource=resource, min_schedule_seconds=1)
assets = len(defs.get_repository_def().asset_graph.get_all_asset_keys())
import psutil
java = [each for each in psutil.Process().children(recursive=True) if "java" in each.name()]
assert not java, java
print(json.dumps([imported - begin, time.perf_counter() - imported, assets]))
"""


def main(tables: int = 500, runs: int = 5) -> None:
    """Measure, and print the table.

    Args:
        tables: How many.
        runs: How many are measured, after one to warm the disk up.
    """
    results = Results("load", tables, runs)
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as name:
        folder = Path(name)
        Replay(folder / "lake", step=timedelta(hours=1)).advance(START + timedelta(days=1))
        made = _copies(folder / "tables", tables)
        for purpose in ("code server", "run"):
            found = [_loaded(folder, purpose) for _ in range(runs + 1)][1:]
            seconds = [imported + loaded for imported, loaded, _ in found]
            phases = {"import": statistics.median(each[0] for each in found)}
            phases["definitions"] = statistics.median(each[1] for each in found)
            title = f"{made} tables, for a {purpose}"
            results.figures.append(Figure(title, "load", 0, False, seconds, phases, ""))
    results.store()
    print_figures(results, CONSOLE)


def _copies(folder: Path, tables: int) -> int:
    """The example graph so often that it has so many tables, each copy in schemas of its own."""
    files = {path: path.relative_to(_SQL) for path in sorted(_SQL.rglob("*.sql"))}
    names = [".".join(each.with_suffix("").parts) for each in files.values()]
    for copy in range(math.ceil(tables / len(files))):
        for path, relative in files.items():
            text = path.read_text()
            for name in names:
                schema, _, table = name.partition(".")
                text = text.replace(name, f"{schema}{copy}.{table}")
            place = folder / f"{relative.parts[0]}{copy}" / relative.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    return len(names) * math.ceil(tables / len(files))


def _loaded(folder: Path, purpose: str) -> tuple[float, float, int]:
    command = [sys.executable, "-c", _LOAD, str(folder / "lake"), str(folder / "tables"), purpose]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    imported, loaded, assets = json.loads(done.stdout)
    return imported, loaded, assets


if __name__ == "__main__":
    typer.run(main)
