"""Stars inside of calls, stars of structs, columns of one name, and parentheses.

The plan is that of the query with its columns written out; what Spark answers is tested in
`runtime/test_as_spark_takes_it.py`.
"""

from __future__ import annotations

import duckdb
import pytest

from compiler import casefile
from compiler.database import TABLES
from dagster_streamtables.compiler import Plan, compile_query
from dagster_streamtables.compiler.dialect import translate
from dagster_streamtables.errors import InvalidDefinition

JOINED = "orders AS o JOIN customers AS c ON o.customer = c.id"
ALIKE, OF_JOINS = casefile.tables("stars.txt").values()


def _bare(plan: Plan) -> str:
    """Quotes and case aside: a name that is not the author's is quoted."""
    return plan.change_sql().replace("`", "").lower()


@pytest.mark.parametrize(("query", "written_out"), ALIKE)
def test_the_columns_are_those_written_out(query: str, written_out: str) -> None:
    plan, other = compile_query(query, TABLES), compile_query(written_out, TABLES)
    lowered = [[name.lower() for name in each.stored_columns] for each in (plan, other)]
    assert lowered[0] == lowered[1]
    assert _bare(plan) == _bare(other)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        (f"SELECT * FROM (SELECT * FROM {JOINED})", 'two output columns are called "id"'),
        (f"SELECT x.id FROM (SELECT * FROM {JOINED}) AS x", 'column "x.id" is ambiguous'),
        (f"SELECT id, amount FROM (SELECT * FROM {JOINED})", 'column "id" is ambiguous'),
    ],
)
def test_a_repeated_name_cannot_be_mentioned(query: str, what: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        compile_query(query, TABLES)
    assert raised.value.what == what


KEYED = {
    "a": {"x": "int", "k": "int", "v": "int"},
    "b": {"y": "int", "k": "bigint", "w": "int"},
    "c": {"z": "int", "q": "int", "k": "int"},
}


@pytest.mark.parametrize("query", [query for [query] in OF_JOINS])
def test_duckdb_has_the_same_columns(query: str) -> None:
    with duckdb.connect() as database:
        for name, columns in KEYED.items():
            database.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns.items()))})")
        expected = [column[0] for column in database.execute(query).description or ()]
    assert list(compile_query(translate(query, "duckdb", KEYED), KEYED).schema) == expected
