"""A text in double quotes that is also the name of a column: `explain` tells that it is a text."""

from __future__ import annotations

import pytest

from compiler import casefile
from compiler.database import TABLES
from dagster_streamtables import StreamTable, View
from dagster_streamtables.compiler import compile_query

NOTE = (
    "\"amount\" is the text 'amount' in Spark's dialect, not the column: write `amount` for the "
    "column, or 'amount' for the text"
)


@pytest.mark.parametrize(
    "query",
    [
        'SELECT "amount" FROM orders',
        'SELECT id, "amount" AS paid FROM orders AS o',
        'SELECT id, ("amount") AS paid FROM orders JOIN regions ON true',
        'SELECT paid.n FROM (SELECT "amount" AS n FROM orders) AS paid',
        'WITH a AS (SELECT amount FROM orders) SELECT "amount" AS n FROM a',
        'SELECT o.n FROM (SELECT id, amount FROM orders) AS p JOIN LATERAL (SELECT "amount" AS n '
        "FROM orders) AS o",
        'SELECT COUNT(*) AS n FROM orders GROUP BY "amount"',
        'SELECT id FROM orders ORDER BY "amount" DESC LIMIT 3',
        'SELECT id, COUNT(*) OVER (PARTITION BY "amount") AS n FROM orders',
        'SELECT id, RANK() OVER (ORDER BY "amount", id) AS n FROM orders',
        'SELECT customer, SUM("amount") AS total FROM orders GROUP BY customer',
        'SELECT COUNT(DISTINCT "amount") AS n FROM orders',
        'FROM orders |> SELECT id, "amount" AS paid',
        'SELECT id FROM customers UNION ALL SELECT "amount" FROM orders',
    ],
)
def test_a_text_in_the_place_of_a_column_is_told(query: str) -> None:
    plan = compile_query(query, TABLES)
    assert plan.quoted == (NOTE,)
    assert plan.explain().endswith(f"Texts in double quotes that columns are called like\n  {NOTE}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'amount' AS measure FROM orders",
        "SELECT \"amount\" AS a, 'amount' AS b FROM orders",
        'SELECT "amount" AS measure, amount AS value FROM orders',
        'SELECT "amount" AS measure, SUM(amount) AS value FROM orders GROUP BY "x", id',
        'SELECT "region" AS measure FROM orders',
        "SELECT `amount` FROM orders",
        'SELECT id FROM customers WHERE region = "id" OR region IN ("region", "id")',
        'SELECT CASE WHEN region LIKE "id" THEN "region" ELSE "id" END AS r FROM customers',
        'SELECT CONCAT(region, "id") AS r, COALESCE(region, "id") AS s FROM customers',
        'SELECT o.id FROM orders AS o JOIN customers AS c ON c.region = "id"',
        'SELECT STRING_AGG(country, "name") WITHIN GROUP (ORDER BY country) AS l FROM regions',
    ],
)
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
