"""A star over a join by names has the columns, and their order, of the dialect it is written in."""

from __future__ import annotations

import duckdb
import pytest

from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.dialect import translate

TABLES = {
    "a": {"x": "int", "k": "int", "v": "int"},
    "b": {"y": "int", "k": "bigint", "w": "int"},
    "c": {"z": "int", "q": "int", "k": "int"},
}
QUERIES = (
    "SELECT * FROM a JOIN b USING (k)",
    "SELECT * FROM a RIGHT JOIN b USING (k)",
    "SELECT * FROM a FULL JOIN b USING (k) LEFT JOIN c USING (k)",
    "SELECT * FROM a NATURAL FULL JOIN b",
    "SELECT * FROM b FULL JOIN (a JOIN c USING (k)) USING (k)",
    "SELECT a.* FROM a LEFT JOIN b USING (k)",
    "SELECT b.*, v FROM a LEFT JOIN b USING (k)",
    "SELECT c.*, k + 1 AS next FROM a FULL JOIN b USING (k) FULL JOIN c USING (k)",
    "SELECT * FROM (SELECT b.* FROM a JOIN b USING (k)) AS s",
    "WITH s AS (SELECT * FROM a FULL JOIN b USING (k)) SELECT s.*, z FROM s LEFT JOIN c USING (k)",
)


@pytest.mark.parametrize("query", QUERIES)
def test_duckdb_has_the_same_columns(query: str) -> None:
    with duckdb.connect() as database:
        for name, columns in TABLES.items():
            database.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns.items()))})")
        expected = [column[0] for column in database.execute(query).description or ()]
    assert list(compile_query(translate(query, "duckdb", TABLES), TABLES).schema) == expected
