"""A query whose columns are worked out otherwise than by Spark is refused, never stored.

No such query is known, so one of Spark's rules is replaced by PostgreSQL's while it is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from dagster_streamtables import Lake, StreamTable, subscribe
from dagster_streamtables.compiler.analyze import bind
from dagster_streamtables.compiler.scope.from_columns import POSTGRES, Scopes
from dagster_streamtables.errors import UnsupportedQuery
from dagster_streamtables.runtime.model import definition
from dagster_streamtables.runtime.model.stream_table import Mode
from runtime.delta import write

QUERY = "SELECT n.*, o.amount FROM named n LEFT JOIN orders o USING (id)"
BOTH = "Spark: id, name, amount; worked out: name, id, amount"


@pytest.fixture
def misread(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    write(lake, "named", pa.table({"name": ["a", "b"], "id": pa.array([1, 2], pa.int64())}))
    definition._plan.cache_clear()
    monkeypatch.setattr(bind, "Scopes", partial(Scopes, rules=POSTGRES))
    yield lake
    definition._plan.cache_clear()


def test_nothing_is_stored_under_other_names_than_those_of_spark(misread: Lake) -> None:
    with pytest.raises(UnsupportedQuery, match="Spark gives the query other columns") as refusal:
        misread.refresh(StreamTable("stored", QUERY))
    assert BOTH in str(refusal.value)
    assert misread.version("stored") is None


def test_a_query_in_mode_auto_is_run_in_full_under_the_names_of_spark(misread: Lake) -> None:
    done = misread.refresh(StreamTable("stored", QUERY, mode=Mode.AUTO))
    assert "Spark gives the query other columns" in done.reason
    assert misread.read("stored").columns == ["id", "name", "amount"]


def test_a_subscription_is_refused(misread: Lake) -> None:
    with pytest.raises(UnsupportedQuery) as refusal, subscribe(misread, QUERY) as changes:
        changes.fetch(None, timeout=0)
    assert BOTH in str(refusal.value)
