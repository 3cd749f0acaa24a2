"""How soon a subscriber has a change, and how many rows a second pass.

    python -m benchmarks.subscribe [--rows 10000000] [--times 10]

`orders` has so many rows. After each commit of ten rows, the time is taken until the subscriber has
the rows of that commit: of the source, of a stream table that is refreshed first, and of a SELECT
that joins and aggregates. Then a snapshot and a change of a million rows are read whole, and a
change of as many rows as the table has, beside which the memory of this process is watched.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import typer
from rich.table import Table

from benchmarks.orders import Orders
from benchmarks.results import CONSOLE
from dagster_streamtables import Lake, StreamTable, Subscription, subscribe

_SELECT = """SELECT c.region, COUNT(*) AS orders, SUM(o.amount) AS total
FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY c.region"""
_MILLION = 1_000_000


@dataclass(frozen=True)
class Reached:
    """One kind of relation, and how long its subscriber waits."""

    relation: str
    seconds: list[float]

    @property
    def cells(self) -> tuple[str, ...]:
        ordered = sorted(self.seconds)
        return self.relation, f"{statistics.median(ordered):.2f}", f"{ordered[-1]:.2f}"


def main(rows: int = 10_000_000, times: int = 10) -> None:
    """Measure, and print the tables."""
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as folder:
        lake = Lake(Path(folder) / "lake")
        orders = Orders(lake.location("orders"), lake.location("customers"), rows)
        table = StreamTable("by_region", _SELECT)
        lake.refresh(table)
        reached = [
            _reached("source", subscribe(lake, "orders", snapshot=False), orders, times),
            _reached(
                "stream table, with its refresh",
                subscribe(lake, "by_region", snapshot=False),
                orders,
                times,
                lambda: lake.refresh(table),
            ),
            _reached("SELECT", subscribe(lake, _SELECT, clock="ms", snapshot=False), orders, times),
        ]
        _print_reached(reached)
        _print_passed(Path(folder), orders, lake, rows)


def _reached(
    name: str,
    subscription: Subscription,
    orders: Orders,
    times: int,
    refresh: Callable[[], object] = lambda: None,
) -> Reached:
    subscription.fetch(0, timeout=0)
    seconds: list[float] = []
    for _ in range(times + 2):
        orders.append(10)
        began = time.perf_counter()
        refresh()
        subscription.fetch(1)
        seconds.append(time.perf_counter() - began)
        subscription.fetch(None, timeout=0)
    subscription.close()
    return Reached(name, seconds[2:])  # the first two warm the JVM


def _print_reached(found: list[Reached]) -> None:
    shown = Table("relation", "median s", "max s", title="From the commit to the subscriber's row")
    for each in found:
        shown.add_row(*each.cells)
    CONSOLE.print(shown)


def _print_passed(folder: Path, orders: Orders, lake: Lake, rows: int) -> None:
    shown = Table("what", "rows", "s", "rows/s", "peak MB", title="Rows that pass")
    small = Lake(folder / "small")
    some = Orders(small.location("orders"), small.location("customers"), _MILLION)
    shown.add_row("snapshot", *_passed(subscribe(small, "orders")))
    begun = subscribe(small, "orders", snapshot=False)
    begun.fetch(0, timeout=0)
    some.append(_MILLION)
    shown.add_row("change", *_passed(begun))
    large = subscribe(lake, "orders", snapshot=False)
    large.fetch(0, timeout=0)
    orders.append(rows)
    shown.add_row("change", *_passed(large))
    CONSOLE.print(shown)


def _passed(subscription: Subscription) -> tuple[str, ...]:
    """Read what is there, and watch the memory of this process."""
    process, peak, count = psutil.Process(), 0, 0
    began = time.perf_counter()
    with subscription:
        for batch in subscription:
            count += batch.num_rows
            peak = max(peak, process.memory_info().rss)
            if not subscription.partial:
                break
    seconds = time.perf_counter() - began
    return f"{count:,}", f"{seconds:.1f}", f"{count / seconds:,.0f}", f"{peak / 2**20:.0f}"


if __name__ == "__main__":
    typer.run(main)
