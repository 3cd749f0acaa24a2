"""The stream tables over the table: for each kind of root some queries, of which a history has one.

No query leaves an answer open (ties, sums of floats, the extremum of two zeros): plain Spark gives
the same rows each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from compiler.casefile import tables
from dagster_streamtables import StreamTable
from dagster_streamtables.runtime.model.stream_table import CdcMode
from qa.histories.rows import some_rows
from qa.histories.world import World

QUERIES = {
    kind: [query for [query] in rows]
    for kind, rows in tables("queries.txt", Path(__file__).parent).items()
}


@dataclass(frozen=True)
class Root:
    """A stream table of a history."""

    kind: str
    table: StreamTable
    by_spark: bool
    """Spark computes the change and writes it, however small."""
    pace: int
    """It is refreshed after each step, or after every second or third: as all of a history are."""

    @property
    def name(self) -> str:
        return self.table.name


def some_roots(seed: str, kinds: Sequence[str] = (), zone: str = "UTC") -> list[Root]:
    """One of each kind that is named, or of all, in an order in which they can be refreshed.

    What a root is depends on its kind alone: it stays as it is when others are left out.
    """
    pace = Random(seed).choice((1, 1, 2, 3))
    return [
        _root(kind, pace, Random(f"{seed} {kind}"), zone)
        for kind in QUERIES
        if kind in (kinds or QUERIES)
    ]


def _root(kind: str, pace: int, random: Random, zone: str) -> Root:
    table = StreamTable(
        kind.replace("-", "_"),
        random.choice(QUERIES[kind]),
        differential_max_change_ratio=0,
        max_consecutive_errors=0,
        session_timezone=zone,
        cdc_mode=random.choice((CdcMode.AUTO, CdcMode.AUTO, CdcMode.SNAPSHOT)),
    )
    return Root(kind, table, by_spark=random.random() < 0.3, pace=pace)


def _other_rows(random: Random) -> pa.Table:
    kinds = {"id": "long", "k": "integer", "label": "string", "w": "double", "at": "timestamp"}
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in kinds.items()]
    rows = some_rows(random, fields, random.randrange(1, 4))
    few = pa.array([None if v is None else v % 4 for v in rows["k"].to_pylist()], pa.int32())
    return rows.set_column(1, "k", few)


def make_other(world: World, random: Random) -> None:
    """The source that the table is joined with."""
    feed = {"delta.enableChangeDataFeed": "true"} if random.random() < 0.5 else None
    write_deltalake(str(world.u), _other_rows(random), configuration=feed)


def change_other(world: World, random: Random) -> None:
    other = DeltaTable(str(world.u))
    match random.randrange(4):
        case 0:
            other.delete(random.choice(("k = 1", "id = 3", "k IS NULL")))
        case 1:
            other.update(updates={"k": "k + 1"}, predicate="k = 1")
        case _:
            write_deltalake(str(world.u), _other_rows(random), mode="append")
