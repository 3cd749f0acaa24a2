"""Seconds of a refresh of five queries, against the number of changed rows, in each of five ways.

    python -m benchmarks.refresh [--rows 10000000] [--changes 10,1000,…] [--runs 5]

All ways do the same work in the same run on the same Spark server: the same window of `orders`, one
third inserts, one third updates, one third deletes, of the newest orders and then of scattered
ones. Every figure is the median of the runs after one to warm up; every stream table is compared
with its query at the end. Ctrl-C ends the measuring early, and keeps what there is.
`python -m benchmarks.report` writes what was measured into the docs.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import typer

from benchmarks.orders import Orders
from benchmarks.results import CONSOLE, Figure, Results, is_enough, print_tables
from benchmarks.shapes import SHAPES, Shape
from benchmarks.ways import ByHand, Duck, Overwritten, Streamed, Way
from dagster_streamtables import Lake, Mode, Refresh
from dagster_streamtables.runtime.spark.session import open_session

_BY_HAND = 1_000
"""A MERGE by hand of more rows takes minutes, and is not the question there."""


def main(
    rows: int = 10_000_000,
    changes: str = "10,1000,10000,100000,1000000",
    runs: int = 5,
    shapes: str = "",
) -> None:
    """Measure, and print the tables.

    Args:
        rows: Of the source `orders`.
        changes: Numbers of changed rows, with commas between.
        runs: How many are measured, after one to warm up.
        shapes: Names of queries, with commas between; all of them if empty.
    """
    chosen = [each for each in SHAPES if not shapes or each.name in shapes.split(",")]
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as folder:
        bench = _prepared(Path(folder), rows, chosen, runs)
        bench.measure_all([int(each) for each in changes.split(",")])
        bench.finish()
    print_tables(bench.results, CONSOLE)


@dataclass
class Bench:
    lake: Lake
    sources: Orders
    ways: dict[str, Way]
    shapes: list[Shape]
    runs: int
    results: Results = field(init=False)

    def __post_init__(self) -> None:
        self.results = Results("refresh", self.sources.rows, self.runs)
        for shape in self.shapes:
            for way in self.ways.values():
                way.create(shape)

    def measure_all(self, changes: list[int]) -> None:
        """Windows of each size; Ctrl-C ends it after those that were measured."""
        try:
            # A merge of scattered keys mixes the rows over the files, and later ones find no order.
            for scattered in (False, True):
                for count in changes:
                    self.measure(count, scattered=scattered)
                    self.store()
        except KeyboardInterrupt:
            CONSOLE.print("broken off; what was measured is compared and kept")

    def measure(self, count: int, *, scattered: bool) -> None:
        """All ways on the same windows of `count` changed rows."""
        begin = time.perf_counter()
        measured: dict[tuple[str, str], list[Timed]] = defaultdict(list)
        for run in range(-1, self.runs):
            self.sources.change(count, scattered=scattered)
            for name, way in self._ways(count).items():
                for shape in self.shapes:
                    several = measured[shape.name, name]
                    if is_enough([each for each, _ in several]):
                        continue  # the next to warm up takes in the windows that it leaves out
                    timed = _timed(way, shape, self.sources.version)
                    if run >= 0:
                        several.append(timed)
        for (shape_name, name), several in measured.items():
            self.results.figures.append(_figure(shape_name, name, count, scattered, several))
        placed = "scattered" if scattered else "recent"
        CONSOLE.print(f"{count:,} changed rows, {placed}: {time.perf_counter() - begin:.0f} s")

    def _ways(self, count: int) -> dict[str, Way]:
        """Recomputations take as long after any change, so they are measured after one of them."""
        done = {figure.way for figure in self.results.figures}
        return {
            name: way
            for name, way in self.ways.items()
            if not (name in ("FULL", "DuckDB") and name in done)
            and not (name == "by hand" and count > _BY_HAND)
        }

    def finish(self) -> None:
        """Measure refreshes that find nothing, and compare every stream table with its query."""
        for name, way in self.ways.items():
            for shape in self.shapes if isinstance(way, Streamed) else ():
                timed = _timed(way, shape, self.sources.version)
                self.results.figures.append(_figure(shape.name, name, 0, False, [timed]))
                if not self.lake.check(way.table(shape)).equal:
                    self.results.withdraw()
                    raise AssertionError(f"{shape.name} is not its query")
        self.store()

    def store(self) -> None:
        """Keep what was measured, of all shapes; a run of hours may end in any way."""
        if self.shapes == SHAPES:
            self.results.store()


def _prepared(folder: Path, rows: int, shapes: list[Shape], runs: int) -> Bench:
    begin = time.perf_counter()
    lake, spark = Lake(folder / "lake"), open_session()
    orders, customers = lake.location("orders"), lake.location("customers")
    sources = Orders(orders, customers, rows)
    (folder / "duck").mkdir()
    ways: dict[str, Way] = {
        "DIFFERENTIAL": Streamed(lake, Mode.DIFFERENTIAL),
        "AUTO": Streamed(lake, Mode.AUTO),
        "FULL": Overwritten(spark, folder, orders, customers),
        "by hand": ByHand(spark, folder, orders, customers),
        "DuckDB": Duck(folder / "duck", sources, customers),
    }
    bench = Bench(lake, sources, ways, shapes, runs)
    CONSOLE.print(f"tables of {rows:,} rows are there: {time.perf_counter() - begin:.0f} s")
    return bench


Timed = tuple[float, Refresh | None]
"""The seconds of a refresh, and what it did if it was a stream table's."""


def _timed(way: Way, shape: Shape, version: int) -> Timed:
    begin = time.perf_counter()
    done = way.refresh(shape, version)
    return time.perf_counter() - begin, done


def _figure(shape: str, way: str, changed: int, scattered: bool, several: list[Timed]) -> Figure:
    refreshes = [done for _, done in several if done is not None]
    names = {name: None for done in refreshes for name in done.phases}
    phases = {
        name: statistics.median(done.phases.get(name, 0.0) for done in refreshes) for name in names
    }
    action = refreshes[-1].action.value if refreshes else ""
    return Figure(shape, way, changed, scattered, [each for each, _ in several], phases, action)


if __name__ == "__main__":
    typer.run(main)
