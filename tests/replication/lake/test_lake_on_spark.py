"""What only Spark reads or writes is published, too: stream tables, vectors, renamed columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dagster_streamtables import Lake, PublicationEntry, Publications
from dagster_streamtables.errors import FailedQuery, PublisherProblem
from named_rows import NamedRows
from replication.lake.conftest import Sql
from replication.lake.replica import Replica, T, ops, publisher, replica_of
from runtime.orders import TOTALS, orders

pytestmark = pytest.mark.usefixtures("spark")


def test_a_stream_table_of_groups_is_published_without_hidden_columns(lake: Lake) -> None:
    write_deltalake(lake.location("orders"), orders(1, 2, 3))
    lake.refresh(TOTALS)
    replica = replica_of(lake, PublicationEntry("mart.totals", key=("customer",)))
    table = replica.publisher.offer().require()["mart.totals"]
    assert (table.schema.names, table.identity) == (["customer", "total"], ("customer",))

    write_deltalake(lake.location("orders"), orders(4, 5), mode="append")
    lake.refresh(TOTALS)
    told = [(op, old) for op, _, old, _ in ops(replica.follow(), "mart.totals")]
    assert told == [("update", None), ("update", None)]
    lake.refresh(TOTALS, full=True)
    assert not ops(replica.follow(), "mart.totals")
    found = set(NamedRows.of_spark(lake.read("mart.totals")).rows)
    assert set(replica.rows["mart.totals"]) == found


def test_without_a_key_a_stream_table_is_published_by_whole_rows(lake: Lake) -> None:
    write_deltalake(lake.location("orders"), orders(1, 2, 3))
    lake.refresh(TOTALS)

    offer = replica_of(lake, PublicationEntry("mart.totals")).publisher.offer()
    assert offer.require()["mart.totals"].identity is None


@pytest.mark.smoke("replication of a table with deletion vectors")
def test_rows_under_deletion_vectors_are_not_copied(lake: Lake, sql: Sql) -> None:
    sql("CREATE TABLE {t} (k INT) USING delta TBLPROPERTIES (delta.enableDeletionVectors = true)")
    sql("INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(9)")
    sql("DELETE FROM {t} WHERE k < 7")

    assert replica_of(lake, PublicationEntry("t")).rows[T] == {(7,): 1, (8,): 1}


@pytest.mark.long
@pytest.mark.parametrize("where", ["", "k <> 2"])
def test_deletion_vectors_and_renamed_columns(lake: Lake, sql: Sql, where: str) -> None:
    sql(
        "CREATE TABLE {t} (k INT, `My Value` STRING) USING delta TBLPROPERTIES "
        "(delta.enableDeletionVectors = true, delta.columnMapping.mode = 'name')"
    )
    sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (3, 'c')")
    sql("DELETE FROM {t} WHERE k = 1")
    replica = replica_of(lake, PublicationEntry("t", where=where))
    sql("UPDATE {t} SET `My Value` = 'C' WHERE k = 3")
    sql("ALTER TABLE {t} RENAME COLUMN `My Value` TO v")
    sql("INSERT INTO {t} VALUES (4, 'd')")

    replica.follow()

    # By the names that the columns have then: `My Value` is before `k`, and `v` behind it.
    rest: dict[Any, int] = {("C", 3): 2, (4, "d"): 1}
    assert replica.rows[T] == (rest if where else {("b", 2): 1, **rest})


@pytest.mark.long
def test_char_is_compared_as_the_table_does(lake: Lake, sql: Sql) -> None:
    sql("CREATE TABLE {t} (k INT, c CHAR(5)) USING delta")
    replica = replica_of(lake, PublicationEntry("t", where="c = 'ab'"))
    sql("INSERT INTO {t} VALUES (1, 'ab'), (2, 'abc')")

    replica.follow()

    assert replica.rows[T] == {("ab   ", 1): 1}


def test_an_empty_partition_value_is_no_null(lake: Lake) -> None:
    rows = pa.table({"p": ["", None, "a"], "x": [1, 2, 3]})
    write_deltalake(lake.location("t"), rows, partition_by=["p"])

    replica = replica_of(lake, PublicationEntry("t"))

    found = set(NamedRows.of_spark(lake.read("t")).rows)
    assert set(replica.rows[T]) == found


@pytest.mark.long
@pytest.mark.parametrize(
    ("type_", "value", "where"),
    [
        ("MAP<STRING, INT>", "map('a', 1)", "m['a'] = 1"),
        ("VARIANT", "parse_json('{\"a\": 1}')", "m:a::INT = 1"),
    ],
)
def test_what_no_engine_compares_cannot_be_published(
    lake: Lake, sql: Sql, type_: str, value: str, where: str
) -> None:
    sql(f"CREATE TABLE {{t}} (k INT, m {type_}) USING delta")

    with pytest.raises(PublisherProblem, match=r'the table "public.t" cannot be published'):
        replica_of(lake, PublicationEntry("t"))
    sql(f"INSERT INTO {{t}} VALUES (1, {value})")
    Publications(lake.root).set("p", PublicationEntry("t", ("k",), where))
    replica = Replica(publisher(lake)).copy()
    sql(f"INSERT INTO {{t}} VALUES (2, {value}), (3, NULL)")
    replica.follow()
    assert replica.rows[T] == {(1,): 1, (2,): 1}


def test_a_filter_that_fails_on_a_row_is_an_error(lake: Lake) -> None:
    write_deltalake(lake.location("t"), pa.table({"k": [1], "v": [1]}))
    replica = replica_of(lake, PublicationEntry("t", where="1 / v > 0"))
    write_deltalake(lake.location("t"), pa.table({"k": [2], "v": [0]}), mode="append")

    with pytest.raises(FailedQuery):
        replica.follow()
    assert lake.slots.read("replica").held[T].version == 0
