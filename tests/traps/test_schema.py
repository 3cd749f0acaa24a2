"""Traps of columns: they come, go, change their type or name, and have names that need quotes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.errors import InvalidDefinition
from runtime.delta import held, on_spark, stored, write, write_by_spark
from runtime.orders import LARGE, orders
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed
from runtime.ways import feeds, no_orders

pytestmark = pytest.mark.long

EVERY = maintained("mart.every", "SELECT * FROM orders")
NOTES = maintained("mart.notes", "SELECT id, note FROM orders")
ODD = ["a b", "50%", "x=y/z", "ü"]
"""Values of partitions that a path has to encode."""
MAPPED = {"columnMapping.mode": "name"}
"""Of a table whose files have other column names."""


def test_p13_a_new_column_is_a_change_to_those_who_read_it_only(lake: Lake) -> None:
    each_refreshed(lake, EVERY, LARGE)
    more = orders(20, 21).append_column("colour", pa.array(["red", None]))
    write(lake, "orders", more, schema_mode="merge", configuration=None)

    refreshed(lake, EVERY, Action.REINITIALIZE)
    refreshed(lake, LARGE, Action.DIFFERENTIAL, inserted=2)
    assert list(lake.columns(EVERY.name) or ()) == ["id", "customer", "amount", "note", "colour"]


def test_p13_a_wider_type_is_a_change_to_those_who_read_it_only(lake: Lake) -> None:
    each_refreshed(lake, LARGE, NOTES)
    on_spark(lake, "ALTER TABLE {orders} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    on_spark(lake, "ALTER TABLE {orders} ALTER COLUMN amount TYPE BIGINT")
    on_spark(lake, "INSERT INTO {orders} VALUES (20, 2, 5000000000, 'wide')")
    on_spark(lake, "DELETE FROM {orders} WHERE id = 4")

    refreshed(lake, LARGE, Action.REINITIALIZE)
    refreshed(lake, NOTES, Action.DIFFERENTIAL, inserted=1, deleted=1)
    assert stored(lake, LARGE.name, ["id", "amount"])["20", "5000000000"] == 1


@no_orders
def test_p13_a_renamed_column_is_an_error_to_those_who_read_it_only(lake: Lake) -> None:
    write_by_spark(lake, "orders", orders(*range(20)), **MAPPED)
    each_refreshed(lake, LARGE, NOTES)
    before = held(lake, LARGE.name)
    on_spark(lake, "ALTER TABLE {orders} RENAME COLUMN amount TO price")
    on_spark(lake, "INSERT INTO {orders} VALUES (20, 2, 7, 'new')")

    with pytest.raises(InvalidDefinition, match="amount"):
        lake.refresh(LARGE)
    assert (lake.version(LARGE.name), held(lake, LARGE.name)) == (0, before)
    refreshed(lake, NOTES, Action.DIFFERENTIAL, inserted=1)
    assert stored(lake, NOTES.name, ["id", "note"])["20", "new"] == 1

    renamed = StreamTable(LARGE.name, LARGE.query.replace("amount", "price"))
    assert refreshed(lake, renamed).action is Action.REINITIALIZE


def test_p32_names_are_quoted_wherever_they_stand(lake: Lake) -> None:
    """Both sides have the same names, and the stored table those that Delta allows."""
    odd = {"a b": [1, 2, 3], "A": ["x", "y", "z"], "order": [1, 1, 2], "x.y": [1, None, 3]}
    for name in ("left", "select"):
        write(lake, name, pa.table(odd))
    select = "SELECT l.`a b` AS `a.b`, l.`order`, r.`x.y` AS `x.y`, r.`A` AS `group-by` "
    joined = "FROM `left` AS l JOIN `select` AS r ON r.`a b` = l.`a b`"
    grouped = f"SELECT l.`order`, COUNT(*) AS `count.*`, MAX(r.`x.y`) AS `x.y` {joined} GROUP BY 1"
    bag = maintained("bag", select + joined)
    keyed = maintained("keyed", grouped)
    each_refreshed(lake, bag, keyed)
    on_spark(lake, "DELETE FROM {left} WHERE `a b` = 2")
    write(lake, "select", pa.table({name: values[2:] for name, values in odd.items()}))

    each_followed(lake, bag, keyed)


@pytest.mark.parametrize(
    ("second", "value"), [(pa.int64(), 2), (pa.string(), "a")], ids=["integers", "strings"]
)
def test_p33_nested_columns_with_null_inside_and_outside(
    second: pa.DataType, value: object, lake: Lake
) -> None:
    pair = pa.struct({"x": pa.int64(), "y": second})
    pairs = [{"x": None, "y": None}, None, {"x": 1, "y": None}, {"x": 1, "y": value}]
    lists = [[], None, [None], [1, None]]
    rows = pa.table({"pair": pa.array(pairs, pair), "list": pa.array(lists, pa.list_(pa.int64()))})
    write(lake, "nested", pa.concat_tables([rows, rows]))
    bag = maintained("bag", "SELECT pair, list FROM nested")
    keyed = maintained("keyed", "SELECT pair, list, COUNT(*) AS n FROM nested GROUP BY pair, list")
    each_refreshed(lake, bag, keyed)
    # One copy of each goes but of the last; the struct of NULLs is not the NULL.
    write(
        lake, "nested", pa.concat_tables([rows, rows.slice(3), rows.slice(1, 1)]), mode="overwrite"
    )

    each_followed(lake, bag, keyed)
    held = lake.read("keyed").where("pair IS NULL OR pair.x IS NULL").collect()
    assert sorted(row["n"] for row in held) == [1, 2]


@feeds
@pytest.mark.parametrize("parts", [["a", "b", "c"], ODD], ids=["plain", "odd"])
def test_p38_a_row_moves_from_one_partition_to_another(
    parts: list[str], feed: bool, lake: Lake
) -> None:
    _, second, third, *_ = parts
    values = [*parts, None] * 2
    rows = pa.table({"id": range(len(values)), "part": values, "n": [1] * len(values)})
    write(lake, "parts", rows, feed=feed, partition_by=["part"])
    table = maintained(
        "mart.parts", "SELECT part, SUM(n) AS n, COUNT(*) AS rows FROM parts GROUP BY part"
    )
    refreshed(lake, table)
    on_spark(lake, f"UPDATE {{parts}} SET part = '{second}' WHERE id = 2")
    moved = refreshed(lake, table, Action.DIFFERENTIAL, inserted=2, deleted=2)
    write(lake, "parts", pa.table({"id": [10, 11], "part": [third, None], "n": [5, 5]}))
    refreshed(lake, table, capture="appended")

    assert moved.windows["parts"].capture == ("feed" if feed else "snapshots")
    held = {row["part"]: row["n"] for row in lake.read(table.name).collect()}
    assert held == dict.fromkeys(values, 2) | {second: 3, third: 6, None: 7}


EXCHANGED = (
    "RENAME COLUMN id TO other",
    "RENAME COLUMN customer TO id",
    "RENAME COLUMN other TO customer",
)


@no_orders
@pytest.mark.parametrize("inserted", [False, True], ids=["alone", "and a row came"])
@pytest.mark.parametrize(
    "changes",
    [("DROP COLUMN customer", "ADD COLUMN customer BIGINT"), EXCHANGED],
    ids=["dropped and added", "exchanged"],
)
def test_p13_a_column_that_only_has_the_name_of_another_is_not_that_one(
    changes: tuple[str, ...], inserted: bool, lake: Lake
) -> None:
    write_by_spark(lake, "orders", orders(*range(20)), **MAPPED)
    table = StreamTable("mart.ids", "SELECT id, customer FROM orders")
    refreshed(lake, table)
    for change in changes:
        on_spark(lake, f"ALTER TABLE {{orders}} {change}")
    if inserted:
        on_spark(lake, "INSERT INTO {orders} (id, customer) VALUES (1, 100)")

    assert refreshed(lake, table).action is Action.REINITIALIZE


def test_p13_a_column_renamed_in_a_table_of_an_old_protocol(lake: Lake) -> None:
    """Writer version 5 has column mapping without listing it as a feature."""
    notes = maintained("mart.n", "SELECT id, remark FROM orders")
    on_spark(
        lake,
        "ALTER TABLE {orders} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
    )
    on_spark(lake, "ALTER TABLE {orders} RENAME COLUMN note TO remark")
    refreshed(lake, notes)
    on_spark(lake, "INSERT INTO {orders} VALUES (20, 2, 7, 'new')")
    each_followed(lake, notes)
