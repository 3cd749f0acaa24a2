"""Row filters choose rows, and turn updates that cross them into inserts and deletes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from changes.table import FEED, Row, Table
from dagster_streamtables import Lake, PublicationEntry
from replication.lake.conftest import Sql
from replication.lake.replica import Replica, T, ops, publish, publisher, replica_of

pytestmark = pytest.mark.usefixtures("spark")


@pytest.mark.smoke("row filters of a replication")
def test_the_acceptance_example(lake: Lake) -> None:
    t3 = Table.new(lake.location("t3"))
    t3.insert((1, "i"), (2, "ii"), (3, "iii"))
    key = ("k",)
    publish(lake, PublicationEntry("t3", key=key), operations={"truncate"}, name="pub3a")
    publish(lake, PublicationEntry("t3", where="k > 5", key=key), name="pub3b")
    sub3 = Replica(publisher(lake, "pub3a", "pub3b"), lenient=True).copy()

    def follow() -> list[Row]:
        sub3.follow()
        return sorted(sub3.rows["public.t3"])

    copied = [(1, "i"), (2, "ii"), (3, "iii")]
    assert follow() == copied
    t3.insert((4, "iv"), (5, "v"), (6, "vi"))
    assert follow() == [*copied, (6, "vi")]
    t3.update("k = 6", v="'VI'")
    t3.update("k = 1", k="50")
    t3.update("k = 6", k="0", v="'zero'")
    t3.update("k = 3", v="'II'")
    t3.delete("k = 3")
    assert follow() == [*copied, (50, "i")]
    t3.delete()
    assert follow() == []


ABC = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.string())])


@pytest.mark.parametrize("settings", [FEED, {}], ids=["feed", "files"])
def test_the_row_filter_scenario(lake: Lake, settings: dict[str, str]) -> None:
    t1 = Table.new(lake.location("t"), ABC, settings)
    places = ["NSW", "QLD", "VIC", "ACT", "NSW", "NT", "QLD", "NSW"]
    t1.insert(*((a, 100 + a, place) for a, place in enumerate(places, 2)))
    publish(lake, PublicationEntry("t", where="(a > 5 AND c = 'NSW')", key=("a", "c")), name="p1")
    sub = Replica(publisher(lake, "p1")).copy()

    def follow() -> tuple[list[Any], list[Row]]:
        told = ops(sub.follow(), T)
        return [(op, old, new) for op, _, old, new in told], sorted(sub.rows[T])

    assert follow() == ([], [(6, 106, "NSW"), (9, 109, "NSW")])
    t1.update("a = 6", b="999")
    six = (6, 999, "NSW")
    assert follow() == ([("update", None, six)], [six, (9, 109, "NSW")])
    t1.update("a = 2", a="555")
    assert follow()[0] == [("insert", None, (555, 102, "NSW"))]
    t1.update("a = 9", c="'VIC'")
    assert follow() == ([("delete", (9, "NSW"), None)], [six, (555, 102, "NSW")])


def test_an_update_that_crosses_the_filter_goes_out_as_what_it_becomes(lake: Lake) -> None:
    t = Table.new(lake.location("t"), ABC)
    t.insert((1, 1, "x"), (2, 9, "x"), (3, 9, "x"), (4, None, "x"))
    sub = replica_of(lake, PublicationEntry("t", where="b > 5", key=("a",)), operations={"update"})
    t.merge((1, 7, "in"), (2, 3, "out"), (3, 8, "stays"), (4, 4, "never"), (5, 9, "new"), key="a")
    t.merge((1, None, "NULL is out"), key="a")

    assert ops(sub.follow(), T) == [
        ("delete", 2, (2,), None),
        ("update", 2, None, (3, 8, "stays")),
        ("insert", 2, None, (1, 7, "in")),
        ("delete", 3, (1,), None),
    ]


def test_the_filter_may_use_columns_that_are_not_published(lake: Lake) -> None:
    t = Table.new(lake.location("t"), ABC)
    t.insert((1, 1, "x"), (2, 9, "x"), (3, 9, "y"))
    sub = replica_of(lake, PublicationEntry("t", ("c",), "b > 5"))
    assert sub.rows[T] == {("x",): 1, ("y",): 1}
    t.merge((1, 7, "x"), (2, 8, "x"), (3, 0, "y"), key="a")

    told = ops(sub.follow(), T)

    assert told == [("delete", 2, ("y",), None), ("insert", 2, None, ("x",))]
    assert sub.rows[T] == {("x",): 2}


@pytest.mark.long
def test_strange_names_types_and_copies(lake: Lake, sql: Sql) -> None:
    name = "s.My Table"
    columns = "`Zwei``Wörter` STRING, at TIMESTAMP, d DECIMAL(38, 18), f DOUBLE"
    sql(f"CREATE TABLE {{t}} ({columns}, s STRUCT<x: INT, y: ARRAY<STRING>>) USING delta", name)
    one = "'é\n', TIMESTAMP '0001-01-01 00:00:00', 12345678901234567890.123456789012345678BD"
    struct = "named_struct('x', 1, 'y', array('a', NULL))"
    row = f"({one}, double('inf'), {struct})"
    sql(f"INSERT INTO {{t}} VALUES {row}", name)
    where = "`zwei``wörter` <> '' -- not the empty one"
    publish(lake, PublicationEntry(name, where=where))
    sub = Replica(publisher(lake))
    with sub.publisher.copy("s", [name]) as copy:
        [first] = copy.rows(name).read_all().to_pylist()
        start = copy.position(name)

    sql(f"INSERT INTO {{t}} VALUES {row}, ('', NULL, NULL, 0, NULL)", name)
    sql("DELETE FROM {t} WHERE d > 0", name)
    batch = sub.publisher.read("s", {name: start}, None, max_rows=100).require()

    told = [(op, old, new) for op, _, old, new in ops([batch], name)]
    row = tuple(first.values())
    assert first["Zwei`Wörter"] == "é\n" and first["s"] == {"x": 1, "y": ["a", None]}
    assert told == [("insert", None, row), ("delete", row, None), ("delete", row, None)]


@pytest.mark.long
def test_a_delete_of_everything_by_spark_is_a_truncate(lake: Lake, sql: Sql) -> None:
    sql("CREATE TABLE {t} (a INT, b INT) USING delta")
    sub = replica_of(lake, PublicationEntry("t", where="b > 5"))
    for condition in ("", " WHERE a = 1", " WHERE b IS NOT NULL"):
        sql("INSERT INTO {t} VALUES (1, 6), (2, 7), (3, 5)")
        sql(f"DELETE FROM {{t}}{condition}")

    told = [each[0] for each in ops(sub.follow(), T)]

    inserts, deletes = ["insert"] * 2, ["delete"]
    assert told == [*inserts, "truncate", *inserts, *deletes, *inserts, *deletes * 3]
