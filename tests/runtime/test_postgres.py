"""`dialect: postgres` against PostgreSQL itself: the oracle is the engine, not the translation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake
from dagster_streamtables.compiler.dialect import translate
from dagster_streamtables.errors import InvalidDefinition
from postgres.server import connected
from runtime.delta import write
from runtime.refreshes import maintained
from runtime.test_dialect import DUCKDB, POSTGRES, QUERIES, shown

Postgres = psycopg.Connection[tuple[Any, ...]]

ROWS = """
    (1, 7, 2, 70, 0.5, 1.25, 'abc', TRUE, TIMESTAMP '2024-01-31 10:30:45.123456',
     DATE '2024-01-31', ARRAY[1, 2, 3]),
    (2, -7, 2, -70, -2.5, -2.50, 'Ab', FALSE, TIMESTAMP '2023-12-31 23:59:59',
     DATE '2023-12-31', ARRAY[]::INT[]),
    (3, 0, 3, 0, 3.5, 0.10, '', NULL, TIMESTAMP '2024-02-29 00:00:00', DATE '2024-02-29',
     ARRAY[5, NULL, 7]),
    (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""
COLUMNS = (
    "id INT, x INT, y INT, b BIGINT, d DOUBLE PRECISION, n NUMERIC(3, 2), s TEXT, f BOOLEAN, "
    "ts TIMESTAMP, dt DATE, arr INT[]"
)
LARGE = {
    "g": pa.array([1, 1, 2, 2, 2], pa.int32()),
    "i": pa.array([2147483646, 2147483647, 1, 2, 2], pa.int32()),
    "b": pa.array([10**17 + 1, 10**17 + 3, 1, 2, 2], pa.int64()),
    "n": pa.array(
        [Decimal(each) for each in ("100000000000000000.01", "100000000000000000.03", "0.01",
                                    "0.02", "0.02")],
        pa.decimal128(20, 2),
    ),
}  # fmt: skip
# Each is what Postgres gives, to the last digit, or it is refused.
NUMERIC = [
    "AVG(n)", "ROUND(AVG(n), 2)", "AVG(b)", "AVG(i)", "AVG(DISTINCT n)", "SUM(n)", "SUM(i)",
    "SUM(n) / COUNT(n)", "SUM(b) / COUNT(b)", "SUM(i) / 3", "AVG(n) FILTER (WHERE g = 1)",
    "MAX(n) * 2", "MAX(n) + MAX(i)", "ROUND(MAX(n), 1)", "ROUND(MIN(n), 1)", "FLOOR(MAX(n))",
    "CAST(MAX(n) % 7 * 1.5 AS INT)", "CAST(MAX(n) AS BIGINT)", "MAX(n) % 7", "MAX(b) % 7",
    "ABS(MIN(n)) - 1", "STDDEV(i)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY i)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY n)", "COUNT(DISTINCT n)", "MAX(n)::text",
]  # fmt: skip


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with connected(tmp_path_factory.mktemp("postgres")) as connection:
        connection.execute(f"CREATE TABLE t ({COLUMNS})")
        connection.execute(f"INSERT INTO t VALUES {ROWS}")
        yield connection


def test_what_is_expected_of_expressions_is_what_postgres_gives(postgres: Postgres) -> None:
    for sql, expected in POSTGRES:
        rows = postgres.execute(f"SELECT {sql} FROM t ORDER BY id").fetchall()  # type: ignore[arg-type]
        assert [value for row in rows for value in shown(row)] == expected, sql


def test_what_is_expected_of_queries_is_what_postgres_gives(postgres: Postgres) -> None:
    for sql, expected in QUERIES:
        rows = postgres.execute(sql).fetchall()  # type: ignore[arg-type]
        assert sorted(map(shown, rows), key=str) == sorted(expected, key=str), sql


def test_what_is_expected_of_expressions_is_what_duckdb_gives() -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t ({COLUMNS.replace('NUMERIC', 'DECIMAL')})")
    connection.execute(f"INSERT INTO t VALUES {ROWS}")
    for sql, expected in DUCKDB:
        rows = connection.execute(f"SELECT {sql} FROM t ORDER BY id").fetchall()
        assert [value for row in rows for value in shown(row)] == expected, sql


def test_numbers_are_those_of_postgres_after_every_change(lake: Lake, postgres: Postgres) -> None:
    rows = pa.table(LARGE)
    postgres.execute("CREATE TABLE v (g INT, i INT, b BIGINT, n NUMERIC(20, 2))")
    types = {"g": "int", "i": "int", "b": "bigint", "n": "decimal(20,2)"}
    known = [sql for sql in NUMERIC if _translated(f"SELECT {sql} AS c FROM v", types)]
    assert {"SUM(n)", "MAX(n) * 2", "AVG(i)"} <= set(known)
    outputs = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(known))
    query = f"SELECT g, {outputs} FROM v GROUP BY g"
    table = maintained("numbers", query, dialect="postgres")
    for action, some in ((Action.REINITIALIZE, rows.slice(0, 3)), (Action.DIFFERENTIAL, rows[3:])):
        write(lake, "v", some)
        with postgres.cursor() as cursor:
            values = [tuple(row.values()) for row in some.to_pylist()]
            cursor.executemany("INSERT INTO v VALUES (%s, %s, %s, %s)", values)
        assert lake.refresh(table).action is action
        expected = postgres.execute(f"{query} ORDER BY g").fetchall()  # type: ignore[arg-type]
        visible = ["g", *(f"c{i}" for i in range(len(known)))]
        stored = DeltaTable(lake.location("numbers")).to_pyarrow_table(columns=visible)
        found = [tuple(row.values()) for row in stored.sort_by("g").to_pylist()]
        differing = [
            (sql, their, our)
            for theirs, ours in zip(expected, found, strict=True)
            for sql, their, our in zip(["g", *known], theirs, ours, strict=True)
            if not _same(their, our)
        ]
        assert not differing


def _translated(sql: str, types: dict[str, str]) -> bool:
    try:
        return bool(translate(sql, "postgres", {"v": types}))
    except InvalidDefinition:
        return False


def _same(theirs: Any, ours: Any) -> bool:
    """A float is as exact as a float can be, and no decimal that has more digits."""
    if isinstance(ours, float) and theirs is not None:
        return abs(theirs) < 2**53 and math.isclose(theirs, ours, rel_tol=1e-15)
    return theirs == ours


@pytest.mark.parametrize("join", [pytest.param("CROSS JOIN", marks=pytest.mark.long), "LEFT JOIN"])
def test_the_elements_of_an_array_and_their_places_are_maintained(
    lake: Lake, postgres: Postgres, join: str
) -> None:
    query = (
        f"SELECT c.id, t.tag, t.n FROM c {join} LATERAL unnest(c.tags) "
        f"WITH ORDINALITY AS t(tag, n){' ON TRUE' if join == 'LEFT JOIN' else ''}"
    )
    table = maintained("tags", query, dialect="postgres")
    rows = [(1, ["a", "b", "a"]), (2, []), (3, None), (4, [None, "c"])]
    postgres.execute("DROP TABLE IF EXISTS c")
    postgres.execute("CREATE TABLE c (id INT, tags TEXT[])")
    for action, some in ((Action.REINITIALIZE, rows[:2]), (Action.DIFFERENTIAL, rows[1:])):
        ids, tags = zip(*some, strict=True)
        columns = [pa.array(ids, pa.int32()), pa.array(tags, pa.list_(pa.string()))]
        write(lake, "c", pa.table(columns, ["id", "tags"]))
        with postgres.cursor() as cursor:
            cursor.executemany("INSERT INTO c VALUES (%s, %s)", some)
        assert lake.refresh(table).action is action
        stored = DeltaTable(lake.location("tags")).to_pyarrow_table(columns=["id", "tag", "n"])
        found = [tuple(row.values()) for row in stored.to_pylist()]
        expected = postgres.execute(query).fetchall()  # type: ignore[arg-type]
        assert sorted(found, key=str) == sorted(expected, key=str)
