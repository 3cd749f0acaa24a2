"""A text in double quotes that is also the name of a column: `explain` tells that it is a text."""

from __future__ import annotations

import pytest

from compiler import casefile
from compiler.database import TABLES
from dagster_streamtables import StreamTable, View
from dagster_streamtables.compiler import compile_query

TOLD, MEANT = ([query for [query] in rows] for rows in casefile.tables("quoted_texts.txt").values())
NOTE = (
    "\"amount\" is the text 'amount' in Spark's dialect, not the column: write `amount` for the "
    "column, or 'amount' for the text"
)


@pytest.mark.parametrize("query", TOLD)
def test_a_text_in_the_place_of_a_column_is_told(query: str) -> None:
    plan = compile_query(query, TABLES)
    assert plan.quoted == (NOTE,)
    assert plan.explain().endswith(f"Texts in double quotes that columns are called like\n  {NOTE}")


@pytest.mark.parametrize("query", MEANT)
def test_a_text_that_is_meant_as_one_is_not(query: str) -> None:
    plan = compile_query(query, TABLES)
    assert plan.quoted == ()
    assert "double quotes" not in plan.explain()


def test_a_name_of_another_dialect_is_no_text() -> None:
    query = 'SELECT "amount" FROM orders'
    table = StreamTable("t", query, dialect="postgres")
    assert not compile_query(table.text(TABLES), TABLES).quoted


def test_a_text_in_a_view_is_told() -> None:
    view = View("v", 'SELECT id, "amount" AS n FROM orders')
    table = StreamTable("t", "SELECT n FROM v", views=(view,))
    assert compile_query(table.text(TABLES), TABLES).quoted == (NOTE,)


@pytest.mark.thorough
def test_no_case_has_such_a_text() -> None:
    told = [case for case in casefile.of_duckdb() if compile_query(case.query, TABLES).quoted]
    assert not told, told
