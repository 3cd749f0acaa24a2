"""How what is followed is read."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from changes.table import Table
from dagster_streamtables import Lake, View
from dagster_streamtables.changes.position import SubscriptionRequest
from dagster_streamtables.changes.relation.query_reading import QueryReading
from dagster_streamtables.changes.relation.relation import SubscriptionRelation, query_of, table_of
from dagster_streamtables.changes.relation.relation_reading import TableReading
from dagster_streamtables.errors import UnsupportedQuery
from dagster_streamtables.runtime.errors.table_errors import MissingSource


def follow(lake: Lake, relation: str) -> SubscriptionRelation:
    return SubscriptionRequest(lake, relation).relation_at(None)


@pytest.mark.parametrize("relation", ["t", "{path}", "SELECT * FROM t", "SELECT v, k FROM t AS x"])
def test_a_stored_table_is_followed_by_its_log(lake: Lake, t: Table, relation: str) -> None:
    found = follow(lake, relation.format(path=t.location))

    assert isinstance(found.reading, TableReading)
    assert set(found.schema.names) == {"k", "v"}


@pytest.mark.parametrize(
    "name", ["t", "sales.orders", "Sales.Orders", "a_1.b-2", "select", "_x.y$"]
)
def test_a_name_means_what_its_query_means(lake: Lake, name: str) -> None:
    """To the letter: positions that were given out have the digest of the query."""
    columns = {"id": [1], "a.b": [2], "two words": [3], "Ä": [4], "from": [5], "_metadata": [6]}
    more = {"at": pa.array([0], pa.timestamp("us")), "list": [[1]], "map": [{"x": 1}], "f": [0.5]}
    write_deltalake(lake.location(name), pa.table({**columns, **more}))
    query = query_of(name)
    assert query is not None
    found, asked = follow(lake, name), follow(lake, query)

    assert found.fingerprint == asked.fingerprint
    assert found.sources == asked.sources == (name,)
    assert found.source_columns == asked.source_columns
    assert found.reading.first == asked.reading.first
    assert (found.schema, found.reading.types) == (asked.schema, asked.reading.types)
    assert (found.reading.as_json, found.is_time_dependent) == (
        asked.reading.as_json,
        asked.is_time_dependent,
    )


def test_a_name_in_another_case_is_the_table(lake: Lake, t: Table) -> None:
    assert follow(lake, "T").fingerprint == follow(lake, "t").fingerprint
    assert follow(lake, " t ").sources == ("t",)


def test_a_view_is_no_table(lake: Lake, t: Table) -> None:
    views = [View("some", "SELECT k FROM t WHERE v = 'a'")]
    assert table_of("some", views) is table_of("SOME", views) is None
    assert table_of("t", views) == "t"


@pytest.mark.parametrize("name", ["__weight", "__WEIGHT", "__goes", "__row"])
def test_a_column_of_a_reserved_name_is_refused(lake: Lake, name: str) -> None:
    write_deltalake(lake.location("t"), pa.table({"k": [1], name: [1]}))
    with pytest.raises(UnsupportedQuery, match=f'has a column called "{name}"'):
        follow(lake, "t")
    assert follow(lake, "SELECT k FROM t").schema.names == ["k"]


def test_a_table_that_does_not_exist_is_told(lake: Lake) -> None:
    with pytest.raises(MissingSource, match='"nowhere"'):
        follow(lake, "nowhere")


@pytest.mark.spark
@pytest.mark.parametrize("query", ["SELECT v AS k, k AS v FROM t", "SELECT k FROM t WHERE v = 'a'"])
def test_a_query_is_not_taken_for_its_table(lake: Lake, t: Table, query: str) -> None:
    assert isinstance(follow(lake, query).reading, QueryReading)
