"""The time of each row's last change, after random changes of sources, by both writers.

The column `changed_at` is switched on and off, over other columns, read by others, and refused.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.declarations import find_problems
from dagster_streamtables.errors import InvalidDefinition
from runtime.accounts import AT, Account, stream, times
from runtime.delta import append_by_spark, on_spark, write
from runtime.refreshes import refreshed
from runtime.ways import writers

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


def pairs(*rows: tuple[int, int]) -> pa.Table:
    g, v = zip(*rows, strict=True)
    return pa.table({"g": pa.array(g, pa.int64()), "v": pa.array(v, pa.int32())})


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, driver_rows: int | None) -> Lake:
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    write(lake, "t", pairs((1, 5), (1, 5), (2, 7), (3, 1)))
    return lake


def ages(lake: Lake, table: StreamTable) -> dict[tuple[str, ...], list[int]]:
    """The rows of a table, and of each copy the number of its time among those of the table."""
    held = times(lake, table)
    order = sorted({at for _, at in held})
    found: dict[tuple[str, ...], list[int]] = {}
    for row, at in sorted(held):
        found.setdefault(row, []).append(order.index(at))
    return found


def commits(lake: Lake, name: str) -> Iterator[str]:
    logs = (Path(lake.location(name)) / "_delta_log").glob("*.json")
    return (each.read_text() for each in logs)


@pytest.mark.smoke("`changed_at`")
def test_it_is_switched_on_renamed_and_switched_off(lake: Lake) -> None:
    plain = stream("bag", "SELECT g, v FROM t", changed_at="")
    lake.refresh(plain)
    write(lake, "t", pairs((4, 4)))
    assert lake.refresh(plain).action is Action.DIFFERENTIAL
    assert not any("changed_at" in each for each in commits(lake, "bag"))

    account = Account(replace(plain, changed_at=AT))
    done = account.refresh(lake)
    assert (done.action, done.reason) == (Action.REINITIALIZE, "the definition changed")
    assert account.refresh(lake).action is Action.NO_DATA
    write(lake, "t", pairs((1, 5)))
    assert account.refresh(lake).action is Action.DIFFERENTIAL
    assert ages(lake, account.table)["1", "5"] == [0, 0, 1]

    account.table = replace(plain, changed_at="Since")
    assert account.refresh(lake).action is Action.REINITIALIZE
    assert list(lake.columns("bag") or ()) == ["g", "v", "Since"]
    assert ages(lake, account.table)["1", "5"] == [0, 0, 1]
    account.table = replace(plain, changed_at="since")  # no other name to Spark
    assert account.refresh(lake).action is Action.REINITIALIZE
    assert list(lake.columns("bag") or ()) == ["g", "v", "since"]

    assert lake.refresh(plain).action is Action.REINITIALIZE
    assert list(lake.columns("bag") or ()) == ["g", "v"]
    assert lake.check(plain).equal


@pytest.mark.spark
@writers
def test_the_time_is_that_of_now_in_the_query(driver_rows: int | None, tmp_path: Path) -> None:
    lake = Lake(tmp_path, driver_rows=driver_rows)
    write(lake, "t", pairs((1, 5), (2, 7)))
    table = stream("bag", "SELECT g, now() AS asked FROM t", session_timezone="Asia/Tokyo")
    lake.refresh(table)
    assert all(asked == repr(at) for (_, asked), at in times(lake, table))

    plain = replace(table, query="SELECT g, v FROM t")
    lake.refresh(plain)
    [(_, before), *_] = times(lake, plain)
    renamed = replace(plain, changed_at="since")
    assert lake.refresh(renamed).action is Action.REINITIALIZE
    assert {at for _, at in times(lake, renamed)} == {before}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("SELECT g, v FROM t WHERE g < 3", [[0, 0, 1], [0]], id="other rows"),
        pytest.param("SELECT g FROM t", [[0, 0, 1], [0], [0]], id="fewer columns"),
        pytest.param("SELECT v, g FROM t", [[0], [0, 0, 1], [0]], id="another order"),
        pytest.param("SELECT g, v, 1 AS one FROM t", [[0, 0, 0], [0], [0]], id="more columns"),
        pytest.param("SELECT g, CAST(v AS BIGINT) AS v FROM t", [[0, 0, 0], [0], [0]], id="type"),
        pytest.param(
            "SELECT g, SUM(v) AS v FROM t WHERE g > 1 GROUP BY g", [[0], [0]], id="another plan"
        ),
    ],
)
def test_a_rebuilt_table_keeps_the_times_of_equal_rows(
    query: str, expected: list[list[int]], lake: Lake
) -> None:
    table = stream("bag", "SELECT g, v FROM t")
    lake.refresh(table)
    first = {at for _, at in times(lake, table)}
    write(lake, "t", pairs((1, 5)))
    lake.refresh(table)

    again = replace(table, query=query)
    refreshed(lake, again, Action.REINITIALIZE)
    assert list(ages(lake, again).values()) == expected
    kept = first <= {at for _, at in times(lake, again)}
    assert kept == ("one" not in query and "BIGINT" not in query and "SUM" not in query)


@writers
def test_of_copies_those_with_the_earliest_times_stay(
    driver_rows: int | None, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    account = Account(stream("bag", "SELECT v FROM t"))
    for g in (1, 2, 3):
        write(lake, "t", pairs((g, 5), (g, 5), (g, 8)))
        account.refresh(lake)
    assert ages(lake, account.table) == {("5",): [0, 0, 1, 1, 2, 2], ("8",): [0, 1, 2]}
    source = DeltaTable(lake.location("t"))
    source.delete("g = 1")
    source.delete("g > 1 AND v = 8")
    assert account.refresh(lake).action is Action.DIFFERENTIAL
    assert ages(lake, account.table) == {("5",): [0, 0, 1, 1]}


@writers
def test_a_row_of_which_only_the_state_changes_keeps_its_time(lake: Lake) -> None:
    least = Account(stream("least", "SELECT g, MIN(v) AS v FROM t GROUP BY g"), (0,))
    below = Account(stream("below", f"SELECT g, v, {AT} AS since FROM least"))
    least.refresh(lake)
    lake.refresh(below.table)

    write(lake, "t", pairs((1, 6), (2, 6)))
    done = least.refresh(lake)
    assert (done.action, done.inserted, done.deleted) == (Action.DIFFERENTIAL, 2, 2)
    assert ages(lake, least.table) == {("1", "5"): [0], ("2", "6"): [1], ("3", "1"): [0]}
    assert lake.refresh(below.table).action is Action.DIFFERENTIAL
    assert lake.check(below.table).equal
    assert sorted(ages(lake, below.table).values()) == [[0], [0], [1]]

    write(lake, "t", pairs((1, 6)))
    assert least.refresh(lake).inserted == 1
    assert lake.refresh(below.table).action is Action.NO_DATA


@writers
def test_groups_without_a_visible_key_keep_their_own_times(
    driver_rows: int | None, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    write(lake, "t", pairs(*((g, 5 if g < 5 else 2) for g in range(10))))
    table = stream("totals", "SELECT SUM(v) AS total FROM t GROUP BY g")
    lake.refresh(table)
    write(lake, "t", pairs(*((g, 3) for g in range(5, 10))))
    lake.refresh(table)
    assert ages(lake, table) == {("5",): [0] * 5 + [1] * 5}

    write(lake, "t", pairs(*((g, 1) for g in range(20, 60))))  # the result is written as a whole
    lake.refresh(table, full=True)
    write(lake, "t", pairs(*((g, 1) for g in range(5))))
    lake.refresh(table)
    assert ages(lake, table) == {("1",): [1] * 40, ("5",): [0] * 5, ("6",): [2] * 5}


NESTED = {
    "maps": "map(CAST(id AS INT), CAST(IF(id % 2 = 0, '-0.0', '0.0') AS DOUBLE))",
    "variants": "parse_json(concat('[', id % 3, ']'))",
    "lists": "array(named_struct('x', CAST('NaN' AS DOUBLE), 'id', id))",
}


@pytest.mark.parametrize("value", NESTED.values(), ids=NESTED)
def test_rows_with_nested_values_keep_their_times(
    value: str, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
    add = partial(append_by_spark, lake, "t")
    rows = f"SELECT id, {value} AS n FROM range"

    def held() -> dict[int, list[datetime]]:
        found: dict[int, list[datetime]] = {}
        for row in lake.read("nested").orderBy("id", AT).collect():
            found.setdefault(row["id"], []).append(row[AT])
        return found

    add(f"{rows}(0, 4)")
    add(f"{rows}(2, 4)")
    table = stream("nested", "SELECT id, n FROM t")
    lake.refresh(table)
    first = held()
    assert len({at for each in first.values() for at in each}) == 1
    add(f"{rows}(3, 6)")
    on_spark(lake, "DELETE FROM {t} WHERE id = 0")
    assert lake.refresh(table).action is Action.DIFFERENTIAL
    second = held()
    new = second[5][0]
    assert second == {1: first[1], 2: first[2], 3: [*first[3], new], 4: [new], 5: [new]}
    assert lake.refresh(table, full=True).action is Action.FULL
    assert held() == second
    assert lake.check(table).equal


def test_a_table_that_lost_a_file_is_rebuilt_without_the_times_in_it(lake: Lake) -> None:
    table = stream("bag", "SELECT g, v FROM t")
    lake.refresh(table)
    for file in DeltaTable(lake.location("bag")).file_uris():
        Path(file).unlink()
    refreshed(lake, table, Action.FULL, full=True)
    assert len({at for _, at in times(lake, table)}) == 1


def test_intermediate_tables_do_not_have_the_column(lake: Lake) -> None:
    groups = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    account = Account(stream("many", f"SELECT g, n FROM ({groups}) WHERE n > 1"))
    account.refresh(lake)
    write(lake, "t", pairs((2, 2)))
    assert account.refresh(lake).action is Action.DIFFERENTIAL
    [below] = (Path(lake.location("many")) / "_intermediate").iterdir()
    assert AT not in [field.name for field in DeltaTable(below).schema().fields]


def test_tables_that_read_the_column_are_compiled_before_it_exists(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write(lake, "t", pairs((1, 1)))
    above = stream("above", "SELECT g, v FROM t")
    below = stream("below", f"SELECT g, date_trunc('DAY', {AT}) AS day FROM above")
    assert not find_problems([above, below], lake)
    [problem] = find_problems([replace(above, changed_at=""), below], lake)
    assert AT in str(problem.error)


@pytest.mark.parametrize("name", ["__st_n", "__ST_x", "a b", "1a", "é", "_change_type", "a.b"])
def test_a_name_that_no_column_may_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidDefinition, match="changed_at cannot name a column"):
        stream("bag", "SELECT g FROM t", changed_at=name)


def test_a_name_of_a_column_of_the_query_is_refused_when_the_table_is_defined(
    tmp_path: Path,
) -> None:
    lake = Lake(tmp_path)
    write(lake, "t", pairs((1, 1)))
    query = "SELECT g, current_timestamp() AS Loaded_At FROM t"
    with pytest.raises(InvalidDefinition, match="which the query returns") as caught:
        lake.plan(stream("bag", query))
    assert "current_timestamp() AS Loaded_At" in str(caught.value.where)
    assert caught.value.fix.startswith('remove "Loaded_At" from the query')


def test_a_name_of_a_column_that_only_spark_finds_is_refused_by_the_refresh(lake: Lake) -> None:
    query = "SELECT g, rand() AS loaded_at FROM t"
    with pytest.raises(InvalidDefinition, match="which the query returns"):
        lake.refresh(stream("bag", query, mode=Mode.FULL))
