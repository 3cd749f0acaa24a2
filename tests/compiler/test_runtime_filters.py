"""Of what is paired with a change only the rows between its keys are read, and none is missed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from sqlglot import exp, parse_one

from compiler import casefile
from compiler.database import Database, staged, step_of_change
from compiler.test_cases import follow_windows, more_random_rows
from dagster_streamtables.compiler import Bounds
from dagster_streamtables.compiler.operators.algebra import Link, Moment, Restriction
from dagster_streamtables.compiler.operators.leaves import Scan
from dagster_streamtables.compiler.operators.sql_builders import column
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.compiler.rewrite.runtime_filters import add_runtime_filters, bounds_of

SEVEN_TO_NINE = Bounds(((exp.Literal.number(7), exp.Literal.number(9)),), null=False)
JOIN = "SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id"

TEXTS = casefile.tables("filtered_queries.txt")
QUERIES = dict(TEXTS["runtime filters"])
BOUNDS = TEXTS["bounds: a query, the source that changed, and what is read between its keys"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
@more_random_rows
def test_bounds_change_no_row(name: str, database: Database, data: st.DataObject) -> None:
    follow_windows(staged(QUERIES[name]), database, data)


def found(query: str, changed: str) -> list[str]:
    """Where a change is read between bounds, when one source moved and its keys are 7 to 9."""
    step = step_of_change(query, changed)

    def known(relation: str, column: str) -> Bounds | None:
        return SEVEN_TO_NINE if relation == f"{changed}@change" else None

    sql = render(add_runtime_filters(step, known), pretty=False)
    return [each.sql("spark") for each in parse_one(sql, read="spark").find_all(exp.Between)]


@pytest.mark.parametrize(("name", "changed", "between"), BOUNDS)
def test_the_other_side_is_bounded(name: str, changed: str, between: str) -> None:
    bounded = [] if between == "nothing" else between.split(", ")
    assert found(QUERIES[name], changed) == [f"`{each}` BETWEEN 7 AND 9" for each in bounded]


def test_only_rows_that_are_touched_lie_between_the_bounds() -> None:
    columns = (("id", exp.DataType.build("bigint")),)
    rows, change = (Scan("orders", columns, moment) for moment in (Moment.AFTER, Moment.CHANGE))
    link = Link(((column("id"), column("id")),))

    def known(relation: str, column: str) -> Bounds | None:
        return SEVEN_TO_NINE if relation == "orders@change" else None

    touched = Restriction(rows, (change,), (link,))
    assert bounds_of(touched, "id", known) == SEVEN_TO_NINE
    assert "BETWEEN 7 AND 9" in render(add_runtime_filters(touched, known))
    others = replace(touched, keep=False)
    assert bounds_of(others, "id", known) is None
    assert "BETWEEN" not in render(add_runtime_filters(others, known))


def test_equal_values_of_types_with_different_orders_are_not_bounded() -> None:
    query = "SELECT o.id, r.country FROM orders AS o JOIN regions AS r ON o.id = r.name"
    assert found(query, "orders") == []


def test_a_key_that_is_never_null_is_looked_up_as_it_is() -> None:
    step = step_of_change(QUERIES["left outer join"], "customers")

    def asked(*, null: bool) -> str:
        bounds = Bounds(SEVEN_TO_NINE.ranges, null=null)
        known = lambda relation, column: bounds if relation == "customers@change" else None  # noqa: E731
        return render(add_runtime_filters(step, known), pretty=False)

    assert "IS NOT DISTINCT FROM" not in asked(null=False)
    assert "IS NOT DISTINCT FROM" in asked(null=True)
