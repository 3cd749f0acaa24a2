"""Traps of columns: they come, go, change their type or name, and have names that need quotes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dagster_streamtables import Action, InvalidDefinition, Lake, StreamTable
from runtime.delta import held, refreshed, stored, write
from runtime.orders import LARGE, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

EVERY = StreamTable("mart.every", "SELECT * FROM orders", differential_max_change_ratio=0)
NOTES = StreamTable("mart.notes", "SELECT id, note FROM orders", differential_max_change_ratio=0)
MAPPED = {"delta.columnMapping.mode": "name"}


def mapped(spark: SparkSession, folder: Path) -> tuple[Lake, str]:
    """A lake with orders whose files have other column names than the table, and its place."""
    lake = Lake(folder, spark=spark)
    rows = spark.createDataFrame(orders(*range(20))).coalesce(1)
    rows.write.format("delta").options(**MAPPED).save(lake.location("orders"))
    return lake, f"delta.`{lake.location('orders')}`"


def test_p13_a_new_column_is_a_change_to_those_who_read_it_only(lake: Lake) -> None:
    for table in (EVERY, LARGE):
        refreshed(lake, table)
    more = orders(20, 21).append_column("colour", pa.array(["red", None]))
    write(lake, "orders", more, schema_mode="merge", configuration=None)

    every, large = refreshed(lake, EVERY), refreshed(lake, LARGE)

    assert every.action is Action.REINITIALIZE
    assert list(lake.columns(EVERY.name) or ()) == ["id", "customer", "amount", "note", "colour"]
    assert (large.action, large.inserted) == (Action.DIFFERENTIAL, 2)


def test_p13_a_wider_type_is_a_change_to_those_who_read_it_only(
    lake: Lake, spark: SparkSession
) -> None:
    for table in (LARGE, NOTES):
        refreshed(lake, table)
    place = f"delta.`{lake.location('orders')}`"
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    spark.sql(f"ALTER TABLE {place} ALTER COLUMN amount TYPE BIGINT")
    spark.sql(f"INSERT INTO {place} VALUES (20, 2, 5000000000, 'wide')")
    spark.sql(f"DELETE FROM {place} WHERE id = 4")

    large, notes = refreshed(lake, LARGE), refreshed(lake, NOTES)

    assert large.action is Action.REINITIALIZE
    assert stored(lake, LARGE.name, ["id", "amount"])["20", "5000000000"] == 1
    assert (notes.action, notes.inserted, notes.deleted) == (Action.DIFFERENTIAL, 1, 1)


def test_p13_a_renamed_column_is_an_error_to_those_who_read_it_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, place = mapped(spark, tmp_path)
    for table in (LARGE, NOTES):
        refreshed(lake, table)
    before = held(lake, LARGE.name)
    spark.sql(f"ALTER TABLE {place} RENAME COLUMN amount TO price")
    spark.sql(f"INSERT INTO {place} VALUES (20, 2, 7, 'new')")

    with pytest.raises(InvalidDefinition, match="amount"):
        lake.refresh(LARGE)
    assert (lake.version(LARGE.name), held(lake, LARGE.name)) == (0, before)
    notes = refreshed(lake, NOTES)
    assert (notes.action, notes.inserted) == (Action.DIFFERENTIAL, 1)
    assert stored(lake, NOTES.name, ["id", "note"])["20", "new"] == 1

    renamed = StreamTable(LARGE.name, LARGE.query.replace("amount", "price"))
    assert refreshed(lake, renamed).action is Action.REINITIALIZE


def test_p32_names_are_quoted_wherever_they_stand(spark: SparkSession, tmp_path: Path) -> None:
    """Both sides have the same names, and the stored table those that Delta allows."""
    lake = Lake(tmp_path, spark=spark)
    odd = {"a b": [1, 2, 3], "A": ["x", "y", "z"], "order": [1, 1, 2], "x.y": [1, None, 3]}
    for name in ("left", "select"):
        write(lake, name, pa.table(odd))
    select = "SELECT l.`a b` AS `a.b`, l.`order`, r.`x.y` AS `x.y`, r.`A` AS `group-by` "
    joined = "FROM `left` AS l JOIN `select` AS r ON r.`a b` = l.`a b`"
    grouped = f"SELECT l.`order`, COUNT(*) AS `count.*`, MAX(r.`x.y`) AS `x.y` {joined} GROUP BY 1"
    bag = StreamTable("bag", select + joined, differential_max_change_ratio=0)
    keyed = StreamTable("keyed", grouped, differential_max_change_ratio=0)
    for table in (bag, keyed):
        refreshed(lake, table)
    spark.sql(f"DELETE FROM delta.`{lake.location('left')}` WHERE `a b` = 2")
    write(lake, "select", pa.table({name: values[2:] for name, values in odd.items()}))

    for table in (bag, keyed):
        assert refreshed(lake, table).action is Action.DIFFERENTIAL


@pytest.mark.parametrize(
    ("second", "value"), [(pa.int64(), 2), (pa.string(), "a")], ids=["integers", "strings"]
)
def test_p33_nested_columns_with_null_inside_and_outside(
    second: pa.DataType, value: object, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
    pair = pa.struct({"x": pa.int64(), "y": second})
    pairs = [{"x": None, "y": None}, None, {"x": 1, "y": None}, {"x": 1, "y": value}]
    lists = [[], None, [None], [1, None]]
    rows = pa.table({"pair": pa.array(pairs, pair), "list": pa.array(lists, pa.list_(pa.int64()))})
    write(lake, "nested", pa.concat_tables([rows, rows]))
    bag = StreamTable("bag", "SELECT pair, list FROM nested", differential_max_change_ratio=0)
    keyed = StreamTable(
        "keyed",
        "SELECT pair, list, COUNT(*) AS n FROM nested GROUP BY pair, list",
        differential_max_change_ratio=0,
    )
    for table in (bag, keyed):
        refreshed(lake, table)
    # One copy of each goes but of the last; the struct of NULLs is not the NULL.
    write(
        lake, "nested", pa.concat_tables([rows, rows.slice(3), rows.slice(1, 1)]), mode="overwrite"
    )

    for table in (bag, keyed):
        assert refreshed(lake, table).action is Action.DIFFERENTIAL
    held = lake.read("keyed").where("pair IS NULL OR pair.x IS NULL").collect()
    assert sorted(row["n"] for row in held) == [1, 2]


@pytest.mark.parametrize("feed", [True, False], ids=["feed", "no feed"])
def test_p38_a_row_moves_from_one_partition_to_another(
    feed: bool, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
    # Without a feed, also values that a path has to encode.
    a, b, c = ("a", "b", "c") if feed else ("a b", "50%", "x=y/z")
    rows = pa.table({"id": range(8), "part": [a, b, c, None] * 2, "n": [1] * 8})
    write(lake, "parts", rows, feed=feed, partition_by=["part"])
    table = StreamTable(
        "mart.parts",
        "SELECT part, SUM(n) AS n, COUNT(*) AS rows FROM parts GROUP BY part",
        differential_max_change_ratio=0,
    )
    refreshed(lake, table)
    spark.sql(f"UPDATE delta.`{lake.location('parts')}` SET part = '{b}' WHERE id = 2")
    moved = refreshed(lake, table)
    write(lake, "parts", pa.table({"id": [10, 11], "part": [c, None], "n": [5, 5]}))
    added = refreshed(lake, table)

    assert (moved.action, moved.inserted, moved.deleted) == (Action.DIFFERENTIAL, 2, 2)
    assert (moved.windows["parts"].capture, added.windows["parts"].capture) == (
        "feed" if feed else "snapshots",
        "appended",
    )
    held = {row["part"]: row["n"] for row in lake.read(table.name).collect()}
    assert held == {a: 2, b: 3, c: 6, None: 7}
