"""Results that mean the same and look different: told, or refused by choice."""

from __future__ import annotations

import pytest

from dagster_streamtables import OnRepresentation, StreamTable, View
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.dialect import translate
from dagster_streamtables.compiler.dialect.query_translation import translation
from dagster_streamtables.errors import InvalidDefinition
from postgres import cases
from postgres.tables import COLUMNS

JSON = "SELECT id, j -> 'b' AS b FROM t"


def _table(query: str, *, views: tuple[View, ...] = (), refuse: bool = False) -> StreamTable:
    asked = OnRepresentation.REFUSE if refuse else OnRepresentation.TELL
    return StreamTable("mart.t", query, dialect="postgres", views=views, on_representation=asked)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("j ->> 'a'", "spaces"),
        ("jsonb_build_object('a', x)", "spaces"),
        ("ln(n + 10)", "floats"),
        ("ln(d)", "last digit"),
        ("n / 3 / 7", "digits"),
        ("m * m * m", "digits"),
        ("s::numeric", "DECIMAL(38, 18)"),
    ],
)
def test_a_difference_in_representation_is_told(expression: str, told: str) -> None:
    query = f"SELECT {expression} AS c FROM t"
    _, notes = translation(query, "postgres", COLUMNS)
    assert any(told in note for note in notes), notes
    plan = compile_query(_table(query).text(COLUMNS), COLUMNS)
    assert plan.explain().endswith(f"Represented differently\n  {notes[0]}")


def test_what_is_exact_tells_nothing() -> None:
    exact = ["n + m", "round(m / 7, 2)", "s || x", "sum(n) OVER ()"]
    for sql in exact:
        assert translation(f"SELECT {sql} AS c FROM t", "postgres", COLUMNS)[1] == (), sql
    plan = compile_query(translate("SELECT x / 2 AS c FROM t", "postgres", COLUMNS), COLUMNS)
    assert "Represented" not in plan.explain()


def test_a_difference_in_representation_is_refused_by_choice() -> None:
    with pytest.raises(InvalidDefinition, match="is represented differently") as raised:
        _table(JSON, refuse=True).text(COLUMNS)
    assert "other spaces" in raised.value.why
    assert raised.value.fix == "cast or round what differs, or set on_representation to tell"
    assert _table(f"SELECT {cases.EXPRESSIONS[0]} AS c FROM t", refuse=True).text(COLUMNS)


def test_a_difference_in_a_view_is_that_of_the_query() -> None:
    view = View("v", JSON, dialect="postgres")
    assert _table("SELECT b FROM v", views=(view,)).text(COLUMNS).notes
    with pytest.raises(InvalidDefinition, match="is represented differently"):
        _table("SELECT b FROM v", views=(view,), refuse=True).text(COLUMNS)
