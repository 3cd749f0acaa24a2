"""The time of each row's last change, after random changes of sources, by both writers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, Mode
from runtime.accounts import Account, stream
from runtime.delta import write

BAG = "SELECT g, v, x FROM t WHERE v IS NULL OR v > 1"
TABLES: dict[str, tuple[str, Sequence[int] | None]] = {
    "bag": (BAG, None),
    "fold": ("SELECT g, COUNT(*) AS n, SUM(v) AS total FROM t GROUP BY g", (0,)),
    "least": ("SELECT g, MIN(v) AS least FROM t GROUP BY g", (0,)),
    "regroup": ("SELECT g, COUNT(DISTINCT v) AS n FROM t GROUP BY g HAVING COUNT(*) > 1", (0,)),
    "top": ("SELECT g, v, x FROM t ORDER BY v DESC, g, CAST(x AS STRING) LIMIT 9", None),
    "joined": ("SELECT t.v, t.x, d.w FROM t JOIN d ON t.g = d.g", None),
    "united": ("SELECT g, v FROM t UNION ALL SELECT g, w AS v FROM d", None),
}


def rows(dice: random.Random, count: int) -> pa.Table:
    columns = {
        "n": pa.array(dice.choices(range(9), k=count), pa.int64()),
        "g": pa.array(dice.choices([1, 2, 3, 4, None], k=count), pa.int64()),
        "v": pa.array(dice.choices([1, 2, 7, None], k=count), pa.int32()),
        "x": pa.array(dice.choices([-0.0, 0.0, float("nan")], k=count), pa.float64()),
    }
    return pa.table(columns)


def dimension(dice: random.Random) -> pa.Table:
    return pa.table(
        {"g": pa.array([1, 2, 2, 3]), "w": pa.array(dice.choices([1, 5, None], k=4), pa.int32())}
    )


def change(lake: Lake, dice: random.Random, kind: str) -> None:
    source = DeltaTable(lake.location("t"))
    match kind:
        case "insert":
            write(lake, "t", rows(dice, 8))
        case "update":
            source.update(predicate=f"g = {dice.randint(1, 4)}", updates={"v": "v + 1"})
            source.update(predicate="x = 0", updates={"x": "-x"})
        case "delete":
            source.delete(f"g = {dice.randint(1, 4)} AND v > {dice.randint(1, 3)}")
            source.delete("v IS NULL AND g IS NULL")
        case "copies":  # in most tables, some of the copies of a row
            source.delete(f"n % 3 = {dice.randint(0, 2)}")
        case "again":  # deleted and inserted, with one copy more of some
            held = source.to_pyarrow_table()
            source.delete("g = 2")
            write(lake, "t", held.filter(pc.equal(held["g"], 2)))
            write(lake, "t", held.slice(0, 3))
        case "dimension":
            write(lake, "d", dimension(dice), mode="overwrite")
        case "recreate":
            held = source.to_pyarrow_table()
            for each in Path(lake.location("t")).rglob("*"):
                if each.is_file():
                    each.unlink()
            write(lake, "t", held.slice(2))


HISTORY = ("insert", "update", "again", "copies", "insert", "delete", "dimension", "copies")


@pytest.mark.parametrize(
    ("driver_rows", "seed", "queries"),
    [
        pytest.param(None, 1, ("bag", "least"), id="delta-rs"),
        pytest.param(None, 2, tuple(TABLES), id="delta-rs, all", marks=pytest.mark.long),
        pytest.param(0, 3, ("bag", "least"), id="spark", marks=pytest.mark.long),
        pytest.param(0, 4, ("fold", "regroup"), id="spark, groups", marks=pytest.mark.long),
        pytest.param(0, 5, ("top", "joined", "united"), id="spark, bags", marks=pytest.mark.long),
    ],
)
def test_rows_have_the_time_of_their_last_change(
    driver_rows: int | None,
    seed: int,
    queries: tuple[str, ...],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    dice = random.Random(seed)
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    write(lake, "t", rows(dice, 30))
    write(lake, "d", dimension(dice))
    tables = [Account(stream(name, TABLES[name][0]), TABLES[name][1]) for name in queries]
    if "bag" in queries:
        tables.append(Account(stream("full", BAG, mode=Mode.FULL)))
    actions = {each.table.name: {each.refresh(lake).action} for each in tables}

    for number, kind in enumerate(HISTORY):
        change(lake, dice, kind)
        if number == 2:
            DeltaTable(lake.location(tables[0].table.name)).optimize.compact()
        for each in tables:
            actions[each.table.name].add(each.refresh(lake, full=number == 5).action)
    change(lake, dice, "recreate")
    for each in tables:
        assert each.refresh(lake).action is Action.REINITIALIZE
        assert lake.check(each.table).equal
        assert not lake.checks.drift(each.table)
        assert not lake.checks.invariants(each.table).violations
    assert all(actions[name] >= {Action.DIFFERENTIAL, Action.FULL} for name in queries)
