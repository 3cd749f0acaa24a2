"""Names of tables in another case than their folders, as Spark finds them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dagster_streamtables import Action, InvalidDefinition, Lake, StreamTable, View
from dagster_streamtables.orchestration.catalog.catalog import build_catalog
from dagster_streamtables.runtime.errors.tables import MissingSource
from runtime.delta import write
from runtime.refreshes import refreshed

ROWS = pa.table({"id": pa.array([1, 2], pa.int32())})


def lake_of(root: Path, *tables: str) -> Lake:
    lake = Lake(root)
    for table in tables:
        write(lake, table, ROWS)
    return lake


def test_the_only_table_that_differs_in_case_is_found(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "t2", "Sales.Orders")
    plan = lake.plan(
        StreamTable("a", "SELECT T2.id FROM T2 JOIN sales.orders AS o ON o.id = t2.id")
    )
    assert plan.sources == ("t2", "Sales.Orders")
    assert lake.columns("T2") == lake.columns("t2") == {"id": "int"}
    assert lake.version("SALES.orders") == 0
    assert lake.spelled("t2") == "t2"


def test_a_table_that_is_spelled_so_comes_first(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "t2", "T2")
    assert lake.plan(StreamTable("a", "SELECT id FROM T2")).sources == ("T2",)
    other = lake_of(tmp_path / "other", "t2x", "T2X")
    with pytest.raises(InvalidDefinition, match='several tables are called "t2X"'):
        other.plan(StreamTable("a", "SELECT id FROM t2X"))


def test_a_name_in_no_case_is_missing(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "t2")
    (tmp_path / "public" / "T3").mkdir()  # a folder without a table
    for name in ("t3", "t22", "sales.t2"):
        with pytest.raises(MissingSource):
            lake.plan(StreamTable("a", f"SELECT id FROM {name}"))


def test_names_in_views(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "t2")
    view = View("v", "SELECT id FROM `T2`")
    assert lake.plan(StreamTable("a", "SELECT id FROM v", views=(view,))).sources == ("t2",)


def test_assets_depend_on_the_one_table(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "t2")
    tables = [
        StreamTable("Mart.Total", "SELECT COUNT(*) AS n FROM T2"),
        StreamTable("again", "SELECT n FROM mart.total JOIN t2 ON n = id"),
    ]
    catalog = build_catalog(tables, lake=lake)
    assert [entry.name for entry in catalog.entries] == ["Mart.Total", "again"]
    total, again = ([key.path for key in e.source_keys.values()] for e in catalog.entries)
    assert (total, again) == ([["t2"]], [["Mart", "Total"], ["t2"]])
    assert list(catalog.observed) == ["t2"]


def test_a_refresh_follows_it(lake: Lake) -> None:
    write(lake, "t2", ROWS)
    tables = [
        StreamTable("Mart.Doubled", "SELECT T2.id * 2 AS d FROM T2"),
        StreamTable("last", "SELECT MAX(d) AS m FROM MART.doubled"),
    ]
    first = lake.refresh_all(reversed(tables))
    assert [each.table for each in first] == ["Mart.Doubled", "last"]
    assert all(each.error is None for each in first)
    write(lake, "t2", ROWS)
    assert refreshed(lake, tables[0]).action is Action.DIFFERENTIAL
    assert refreshed(lake, tables[1]).action in (Action.DIFFERENTIAL, Action.NO_DATA)
    assert lake.refresh(tables[0]).action is Action.NO_DATA
    assert lake.read("LAST").collect()[0][0] == 4
