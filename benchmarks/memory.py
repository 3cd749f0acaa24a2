"""What memory an enormous change takes: as many new rows as the table had.

    python -m benchmarks.memory [--rows 10000000]

The local Spark server is started anew, so that it has the memory of `STREAMTABLES_SPARK_MEMORY` (2g
if nothing is said) and has used none of it. Every stream table is compared with its query.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import typer

from benchmarks.orders import Orders
from benchmarks.results import CONSOLE, Figure, Results, print_figures
from benchmarks.shapes import SHAPES, Shape
from benchmarks.ways import Streamed
from dagster_streamtables import Lake, Mode
from dagster_streamtables.runtime.spark.local_server import server_status, stop_server

_EVERY = 0.2
"""Seconds between two looks at the memory."""
_MB = 2**20


def main(rows: int = 10_000_000) -> None:
    """Measure, and print the table.

    Args:
        rows: Of the source before the change, and of the change.
    """
    results = Results("memory", rows, 1)
    stop_server()
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as folder:
        lake = Lake(Path(folder) / "lake")
        tables = Streamed(lake, Mode.DIFFERENTIAL)
        orders = Orders(lake.location("orders"), lake.location("customers"), rows)
        for shape in SHAPES:
            tables.create(shape)
        orders.append(rows)
        results.figures += [_measured(lake, tables, shape, rows) for shape in SHAPES]
    results.store()
    print_figures(results, CONSOLE)


def _measured(lake: Lake, tables: Streamed, shape: Shape, rows: int) -> Figure:
    with _watched() as peak:
        done = tables.refresh(shape, 0)
    assert lake.check(tables.table(shape)).equal, f"{shape.name} is not its query"
    memory = {"Python, MB": peak.python / _MB, "Spark, MB": peak.spark / _MB}
    seconds, phases = [done.seconds], dict(done.phases)
    return Figure(
        shape.name, "DIFFERENTIAL", rows, False, seconds, phases, done.action.value, memory
    )


@dataclass
class _Peak:
    """The most bytes that the two processes held."""

    python: int = 0
    spark: int = 0

    def look(self) -> None:
        server = server_status()
        self.python = max(self.python, psutil.Process().memory_info().rss)
        self.spark = max(self.spark, server.memory_bytes if server else 0)


@contextmanager
def _watched() -> Iterator[_Peak]:
    peak, done = _Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(_EVERY):
            peak.look()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        peak.look()


if __name__ == "__main__":
    typer.run(main)
