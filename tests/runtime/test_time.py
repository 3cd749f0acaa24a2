"""A query that asks for the time and cannot be maintained, or shall not be: it is run again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dagster_streamtables import Action, Lake, StreamTable
from runtime.delta import refreshed, stored

pytestmark = pytest.mark.spark

REFUSED = "SELECT id, current_user() AS who, now() AS seen FROM orders"
DAY = "SELECT id FROM orders WHERE current_date() > DATE '1999-01-01'"


@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_time_alone_lets_a_query_run_again(mode: str, lake: Lake) -> None:
    """Each refresh has its own time, and the check compares the rows as of that."""
    table = StreamTable("mart.seen", REFUSED, mode)
    refreshed(lake, table)
    before = stored(lake, table.name, ["seen"])
    done = refreshed(lake, table)
    assert (done.action, done.reason.partition(";")[0]) == (Action.FULL, "time passed")
    after = stored(lake, table.name, ["seen"])
    assert not set(before) & set(after)


def test_nothing_is_committed_where_time_changed_nothing(lake: Lake) -> None:
    table = StreamTable("mart.day", DAY, "FULL")
    first = refreshed(lake, table)
    done = refreshed(lake, table)
    assert (done.action, done.version) == (Action.FULL, first.version)
    assert done.data_version == first.data_version
    assert "the result is the same" in done.reason


def test_a_check_of_another_definition_that_asks_for_the_time_is_answered(lake: Lake) -> None:
    table = StreamTable("mart.day", "SELECT id FROM orders", "FULL")
    refreshed(lake, table)
    assert lake.check(replace(table, query=DAY)).equal
