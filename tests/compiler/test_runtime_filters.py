"""Of what is paired with a change only the rows between its keys are read, and none is missed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from sqlglot import exp, parse_one

from compiler.database import TABLES, Database, staged
from compiler.test_cases import follow_windows, more_random_rows
from dagster_streamtables.compiler import Bounds, compile_query
from dagster_streamtables.compiler.operators.algebra import Link, Moment, Restriction
from dagster_streamtables.compiler.operators.leaves import Scan
from dagster_streamtables.compiler.operators.sql_builders import column
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.compiler.rewrite.runtime_filters import add_runtime_filters, bounds_of

SEVEN_TO_NINE = Bounds(((exp.Literal.number(7), exp.Literal.number(9)),), null=False)
JOIN = "SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id"

QUERIES = {
    "join": JOIN,
    "join on text": "SELECT r.country, c.id FROM customers AS c JOIN regions AS r"
    " ON c.region = r.name",
    "join on dates": "SELECT s.product, t.price FROM sales AS s JOIN sales AS t ON s.sold = t.sold",
    "join on types of one order": "SELECT o.id, l.total FROM orders AS o JOIN ledger AS l"
    " ON o.customer = l.account",
    "join of NULL with NULL": "SELECT o.id, c.region FROM orders AS o JOIN customers AS c"
    " ON o.customer <=> c.id",
    "left outer join": JOIN.replace("JOIN", "LEFT JOIN"),
    "join above an outer join": "SELECT o.id, r.id AS other FROM orders AS o LEFT JOIN customers"
    " AS c ON o.customer = c.id JOIN orders AS r ON r.id = o.id",
    "outer join above a join": JOIN.replace("SELECT", "SELECT r.country,")
    + " LEFT JOIN regions AS r ON r.name = c.region",
    "semi join": "SELECT id FROM orders WHERE customer IN (SELECT id FROM customers)",
    "anti join": "SELECT id FROM orders AS o WHERE NOT EXISTS"
    " (SELECT 1 FROM customers AS c WHERE c.id = o.customer)",
    "join with groups": "SELECT c.region, g.n FROM customers AS c JOIN"
    " (SELECT customer, SUM(id) AS id, COUNT(*) AS n FROM orders GROUP BY customer) AS g"
    " ON g.customer = c.id AND g.id = c.id",
    "join with a union": "SELECT u.id, c.region FROM customers AS c JOIN"
    " (SELECT customer AS id FROM orders UNION ALL SELECT amount FROM orders) AS u ON u.id = c.id",
    "join with what an expression makes": "SELECT o.id, c.region FROM customers AS c JOIN"
    " (SELECT id, customer + 1 AS customer FROM orders) AS o ON o.customer = c.id",
    "groups of a join": "SELECT c.region, MAX(o.amount) AS most FROM orders AS o"
    " JOIN customers AS c ON o.customer = c.id GROUP BY c.region",
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
@more_random_rows
def test_bounds_change_no_row(name: str, database: Database, data: st.DataObject) -> None:
    follow_windows(staged(QUERIES[name]), database, data)


def found(query: str, changed: str) -> list[str]:
    """Where a change is read between bounds, when one source moved and its keys are 7 to 9."""
    plan = compile_query(query, TABLES)
    stored = dict.fromkeys(plan.stored_columns, "bigint")
    step = plan.change(stored=stored, unmoved=frozenset(TABLES) - {changed})

    def known(relation: str, column: str) -> Bounds | None:
        return SEVEN_TO_NINE if relation == f"{changed}@change" else None

    sql = render(add_runtime_filters(step, known), pretty=False)
    return [each.sql("spark") for each in parse_one(sql, read="spark").find_all(exp.Between)]


@pytest.mark.parametrize(
    ("name", "changed", "between"),
    [
        ("join", "orders", ["c.id"]),
        ("join", "customers", ["o.customer"]),
        ("join on text", "customers", ["r.name"]),
        ("join on dates", "sales", ["t.sold", "s.sold"]),
        ("join on types of one order", "orders", ["l.account"]),
        ("join of NULL with NULL", "customers", ["o.customer"]),
        ("left outer join", "orders", ["c.id"]),
        ("left outer join", "customers", ["o.customer", "c.id", "c.id"]),
        ("semi join", "orders", ["id"]),
        ("semi join", "customers", ["orders.customer", "id", "id"]),
        ("anti join", "orders", ["c'.id"]),
        ("join with groups", "orders", ["c.id", "key_0", "key_0"]),
        ("join with a union", "orders", ["c.id"]),
        ("join with a union", "customers", ["u.id"]),
        ("join with what an expression makes", "customers", ["o.customer"]),
        ("join with what an expression makes", "orders", []),
        ("groups of a join", "customers", ["o.customer"]),
    ],
)
def test_the_other_side_is_bounded(name: str, changed: str, between: list[str]) -> None:
    assert found(QUERIES[name], changed) == [f"`{each}` BETWEEN 7 AND 9" for each in between]


def test_only_rows_that_are_touched_lie_where_what_touches_them_does() -> None:
    columns = (("id", exp.DataType.build("bigint")),)
    rows, change = (Scan("orders", columns, moment) for moment in (Moment.AFTER, Moment.CHANGE))
    link = Link(((column("id"), column("id")),))

    def known(relation: str, column: str) -> Bounds | None:
        return SEVEN_TO_NINE if relation == "orders@change" else None

    touched = Restriction(rows, (change,), (link,))
    assert bounds_of(touched, "id", known) == SEVEN_TO_NINE
    assert bounds_of(replace(touched, keep=False), "id", known) is None


def test_rows_that_nothing_touches_lie_below_and_above_the_bounds() -> None:
    columns = (("id", exp.DataType.build("bigint")),)
    rows, change = (Scan("orders", columns, moment) for moment in (Moment.AFTER, Moment.CHANGE))
    link = Link(((column("id"), column("id")),))

    def known(relation: str, column: str) -> Bounds | None:
        return SEVEN_TO_NINE if relation == "orders@change" else None

    touched = Restriction(rows, (change,), (link,))
    assert "BETWEEN 7 AND 9" in render(add_runtime_filters(touched, known))
    assert "BETWEEN" not in render(add_runtime_filters(replace(touched, keep=False), known))


def test_equal_values_of_types_with_different_orders_are_not_bounded() -> None:
    query = "SELECT o.id, r.country FROM orders AS o JOIN regions AS r ON o.id = r.name"
    assert found(query, "orders") == []


def test_a_key_that_is_never_null_is_looked_up_as_it_is() -> None:
    plan = compile_query(QUERIES["left outer join"], TABLES)
    stored = dict.fromkeys(plan.stored_columns, "bigint")
    step = plan.change(stored=stored, unmoved=frozenset(TABLES) - {"customers"})

    def asked(*, null: bool) -> str:
        bounds = Bounds(SEVEN_TO_NINE.ranges, null=null)
        known = lambda relation, column: bounds if relation == "customers@change" else None  # noqa: E731
        return render(add_runtime_filters(step, known), pretty=False)

    assert "IS NOT DISTINCT FROM" not in asked(null=False)
    assert "IS NOT DISTINCT FROM" in asked(null=True)
