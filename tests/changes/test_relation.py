"""How what is followed is read."""

from __future__ import annotations

import pytest

from changes.table import Table
from dagster_streamtables import Lake
from dagster_streamtables.changes.beginning import follow
from dagster_streamtables.changes.relation.query_reading import QueryReading
from dagster_streamtables.changes.relation.table_reading import TableReading


@pytest.mark.parametrize("relation", ["t", "{path}", "SELECT * FROM t", "SELECT v, k FROM t AS x"])
def test_a_stored_table_is_followed_by_its_log(lake: Lake, t: Table, relation: str) -> None:
    found = follow(lake, relation.format(path=t.location))

    assert isinstance(found.reading, TableReading)
    assert set(found.schema.names) == {"k", "v"}


@pytest.mark.spark
@pytest.mark.parametrize("query", ["SELECT v AS k, k AS v FROM t", "SELECT k FROM t WHERE v = 'a'"])
def test_a_query_is_not_taken_for_its_table(lake: Lake, t: Table, query: str) -> None:
    assert isinstance(follow(lake, query).reading, QueryReading)
