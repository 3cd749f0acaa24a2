"""The roots of a history as subscriptions: nothing is stored, and changes add up to the query.

The source itself is followed, too, by its log, without its MAP. Now and then a subscription is
closed and resumed at its token. One whose relation is gone, or became another one, ends with an
error of the product, and a new one takes its place.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa
from pyspark.sql import SparkSession

from dagster_streamtables import StreamTable, Subscription, subscribe
from dagster_streamtables.changes.position import position_of
from dagster_streamtables.errors import SourceProblem
from qa.histories.creating import COLUMNS
from qa.histories.oracle import Held, lines, no_lines
from qa.histories.refreshed import Followed, lakes
from qa.histories.roots import Root
from qa.histories.tally import Tally
from qa.histories.world import World

_LEADING = 2
"""The columns before those of the relation: the timestamp, and the number of copies."""


class Subscribed:
    def __init__(self, world: World, product: SparkSession, tally: Tally) -> None:
        self.world, self.tally = world, tally
        columns = ", ".join(name for name in COLUMNS if name != "m")
        source = StreamTable("source", f"SELECT {columns} FROM t")
        self.more = [Root("source", source, by_spark=False, pace=1)]
        self.lakes = lakes(world, product)
        self.open: dict[str, Subscription] = {}
        self.read: dict[str, list[pa.Table]] = {}
        self.chance = Random(7)

    def follow(self, root: Root) -> Followed:
        if root.name == "bag":  # which another root reads
            self.lakes[root.by_spark].refresh(root.table)
        told = self._resumed(root) if root.name in self.open else self._begun(root, "begun")
        try:
            rows = self._news(root)
        except SourceProblem as error:
            told = self._begun(root, f"begun again: {type(error).__name__}")
            rows = self._news(root)
        _require_once(rows)
        self.read[root.name].append(rows)
        self.tally.reasons[f"subscription {told}"] += 1
        token = self.open[root.name].token
        assert token is not None
        versions = {name: at.version for name, at in position_of(token).frontier.items()}
        return versions, f"{told}, {rows.num_rows} rows"

    def _news(self, root: Root) -> pa.Table:
        return self.open[root.name].fetch(None, timeout=0)

    def _begun(self, root: Root, told: str) -> str:
        self._close(root)
        self.read[root.name] = []
        self.open[root.name] = self._subscribe(root)
        return told

    def _resumed(self, root: Root) -> str:
        """Sometimes by another subscription, at the token of the last one."""
        token = self.open[root.name].token
        if token is None or self.chance.random() < 0.6:
            return "continued"
        self._close(root)
        try:
            self.open[root.name] = self._subscribe(root, resume=token)
        except SourceProblem as error:
            return self._begun(root, f"begun again: {type(error).__name__}")
        return "resumed"

    def _subscribe(self, root: Root, resume: str | None = None) -> Subscription:
        return subscribe(self.lakes[root.by_spark], root.table.query, resume=resume)

    def _close(self, root: Root) -> None:
        if root.name in self.open:
            self.open.pop(root.name).close()

    def held(self, root: Root) -> Held:
        import pyarrow as pa

        rows = pa.concat_tables(self.read[root.name])
        if not rows.num_rows:
            return Held(root.name, root.table.query, no_lines(self.world.spark))
        there = self.world.spark.createDataFrame(rows)
        seen = lines(there, rows.column_names[_LEADING:], copies="_diff")
        return Held(root.name, root.table.query, seen)


def _require_once(rows: pa.Table) -> None:
    """No row comes twice at one timestamp, and none by no copies."""
    shown = [repr(row) for row in rows.drop_columns("_diff").to_pylist()]
    assert len(shown) == len(set(shown)), "a row has two diffs at one timestamp"
    assert 0 not in rows["_diff"].to_pylist()
