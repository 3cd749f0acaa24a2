"""What many stream tables cost: a hundred that find nothing new, and a chain of ten.

    python -m benchmarks.graph [--runs 5] [--rows 100000]

The chain alternates filters, joins and groups; one row of its source changes, and the figure is the
seconds from that commit until the last table is up to date. Every table of the chain is compared
with its query at the end.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import typer
from deltalake import DeltaTable, write_deltalake

from benchmarks.orders import FEED
from benchmarks.results import CONSOLE, Figure, Results, print_figures
from dagster_streamtables import Action, Lake, Refresh, StreamTable

TABLES = 100
NOTHING, ONE, CHAIN = f"{TABLES} tables, nothing new", "one of them", "a chain of ten"

_STEPS = [
    "SELECT id, customer, amount FROM {0} WHERE amount >= 0",
    "SELECT id, customer, amount * 2 AS amount FROM {0}",
    "SELECT customer, SUM(amount) AS amount, COUNT(*) AS id FROM {0} GROUP BY customer",
    "SELECT a.customer, a.amount, a.id, b.amount AS before FROM {0} AS a"
    " JOIN {1} AS b ON a.customer = b.id",
    "SELECT customer, amount + before AS amount, id FROM {0} WHERE amount > 0",
    "SELECT customer % 1000 AS customer, amount, id FROM {0}",
    "SELECT customer, MAX(amount) AS amount, SUM(id) AS id FROM {0} GROUP BY customer",
    "SELECT a.customer, a.amount, a.id, b.amount AS before FROM {0} AS a"
    " LEFT JOIN {1} AS b ON a.customer = b.id",
    "SELECT customer, amount - before AS amount, id FROM {0} WHERE before IS NOT NULL",
    "SELECT COUNT(*) AS customers, SUM(amount) AS amount FROM {0}",
]


def main(runs: int = 5, rows: int = 100_000) -> None:
    """Measure, and print the table.

    Args:
        runs: How many are measured, after one to warm up.
        rows: Of the source.
    """
    results = Results("graph", rows, runs)
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as folder:
        lake = Lake(Path(folder) / "lake")
        ids = np.arange(rows)
        values = pa.table({"id": ids, "customer": ids % (rows // 5), "amount": ids % 1000})
        write_deltalake(lake.location("orders"), values, configuration=FEED)
        results.figures += _unchanged(lake, runs)
        results.figures.append(_chain(lake, runs))
    results.store()
    print_figures(results, CONSOLE)


def _unchanged(lake: Lake, runs: int) -> list[Figure]:
    query = "SELECT id, amount FROM orders WHERE amount = {}"
    tables = [StreamTable(f"same.t{i:03}", query.format(i)) for i in range(TABLES)]
    for table in tables:
        lake.refresh(table)
    rounds = [_timed(lake, tables) for _ in range(runs + 1)][1:]
    assert all(done.action is Action.NO_DATA for _, each in rounds for done in each)
    alone = [done.seconds for _, each in rounds for done in each]
    whole = [seconds for seconds, _ in rounds]
    return [
        Figure(NOTHING, "DIFFERENTIAL", 0, False, whole, {}, Action.NO_DATA.value),
        Figure(ONE, "DIFFERENTIAL", 0, False, alone, {}, Action.NO_DATA.value),
    ]


def _chain(lake: Lake, runs: int) -> Figure:
    tables = [
        StreamTable(f"chain.t{i}", query.format(f"chain.t{i - 1}" if i else "orders", "orders"))
        for i, query in enumerate(_STEPS)
    ]
    for table in tables:
        lake.refresh(table)
    rounds: list[tuple[float, list[Refresh]]] = []
    for run in range(runs + 1):
        _change(lake, run)
        rounds.append(_timed(lake, tables))
    done = [each for _, several in rounds[1:] for each in several]
    assert all(each.action is Action.DIFFERENTIAL for each in done), [each.action for each in done]
    for table in tables:
        assert lake.check(table).equal, f"{table.name} is not its query"
    names = dict.fromkeys(name for each in done for name in each.phases)
    sums = {name: [_sum(name, several) for _, several in rounds[1:]] for name in names}
    phases = {name: statistics.median(each) for name, each in sums.items()}
    seconds = [each for each, _ in rounds[1:]]
    return Figure(CHAIN, "DIFFERENTIAL", 1, False, seconds, phases, Action.DIFFERENTIAL.value)


def _change(lake: Lake, run: int) -> None:
    # A row that every table of the chain sees: above all others of its group.
    DeltaTable(lake.location("orders")).update({"amount": f"{10_000 + run}"}, predicate="id = 1")


def _sum(phase: str, refreshes: Sequence[Refresh]) -> float:
    return sum(each.phases.get(phase, 0) for each in refreshes)


def _timed(lake: Lake, tables: Sequence[StreamTable]) -> tuple[float, list[Refresh]]:
    """Seconds until all tables are up to date."""
    begin = time.perf_counter()
    done = [lake.refresh(table) for table in tables]
    return time.perf_counter() - begin, done


if __name__ == "__main__":
    typer.run(main)
