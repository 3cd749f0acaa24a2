"""Views in the places of their names: the rows are those of DuckDB's own views."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

from compiler import casefile
from dagster_streamtables import View
from dagster_streamtables.compiler.plan.compile import compile_query
from dagster_streamtables.compiler.views.views import (
    CircularViews,
    blame_view,
    sources_through,
    text_of,
    views_of,
)
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery
from dagster_streamtables.runtime.model.stream_table import StreamTable
from named_rows import NamedRows

COLUMNS = {"orders": {"id": "int", "x": "int"}, "sales.users": {"id": "int", "name": "string"}}
VIEWS = {
    view.name: view
    for view in (
        View("big", "WITH o AS (SELECT id, x FROM orders -- all of them\n) SELECT * FROM o -- big"),
        View("renamed", "SELECT id, x + 1 FROM big", ("k", "more")),
        View("sales.people", "SELECT name, x FROM sales.users AS u JOIN renamed ON k = u.id JOIN "
             "big USING (id)"),
        View("pairs", "WITH o AS (SELECT x FROM big), p AS (SELECT x FROM o) "
             "SELECT o.x, p.x AS y FROM o CROSS JOIN p"),
        View("last", "SELECT id, x FROM orders ORDER BY id DESC LIMIT 1;"),
    )
}  # fmt: skip

QUERIES = [query for [query] in casefile.tables("views.txt")["queries"]]


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA sales")
    connection.execute("CREATE TABLE orders AS FROM (VALUES (1, 2), (2, 3), (3, 1)) AS t(id, x)")
    connection.execute(
        "CREATE TABLE sales.users AS FROM (VALUES (1, 'a'), (3, 'c')) AS t(id, name)"
    )
    for view in VIEWS.values():
        columns = f"({', '.join(view.columns)})" if view.columns else ""
        connection.execute(f"CREATE VIEW {view.name}{columns} AS {view.query}")
    return connection


@pytest.mark.parametrize("query", QUERIES)
def test_a_view_is_its_rows(database: duckdb.DuckDBPyConnection, query: str) -> None:
    text = text_of(query, "spark", VIEWS)
    [sql] = sqlglot.transpile(text.sql, read="spark", write="duckdb")

    assert rows(database, sql) == rows(database, query)
    assert not set(text.sources) & set(VIEWS)
    assert set(text.sources) == set(sources_through(query, "spark", VIEWS))


def rows(database: duckdb.DuckDBPyConnection, sql: str) -> NamedRows:
    return NamedRows.of_cursor(database.execute(sql))


def test_a_query_without_views_stays_as_it_is() -> None:
    text = text_of("SELECT id FROM orders", "spark", VIEWS)
    assert text.origin is None


def test_a_view_used_twice_defines_its_names_twice() -> None:
    """Two common table expressions of one name are refused, wherever they stand."""
    text = text_of("SELECT a.id, b.x FROM big AS a JOIN big AS b ON a.id = b.id", "spark", VIEWS)
    plan = compile_query(text, COLUMNS)
    assert list(plan.schema) == ["id", "x"]


def test_views_that_are_read_are_known_and_others_are_not() -> None:
    found = views_of("SELECT * FROM sales.people", "spark", VIEWS)
    assert [view.name for view in found] == ["sales.people", "renamed", "big"]
    assert sources_through("SELECT * FROM sales.people", "spark", VIEWS) == (
        "sales.users",
        "orders",
    )


def test_a_circle_of_views_is_refused_with_its_path() -> None:
    views = {name: View(name, f"SELECT * FROM {other}") for name, other in ("ab", "bc", "ca", "da")}
    for ask in (
        lambda: text_of("SELECT * FROM d", "spark", views),
        lambda: text_of("SELECT * FROM d", "postgres", views),
        lambda: sources_through("SELECT * FROM d", "spark", views),
    ):
        with pytest.raises(CircularViews) as raised:
            ask()
        assert raised.value.where == "a reads b reads c reads a"


def test_a_translation_in_the_words_of_its_author_is_of_spark() -> None:
    text = text_of("SELECT\n  id\nFROM orders", "postgres")
    assert text.dialect == text_of("SELECT id FROM orders", "spark").dialect


def test_a_view_in_another_dialect_is_translated_by_the_types_of_what_it_reads() -> None:
    views = {
        "halves": View("halves", "SELECT id, x / 2 AS half FROM orders", dialect="postgres"),
        "renamed": View("renamed", "SELECT * FROM halves", ("k", "v")),
    }
    text = text_of("SELECT v / 2 AS quarter FROM renamed", "postgres", views, COLUMNS)
    assert "x DIV 2" in text.sql
    assert "v DIV 2" in text.sql


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELEC 1", 'view "v": SELEC does not begin a query'),
        ("SELECT 1; SELECT 2", 'view "v": the text contains 2 statements'),
        ("DELETE FROM orders", 'view "v": DELETE does not begin a query'),
    ],
)
def test_a_text_that_is_no_query_is_refused_by_the_name_of_the_view(query: str, what: str) -> None:
    views = {"v": View("v", query), "w": View("w", "SELECT * FROM v")}
    for outer in ("v", "w"):
        with pytest.raises(InvalidDefinition) as raised:
            text_of(f"SELECT * FROM {outer}", "spark", views)
        assert raised.value.what == what
        assert raised.value.where.startswith("line 1")


def test_what_cannot_be_maintained_is_blamed_on_the_view_that_says_it() -> None:
    views = {
        "around": View("around", "SELECT id, r FROM inner_one"),
        "inner_one": View("inner_one", "SELECT id,\n  rand() AS r FROM orders"),
    }
    with pytest.raises(UnsupportedQuery) as raised:
        compile_query(text_of("SELECT id FROM around", "spark", views), COLUMNS)
    error = blame_view(raised.value, views, COLUMNS)
    assert isinstance(error, UnsupportedQuery)
    assert error.what.startswith('view "inner_one": rand')
    assert error.where.startswith("line 2")


def test_an_old_version_of_a_view_cannot_be_read() -> None:
    with pytest.raises(InvalidDefinition, match='VERSION after the view "big"'):
        text_of("SELECT * FROM big VERSION AS OF 3", "spark", VIEWS)


@pytest.mark.parametrize(
    ("view", "what"),
    [
        (lambda: View("v", " ; "), 'view "v": the query is empty'),
        (lambda: View("v", "SELECT 1", dialect="no"), 'view "v": there is no SQL dialect "no"'),
    ],
)
def test_a_view_that_cannot_be_is_refused(view: object, what: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        view()  # type: ignore[operator]
    assert raised.value.what == what


def test_a_stream_table_reads_what_its_views_read() -> None:
    table = StreamTable("mart.t", "SELECT name FROM sales.people", views=tuple(VIEWS.values()))
    assert table.sources == ("sales.users", "orders")
    assert set(table.text().sources) == {"sales.users", "orders"}
    assert table.text().sql != StreamTable("mart.t", table.query).text().sql
