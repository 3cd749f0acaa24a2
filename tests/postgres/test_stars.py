"""A star over a join by names has the columns, and their order, that PostgreSQL gives it."""

from __future__ import annotations

from typing import Any

from compiler.test_stars_of_dialects import QUERIES, TABLES
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.dialect import translate


def test_postgres_has_the_same_columns(postgres: Any) -> None:
    for name, columns in TABLES.items():
        postgres.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns.items()))})")
    for query in QUERIES:
        ours = compile_query(translate(query, "postgres", TABLES), TABLES).schema
        assert list(ours) == [each.name for each in postgres.execute(query).description], query
