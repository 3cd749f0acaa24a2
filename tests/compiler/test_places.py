"""Where an error says that something stands: in its author's own file and words."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.declare.sql_files import BrokenTable, read_folder
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError, UnsupportedQuery

Files = Callable[..., str]
HEADER = "-- schedule: 5m\n-- owners: team:finance\n\n-- What was paid.\n"


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """The place in the error of ``mart/revenue.sql``, seen from the project's folder."""
    write_deltalake(
        tmp_path / "lake/sales/orders", pa.table({"id": [1], "amount": [2], "day": pa.array(["a"])})
    )
    monkeypatch.chdir(tmp_path)

    def of(**files: str) -> str:
        for name, text in files.items():
            path = tmp_path / "tables/mart" / f"{name}.sql"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        [table] = [t for t in read_folder(tmp_path / "tables") if t.name == "mart.revenue"]
        with pytest.raises(StreamTablesError) as raised:
            if isinstance(table, BrokenTable):
                raise table.error
            Lake(tmp_path / "lake").plan(table)
        return raised.value.where

    return of


def test_the_lines_of_the_header_count(where: Files) -> None:
    query = "SELECT id,\n  rand() AS r\nFROM sales.orders\n"
    assert where(revenue=HEADER + query) == "tables/mart/revenue.sql:6:3\n  rand() AS r\n  ^^^^"


def test_so_do_those_of_a_header_that_is_wrong(where: Files) -> None:
    told = where(revenue="-- schedule: 5m\n-- mode: quick\nSELECT id FROM sales.orders")
    assert told == "tables/mart/revenue.sql:2:10\n-- mode: quick\n         ^^^^^"


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT id\nFROM sales.orders WHERE", "2:"),
        ("  SELECT nope FROM sales.orders", "1:10"),
        ("SELECT id FROM sales.orders;\nSELECT 2 AS b", "2:1"),
    ],
)
def test_what_cannot_be_read_is_in_the_file_too(where: Files, query: str, place: str) -> None:
    assert where(revenue=query).startswith(f"tables/mart/revenue.sql:{place}")


VIEW = "-- kind: view\nSELECT id,\n  amount\nFROM sales.orders\n"


def test_a_view_before_the_place_moves_nothing(where: Files) -> None:
    query = "SELECT paid.id FROM mart.paid AS paid\nWHERE paid.id >\n  rand()"
    told = where(revenue=HEADER + query, paid=VIEW)
    assert told == "tables/mart/revenue.sql:7:3\n  rand()\n  ^^^^"


def test_what_is_wrong_with_a_view_is_in_its_own_file(where: Files) -> None:
    told = where(
        revenue="SELECT id FROM mart.paid",
        paid=VIEW.replace("amount\n", "amount,\n  uuid() AS u\n"),
    )
    assert told == "tables/mart/paid.sql:4:3\n  uuid() AS u\n  ^^^^"


def test_a_view_that_is_wrong_only_where_it_stands_is_shown_there(where: Files) -> None:
    told = where(revenue="SELECT id\nFROM mart.paid VERSION AS OF 3", paid=VIEW)
    assert told.startswith("tables/mart/revenue.sql:2:6\nFROM mart.paid VERSION AS OF 3\n")


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT id,\n  random() AS r\nFROM sales.orders", "tables/mart/revenue.sql:3:3\n"),
        ("SELECT id\nFROM sales.orders WHERE nope = 1", "tables/mart/revenue.sql:3:25\n"),
    ],
)
def test_a_translated_query_is_shown_as_it_was_written(
    where: Files, query: str, place: str
) -> None:
    told = where(revenue=f"-- dialect: postgres\n{query}")
    assert told.startswith(place)
    assert told.splitlines()[1] in query


def test_words_that_only_the_translation_has_have_no_place(where: Files) -> None:
    query = "SELECT id FROM sales.orders WHERE id = ANY (SELECT amount FROM sales.orders) AND nope"
    assert where(revenue=query).startswith("tables/mart/revenue.sql:1:82\n")


def test_words_that_stand_in_the_translation_and_twice_in_the_text_have_none(where: Files) -> None:
    query = "SELECT nope AS a, nope AS b FROM sales.orders WHERE id <> ALL (SELECT 1)"
    assert where(revenue=query) == ""


def test_a_query_in_python_has_its_own_lines(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        _ = StreamTable("a", "\n  SELECT 1 AS b;\n  SELECT 2 AS c").sources
    assert raised.value.where == "line 3, column 3\n  SELECT 2 AS c\n  ^^^^^^"


def test_the_place_survives_being_sent(where: Files) -> None:
    error = UnsupportedQuery("what", where="nothing")
    assert pickle.loads(pickle.dumps(error)).where == "nothing"
    with pytest.raises(StreamTablesError) as raised:
        _ = StreamTable("a", "SELEC 1", file="x.sql", line=4).sources
    sent = pickle.loads(pickle.dumps(raised.value))
    assert sent.place == raised.value.place
    assert sent.about("a").where.startswith("x.sql:4:1\n")
