"""Everyday SQL of PostgreSQL: what is stored after every change is what PostgreSQL returns."""

from __future__ import annotations

from typing import Any

import pytest

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.dialect import translate
from dagster_streamtables.errors import InvalidDefinition
from named_rows import NamedRows
from postgres import cases
from postgres.compared import ours, theirs
from postgres.tables import COLUMNS, STEPS, change, create

_SINGLE = [f"SELECT id, {sql} AS c FROM t" for sql in (*cases.EXPRESSIONS, *cases.REPRESENTED)]
_ALL = [*_SINGLE, *cases.QUERIES, *cases.REPRESENTED_QUERIES]
_DIFFERENTIAL = (Action.DIFFERENTIAL, Action.NO_DATA)
"""A change may touch none of a query's rows."""


@pytest.mark.parametrize(
    "begin", [0, *(pytest.param(begin, marks=pytest.mark.long) for begin in range(1, 8))]
)
def test_everyday_queries_are_translated_and_maintained(begin: int) -> None:
    for query in _ALL[begin::8]:
        compile_query(translate(query, "postgres", COLUMNS), COLUMNS)


@pytest.mark.parametrize(("expression", "why"), cases.REFUSED)
def test_what_would_differ_is_refused(expression: str, why: str) -> None:
    whole = expression.startswith(("SELECT ", "VALUES "))
    query = expression if whole else f"SELECT {expression} AS c FROM t"
    with pytest.raises(InvalidDefinition) as raised:
        translate(query, "postgres", COLUMNS)
    assert why in (raised.value.why or "")
    assert raised.value.fix


def _as_columns(expressions: list[str]) -> str:
    outputs = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(expressions))
    return f"SELECT id, {outputs} FROM t"


def _hold(
    lake: Lake, postgres: Any, queries: dict[str, str], *, steps: int = 3, loosely: bool = False
) -> None:
    """Refresh a stream table for each query after each change, and compare."""
    create(postgres)
    tables = [
        StreamTable(name, query, dialect="postgres", differential_max_change_ratio=0)
        for name, query in queries.items()
    ]
    for place, (deleted, inserted) in enumerate(STEPS[:steps]):
        change(postgres, lake, deleted, inserted)
        for table in tables:
            done = lake.refresh(table)
            assert place == 0 or done.action in _DIFFERENTIAL, (table.query, done)
            expected = theirs(postgres, table.query, loosely=loosely)
            found = ours(lake, table.name, loosely=loosely)
            assert found == expected, _differing(table.query, found, expected)


def _differing(query: str, found: NamedRows, expected: NamedRows) -> str:
    """The columns that differ, where a row has an id; otherwise the rows."""
    if found.names != expected.names or "id" not in found.names:
        return f"{query}\n{found.difference(expected)}"
    id_ = found.names.index("id")
    by_id = {row[id_]: row for row in expected.rows - found.rows}
    cells = [
        (name, theirs, ours)
        for row in found.rows - expected.rows
        if row[id_] in by_id
        for name, theirs, ours in zip(found.names, by_id[row[id_]], row, strict=True)
        if theirs != ours
    ]
    return f"{query}\n{cells or found.difference(expected)}"


def test_everyday_expressions_are_those_of_postgres(lake: Lake, postgres: Any) -> None:
    queries = {"columns": _as_columns(cases.EVERYDAY)}
    queries |= {f"q{place}": query for place, query in enumerate(cases.EVERYDAY_QUERIES)}
    _hold(lake, postgres, queries, steps=2)


@pytest.mark.long
@pytest.mark.parametrize("begin", range(0, len(cases.EXPRESSIONS), 40))
def test_expressions_are_those_of_postgres(lake: Lake, postgres: Any, begin: int) -> None:
    _hold(lake, postgres, {"columns": _as_columns(cases.EXPRESSIONS[begin : begin + 40])})


@pytest.mark.long
def test_queries_are_those_of_postgres(lake: Lake, postgres: Any) -> None:
    _hold(lake, postgres, {f"q{place}": query for place, query in enumerate(cases.QUERIES)})


@pytest.mark.long
def test_what_is_represented_differently_says_the_same(lake: Lake, postgres: Any) -> None:
    queries = {"columns": _as_columns(cases.REPRESENTED)}
    queries |= {f"q{place}": query for place, query in enumerate(cases.REPRESENTED_QUERIES)}
    _hold(lake, postgres, queries, loosely=True)
