"""A view has no rows of its own: its sources do, and its text is part of each definition."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable, View
from dagster_streamtables.errors import InvalidDefinition
from runtime.delta import stored, write
from runtime.refreshes import maintained, refreshed

TOTALS = maintained("totals", "SELECT half, SUM(x) AS total FROM halves GROUP BY half")
HALVES = View("halves", "SELECT id / 2 AS half, x FROM ok", dialect="postgres")
OK = View("ok", "SELECT id, x FROM orders WHERE x > 0")


def orders(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "x": pa.array([1] * len(ids), pa.int32())})


@pytest.mark.smoke("views")
def test_a_changed_view_rebuilds_the_stream_tables_over_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark, views=[HALVES, OK])
    write(lake, "orders", orders(1, 2, 3))
    refreshed(lake, TOTALS)
    write(lake, "orders", orders(3))
    assert refreshed(lake, TOTALS).action is Action.DIFFERENTIAL
    assert stored(lake, "totals", ["half", "total"]) == {("0", "1"): 1, ("1", "3"): 1}
    assert lake.frontier(TOTALS) == {"orders": 1}

    more = Lake(tmp_path, spark=spark, views=[HALVES, View("ok", "SELECT id, 5 AS x FROM orders")])
    refreshed(more, TOTALS, Action.REINITIALIZE, reason="the definition changed")

    assert stored(lake, "totals", ["half", "total"]) == {("0", "5"): 1, ("1", "15"): 1}


def test_a_view_is_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    random = View("ok", "SELECT id, rand() AS x FROM orders")
    lake = Lake(tmp_path, views=[random, View("halves", "SELECT id AS half, x FROM ok")])
    write(lake, "orders", orders(1))
    with pytest.raises(InvalidDefinition, match='view "ok": rand'):
        lake.plan(TOTALS)


def test_a_stream_tables_own_view_goes_first(tmp_path: Path) -> None:
    lake = Lake(tmp_path, views=[View("halves", "SELECT 1 AS nothing FROM orders")])
    write(lake, "orders", orders(1))
    own = StreamTable(TOTALS.name, TOTALS.query, views=(HALVES, OK))
    assert list(lake.plan(own).schema) == ["half", "total"]
