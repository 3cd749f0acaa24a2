"""A star over a join by names has the columns, and their order, that PostgreSQL gives it."""

from __future__ import annotations

from typing import Any

from compiler.test_stars_of_dialects import QUERIES, TABLES
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.dialect import translate


def test_postgres_has_the_same_columns(postgres: Any) -> None:
    for name, columns in TABLES.items():
        postgres.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns.items()))})")
    expected = {
        query: [each.name for each in postgres.execute(query).description] for query in QUERIES
    }
    assert {
        query: list(compile_query(translate(query, "postgres", TABLES), TABLES).schema)
        for query in QUERIES
    } == expected
