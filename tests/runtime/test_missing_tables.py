"""A table that is not there: the line that names it, and the names that may be meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import write_deltalake

from dagster_streamtables import Lake, StreamTable, View
from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.runtime.errors.tables import MissingSource
from runtime.orders import NOWHERE, orders


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, spark=NOWHERE)
    for name in ("orders", "sales.customers"):
        write_deltalake(lake.location(name), orders(1))
    return lake


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
