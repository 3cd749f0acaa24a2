"""Names of tables in another case than their folders, as Spark finds them, and of tables that are
not there: the line that names one, and the names that may be meant."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable, View
from dagster_streamtables.errors import DamagedTable, InvalidDefinition
from dagster_streamtables.orchestration.catalog.asset_catalog import build_catalog
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from runtime.delta import write
from runtime.orders import NOWHERE
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
    assert lake.exact_name("t2") == "t2"


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


def test_a_refresh_follows_it(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lake(tmp_path, spark=spark)
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


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(lake_of(tmp_path, "orders", "sales.customers").root, spark=NOWHERE)


def missing(lake: Lake, query: str, **more: object) -> MissingSource:
    table = StreamTable("mart.x", query, **more)  # pyright: ignore
    with pytest.raises(MissingSource) as planned:
        lake.plan(table)
    with pytest.raises(MissingSource) as refreshed:
        lake.refresh(table)
    assert str(refreshed.value) == f'stream table "mart.x": {planned.value}'
    return planned.value


def test_the_line_and_near_names(lake: Lake) -> None:
    error = missing(lake, "SELECT id\nFROM ordres")
    assert error.what == 'there is no table "ordres"'
    assert error.where == "line 2, column 6\nFROM ordres\n     ^^^^^^"
    assert error.why == f"nothing is stored there: {lake.location('ordres')}"
    assert error.fix.startswith("did you mean orders? If not, create it")


def test_the_line_of_the_file(lake: Lake) -> None:
    error = missing(lake, "SELECT id FROM orders\nJOIN x USING (id)", file="/a/x.sql", line=3)
    assert error.where.startswith("/a/x.sql:4:6\n")
    assert error.fix.startswith("create it")


def test_a_name_in_another_schema(lake: Lake) -> None:
    assert "did you mean sales.customers?" in missing(lake, "SELECT id FROM customers").fix


def test_a_view_shows_its_own_file(lake: Lake) -> None:
    view = View("v", "SELECT id\nFROM orderz", file="/a/v.sql", line=2)
    assert missing(lake, "SELECT id FROM v", views=(view,)).where.startswith("/a/v.sql:3:6\n")


def test_another_dialect(lake: Lake) -> None:
    error = missing(lake, "SELECT id\nFROM sales.orders", dialect="postgres")
    assert error.where == "line 2, column 6\nFROM sales.orders\n     ^^^^^^^^^^^^"


def test_a_file_in_the_place_of_a_source(lake: Lake) -> None:
    Path(lake.location("notes")).write_text("")
    with pytest.raises(DamagedTable, match="a file is where a folder should be") as raised:
        lake.refresh(StreamTable("mart.x", "SELECT id FROM notes"))
    assert raised.value.where == lake.location("notes")


def test_a_table_of_a_command(lake: Lake) -> None:
    with pytest.raises(MissingSource, match="did you mean orders") as raised:
        lake.drop("ordrs")
    assert raised.value.where == lake.location("ordrs")
