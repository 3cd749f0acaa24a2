"""What a replayed year cost: one row for each stream table."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table

from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh
from dagster_streamtables.runtime.model.stream_table import StreamTable


def seconds_in_full(lake: Lake, tables: Iterable[StreamTable]) -> dict[str, float]:
    """How long it takes now to compute and write each table anew, on the same warm Spark."""
    return {table.name: lake.refresh(table, full=True).seconds for table in tables}


def print_summary(
    console: Console,
    tables: Iterable[StreamTable],
    refreshes: Iterable[Refresh],
    full: Mapping[str, float],
) -> None:
    """Prints refreshes by action, rows, and seconds, for each table and for all.

    Args:
        console: Where to print.
        tables: In the order of the rows.
        refreshes: All refreshes of the run.
        full: Seconds of a recomputation at the end, by the table's name.
    """
    of_table: dict[str, list[Refresh]] = {table.name: [] for table in tables}
    for refresh in refreshes:
        of_table[refresh.table].append(refresh)
    shown = Table(caption="seconds: median and longest DIFFERENTIAL refresh, and FULL at the end")
    shown.add_column("stream table")
    for heading in ("diff.", "no data", "full", "rows in", "written", "median", "max", "FULL"):
        shown.add_column(heading, justify="right")
    for name, done in of_table.items():
        shown.add_row(name, *_cells(done), f"{full[name]:.2f}")
    console.print(shown)


def _cells(done: list[Refresh]) -> list[str]:
    actions = Counter(refresh.action for refresh in done)
    seconds = [each.seconds for each in done if each.action is Action.DIFFERENTIAL]
    rows_in = sum(each.rows_in for each in done)
    written = sum(each.inserted + each.deleted for each in done)
    return [
        str(actions[Action.DIFFERENTIAL]),
        str(actions[Action.NO_DATA]),
        str(actions[Action.FULL] + actions[Action.REINITIALIZE]),
        f"{rows_in:,}",
        f"{written:,}",
        f"{statistics.median(seconds):.2f}" if seconds else "",
        f"{max(seconds):.2f}" if seconds else "",
    ]
