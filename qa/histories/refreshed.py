"""The roots of a history as stream tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from dagster_streamtables import Lake, Refresh
from qa.histories.oracle import Held, lines, stored_rows
from qa.histories.roots import Root
from qa.histories.tally import Tally
from qa.histories.world import World

Followed = tuple[Mapping[str, int], str]
"""The versions of the sources that a root took, and a line of what was done."""


class Refreshed:
    """Each is refreshed, by Spark alone or by the product's choice."""

    def __init__(self, world: World, product: SparkSession, tally: Tally) -> None:
        self.world, self.tally = world, tally
        self.more: list[Root] = []
        self.lakes = lakes(world, product)

    def follow(self, root: Root) -> Followed:
        done = self.lakes[root.by_spark].refresh(root.table)
        self.tally.refresh(root, done)
        return {name: window.after for name, window in done.windows.items()}, _told(done)

    def held(self, root: Root) -> Held:
        rows = stored_rows(self.world, root.name)
        return Held(root.name, root.table.query, lines(rows, rows.columns))


def lakes(world: World, product: SparkSession) -> dict[bool, Lake]:
    """One in which Spark alone computes changes, and one that chooses."""
    return {
        by_spark: Lake(world.root, spark=product, driver_rows=0 if by_spark else None)
        for by_spark in (False, True)
    }


def _told(done: Refresh) -> str:
    windows = ", ".join(f"{name} {w.before}..{w.after} {w.capture}"
                        for name, w in done.windows.items())  # fmt: skip
    return f"{done.action} ({done.reason}) {windows} [{done.writer}]"
