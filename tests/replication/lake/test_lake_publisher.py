"""A lake publishes the rows and changes of its tables, read from their logs without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from changes.table import Table
from dagster_streamtables import Lake, PublicationEntry
from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.model.replication_model import Operation, change_schema
from replication.lake.replica import KEYED, Replica, T, ops, publish, publisher, replica_of


@pytest.fixture
def t(lake: Lake) -> Table:
    return Table.new(lake.location("t"))


def test_the_acceptance_example_without_filters(lake: Lake) -> None:
    t1, t2 = (Table.new(lake.location(name)) for name in ("t1", "t2"))
    t1.insert((1, "one"), (2, "two"), (3, "three"))
    t2.insert((1, "A"), (2, "B"), (3, "C"))
    publish(lake, PublicationEntry("t1", key=("k",)), name="pub1")
    publish(lake, PublicationEntry("t2", key=("k",)), name="pub2", operations={"truncate"})
    sub1 = Replica(publisher(lake, "pub1"), "sub1").copy()
    sub2 = Replica(publisher(lake, "pub2"), "sub2").copy()

    def follow() -> tuple[list[Any], list[Any]]:
        sub1.follow()
        sub2.follow()
        return sorted(sub1.rows["public.t1"]), sorted(sub2.rows["public.t2"])

    t2_rows = [(1, "A"), (2, "B"), (3, "C")]
    assert follow() == ([(1, "one"), (2, "two"), (3, "three")], t2_rows)
    t1.insert((4, "four"), (5, "five"), (6, "six"))
    t2.insert((4, "D"), (5, "E"), (6, "F"))
    assert follow()[1] == t2_rows
    t1.update("k = 1", v="'ONE'")
    t1.delete("k = 2")
    t2.update("k = 1", v="'AA'")
    t2.delete("k = 2")
    t1_rows = [(1, "ONE"), (3, "three"), (4, "four"), (5, "five"), (6, "six")]
    assert follow() == (t1_rows, t2_rows)
    t1.delete()
    t2.delete()
    assert follow() == ([], [])


def test_a_commit_is_a_transaction_with_old_and_new_rows(lake: Lake, t: Table) -> None:
    replica = replica_of(lake, KEYED)
    t.insert((1, "a"), (2, "b"), (3, "c"))
    t.merge((2, "B"), (4, "d"))
    t.insert()
    t.compact()
    t.delete("k = 1")

    [batch] = replica.follow()

    told, last = ops([batch], T), t.version
    rows = (1, "a"), (2, "b"), (3, "c")
    assert sorted(told[:3], key=repr) == [("insert", 1, None, row) for row in rows]
    assert told[3:5] == [("update", 2, None, (2, "B")), ("insert", 2, None, (4, "d"))]
    assert told[5:] == [("delete", last, (1,), None)]
    changes = batch.tables[T]
    assert changes.rows.schema == change_schema(changes.table)
    assert changes.positions == (1, 2, last)
    assert batch.end == {T: last} and batch.complete and last > 3


def test_without_a_key_rows_are_counted(lake: Lake, t: Table) -> None:
    t.insert((1, "a"), (1, "a"), (1, "a"))
    replica = replica_of(lake, PublicationEntry("t"))
    t.overwrite((1, "a"), (2, "b"), (2, "b"))

    told = ops(replica.follow(), T)

    row = (1, "a")
    assert told == [("delete", 2, row, None)] * 2 + [("insert", 2, None, (2, "b"))] * 2
    assert replica.rows[T] == {(1, "a"): 1, (2, "b"): 2}


def test_a_full_refresh_is_not_a_truncate_and_gives_only_what_differs(lake: Lake, t: Table) -> None:
    t.insert((1, "a"), (2, "b"), (3, "c"))
    replica = replica_of(lake, KEYED)
    t.overwrite((1, "a"), (2, "B"), (4, "d"))
    t.delete("true")
    t.overwrite()

    told = ops(replica.follow(), T)

    assert told[:2] == [("delete", 2, (3,), None), ("update", 2, None, (2, "B"))]
    assert told[2] == ("insert", 2, None, (4, "d"))
    assert {each[0] for each in told[3:]} == {"delete"}
    assert not replica.rows[T]


def test_a_truncate_in_the_middle(lake: Lake, t: Table) -> None:
    t.insert((1, "a"))
    replica = replica_of(lake, KEYED)
    t.insert((2, "b"))
    t.delete()
    t.insert((2, "c"))

    told = ops(replica.follow(), T)

    assert [each[:2] for each in told] == [("insert", 2), ("truncate", 3), ("insert", 4)]
    assert replica.rows[T] == {(2, "c"): 1}


@pytest.mark.parametrize("left_out", list(Operation))
def test_operations_that_are_not_published_are_left_out(
    lake: Lake, t: Table, left_out: Operation
) -> None:
    publish(lake, KEYED, operations=set(Operation) - {left_out})
    t.insert((1, "a"))
    replica = Replica(publisher(lake), lenient=True).copy()
    t.insert((2, "b"), (3, "c"))
    t.update("k = 1", v="'A'")
    t.delete("k = 2")
    t.delete()

    [batch] = replica.follow()

    told = [each[0] for each in ops([batch], T)]
    every = ["insert", "insert", "update", "delete", "truncate"]
    assert told == [op for op in every if op != left_out]
    assert batch.end == {T: 5}


def test_an_update_of_the_key_is_an_update(lake: Lake, t: Table) -> None:
    """An UPDATE is published as one, whatever else is, though its rows have no common key."""
    publish(lake, KEYED, operations={"update"}, name="updates")
    publish(lake, KEYED, operations={"insert", "delete"}, name="others")
    t.insert((1, "a"), (2, "b"))
    updates = Replica(publisher(lake, "updates"), "updates").copy()
    others = Replica(publisher(lake, "others"), "others").copy()
    t.update("k = 1", k="9")

    updates.follow()
    others.follow()

    assert updates.rows[T] == {(9, "a"): 1, (2, "b"): 1}
    assert others.rows[T] == {(1, "a"): 1, (2, "b"): 1}


ABC = pa.schema([("a", pa.int64()), ("My Column", pa.string()), ("c", pa.float64())])


def test_a_column_list_shows_its_columns_in_the_order_of_the_table(lake: Lake) -> None:
    t = Table.new(lake.location("t"), ABC)
    t.insert((1, "x", 1.0), (2, "y", 2.0))
    replica = replica_of(lake, PublicationEntry("t", columns=("MY COLUMN", "A"), key=("a",)))
    t.update("a = 1", c="5.0")
    t.merge((2, "z", 2.0), key="a")

    assert ops(replica.follow(), T) == [("update", 3, None, ("z", 2))]
    assert replica.publisher.offer().require()[T].schema.names == ["a", "My Column"]


def test_inserts_alone_need_no_key_in_the_column_list(lake: Lake, t: Table) -> None:
    entry = PublicationEntry("t", columns=("v",), key=("k",))
    replica = replica_of(lake, entry, operations={"insert", "truncate"})
    t.insert((1, "a"), (2, "a"))
    t.merge((1, "b"), (3, "a"))
    replica.follow()

    assert replica.publisher.offer().require()[T].identity is None
    assert replica.rows[T] == {("a",): 3}  # the updated row is no new one


def test_column_lists_must_agree(lake: Lake, t: Table) -> None:
    publish(lake, PublicationEntry("t", columns=("k",)), name="one")
    publish(lake, PublicationEntry("t"), name="every")
    publish(lake, PublicationEntry("t", columns=("v", "k")), name="all_named")

    assert publisher(lake, "every", "all_named").offer().require()[T].schema.names == ["k", "v"]
    with pytest.raises(PublisherProblem, match="show different columns"):
        publisher(lake, "one", "every").offer().require()


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (PublicationEntry("t", columns=("v",), key=("k",)), "lack its key"),
        (PublicationEntry("t", columns=("x",)), 'has no column "x"'),
        (PublicationEntry("t", key=("x",)), 'has no column "x"'),
        (PublicationEntry("t", where="x > 1"), "does not fit it"),
        (PublicationEntry("t", where="k + 1"), "is not a condition"),
        (PublicationEntry("u"), 'the published table "public.u" does not exist'),
    ],
)
def test_an_entry_that_does_not_fit_its_table_is_told(
    lake: Lake, t: Table, entry: PublicationEntry, told: str
) -> None:
    publish(lake, entry)

    with pytest.raises(PublisherProblem, match=told):
        publisher(lake).offer().require()


def test_all_tables_and_schemas_have_future_tables(lake: Lake) -> None:
    for name in ("t", "s.a", "s.My Table", "s.sub.b", "ss.c"):
        Table.new(lake.location(name))
    publish(lake, name="all", all_tables=True)
    publish(lake, name="schema", schemas=("s",))
    everything, schema = publisher(lake, "all"), publisher(lake, "schema")

    assert set(everything.offer().require()) == {T, "s.a", "s.My Table", "s.sub.b", "ss.c"}
    assert set(schema.offer().require()) == {"s.a", "s.My Table"}
    replica = Replica(schema).copy()
    Table.new(lake.location("s.later")).insert((1, "a"))
    assert set(replica.follow()[-1].end) == {"s.a", "s.My Table"}
    replica.copy("s.later")
    assert replica.rows["s.later"] == {(1, "a"): 1}
    Table(lake.location("s.My Table")).insert((2, "b"))
    replica.follow()
    assert replica.rows["s.My Table"] == {(2, "b"): 1}
