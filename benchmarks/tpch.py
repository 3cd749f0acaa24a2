"""The 22 queries of TPC-H, kept up to date and recomputed, over windows of its refresh functions.

    python -m benchmarks.tpch [--scale 1] [--runs 5] [--queries 1,3,…]

A window inserts 0.1 % of the orders and deletes as many, of neighbouring keys as in the generator's
own files, with their lineitems. Every figure is the median of the windows after one to warm up;
every stream table is compared with its query at the end.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from benchmarks.market import SparkSources
from benchmarks.results import CONSOLE, Figure, Results, is_enough
from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.runtime.spark.session import open_session
from qa.tpc.generated import generated, tables
from qa.tpch.market import Market
from qa.tpch.queries import queries_of


@dataclass
class Query:
    """One of the queries, and what was measured of it."""

    number: int
    text: str
    ours: list[float] = field(default_factory=list[float])
    full: list[float] = field(default_factory=list[float])
    phases: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    actions: str = ""
    verdict: str = ""

    @property
    def table(self) -> StreamTable:
        return StreamTable(f"kept.q{self.number:02}", self.text, differential_max_change_ratio=0)

    def refresh(self, lake: Lake, *, warm: bool) -> None:
        done = lake.refresh(self.table)
        self.actions += done.action[0]
        if warm and done.action in (Action.DIFFERENTIAL, Action.NO_DATA):
            self.ours.append(done.seconds)
            for name, seconds in done.phases.items():
                self.phases.setdefault(name, []).append(seconds)

    def recompute(self, spark: Any, folder: Path, *, warm: bool) -> None:
        if is_enough(self.full):
            return
        begin = time.perf_counter()
        place = folder / f"q{self.number}"
        if place.exists():
            spark.sql(f"INSERT OVERWRITE delta.`{place}` {self.text}").collect()
        else:
            spark.sql(self.text).write.format("delta").save(str(place))
        if warm:
            self.full.append(time.perf_counter() - begin)

    @property
    def figures(self) -> list[Figure]:
        """What was measured, of a way that was measured at all."""
        medians = {name: statistics.median(each) for name, each in self.phases.items()}
        name, actions = f"Q{self.number}", self.actions
        ways = (("DIFFERENTIAL", self.ours, medians), ("FULL", self.full, {}))
        return [Figure(name, way, 1, True, each, told, actions) for way, each, told in ways if each]


def main(scale: float = 1, runs: int = 5, queries: str = "", check: bool = True) -> None:
    """Measure, and print the table.

    Args:
        scale: The scale factor; at 1 there are 6,000,000 lineitems.
        runs: How many windows are measured, after one to warm up.
        queries: Their numbers, with commas between; all of them if empty.
        check: Compare each table with its query at the end.
    """
    made = generated("tpch", scale)
    asked = [Query(*query) for query in queries_of(made, scale, queries).items()]
    with tempfile.TemporaryDirectory(prefix="streamtables-tpch-") as folder:
        lake = Lake(folder)
        spark = open_session()
        market = Market(SparkSources(lake, made, spark), scale, 4)
        for table in tables(made):
            place = lake.location(table)
            spark.sql(f"CREATE TEMPORARY VIEW {table} AS SELECT * FROM delta.`{place}`")
        _run(lake, market, asked, Path(folder) / "full", runs)
        results = Results("tpch", scale, runs, [each for query in asked for each in query.figures])
        if not queries:
            results.store()
        for query in asked if check else ():
            query.verdict = "yes" if lake.check(query.table).equal else "NO"
    _print(asked, results)


def _run(lake: Lake, market: Market, asked: list[Query], folder: Path, runs: int) -> None:
    spark = open_session()
    for query in asked:
        begin = time.perf_counter()
        lake.refresh(query.table)
        query.recompute(spark, folder, warm=False)
        CONSOLE.print(f"Q{query.number} is there: {time.perf_counter() - begin:.0f} s")
    for run in range(-1, runs):
        begin = time.perf_counter()
        market.insert_orders()
        market.delete_neighbours()
        CONSOLE.print(f"window {run + 1}, made in {time.perf_counter() - begin:.0f} s")
        for query in asked:
            query.refresh(lake, warm=run >= 0)
            query.recompute(spark, folder, warm=run >= 0)


def _print(asked: list[Query], results: Results) -> None:
    names = list(dict.fromkeys(name for query in asked for name in query.phases))
    table = Table(
        title=f"TPC-H at scale factor {results.size:g}, seconds, medians of {results.runs} windows"
    )
    for heading in ("query", "actions", "DIFFERENTIAL", "FULL", "×", "equal", *names):
        table.add_column(heading, justify="left" if heading in ("query", "actions") else "right")
    for query in asked:
        medians = [_median(query.ours), _median(query.full)]
        ratio = results.ratio(f"Q{query.number}")
        told = [_median(query.phases.get(name, [])) for name in names]
        cells = (
            f"Q{query.number}",
            query.actions,
            *medians,
            "" if ratio is None else f"{ratio:.1f}",
            query.verdict,
            *told,
        )
        table.add_row(*cells)
    CONSOLE.print(table)
    CONSOLE.print(results.verdict)


def _median(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f}" if seconds else ""


if __name__ == "__main__":
    typer.run(main)
