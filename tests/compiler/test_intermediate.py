"""A query maintained over intermediate tables is the query."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, strategies as st
from sqlglot import exp

from compiler import casefile
from compiler.casefile import Case
from compiler.database import Database, Prepared, plan_of, staged
from compiler.test_cases import follow_case, follow_windows, more_random_rows, random_rows
from dagster_streamtables.compiler import Plan
from dagster_streamtables.compiler.maintain.fold import Adding
from dagster_streamtables.compiler.maintain.strategy import FoldStrategy


@cache
def over_intermediates(case: Case) -> Plan:
    return plan_of(case.query).with_intermediates


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    casefile.parametrize_with_cases(
        metafunc, lambda case: bool(over_intermediates(case).intermediates)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("told", [False, True])
def test_the_delta_is_the_one_written_down(case: Case, database: Database, told: bool) -> None:
    follow_case(Prepared(over_intermediates(case)), case, database, net=told, told=told)


@pytest.mark.thorough
@given(data=st.data())
@random_rows
def test_before_plus_change_is_after(case: Case, database: Database, data: st.DataObject) -> None:
    follow_windows(staged(case.query, over_intermediates=True), database, data)


@given(data=st.data())
@more_random_rows
def test_a_recursion_reads_them(database: Database, data: st.DataObject) -> None:
    query = (
        "WITH RECURSIVE r(id, customer, depth) AS (SELECT id, customer, 1 FROM orders"
        " WHERE id = 1 UNION ALL SELECT o.id, o.customer, r.depth + 1 FROM r JOIN orders AS o"
        " ON o.customer = r.id WHERE r.depth < 3 AND o.id IN (SELECT id FROM customers))"
        " SELECT id, customer, depth FROM r"
    )
    prepared = staged(query, over_intermediates=True)

    assert len(prepared.plan.intermediates) == 1
    follow_windows(prepared, database, data)


def tables_of(query: str) -> int:
    return len(plan_of(query).with_intermediates.intermediates)


def test_a_group_at_the_root_is_the_table_itself() -> None:
    query = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"

    assert tables_of(query) == 0
    assert tables_of(f"{query} HAVING SUM(amount) > 1") == 1
    assert tables_of(f"{query} ORDER BY total LIMIT 1") == 1


def test_keys_of_other_types_are_asked_row_by_row() -> None:
    asked = "SELECT c.id, (SELECT SUM(o.amount) FROM orders AS o WHERE o.customer = {}) AS x"

    assert tables_of(asked.format("c.id") + " FROM customers AS c") == 1
    assert tables_of(asked.format("c.region") + " FROM customers AS c") == 0


def test_what_can_fail_is_asked_for_the_keys_that_are_there() -> None:
    asked = "SELECT c.id, (SELECT SUM({}) FROM orders AS o WHERE o.customer = c.id) AS x"

    assert tables_of(asked.format("o.amount") + " FROM customers AS c") == 1
    assert tables_of(asked.format("1 / o.amount") + " FROM customers AS c") == 0


def test_sums_of_floats_are_made_again() -> None:
    """What stands above may compare them, and a last digit would be another row."""
    query = "SELECT s.product FROM sales AS s WHERE s.mass > (SELECT AVG(mass) FROM sales)"
    [below] = plan_of(query).with_intermediates.intermediates
    double = exp.DataType.build("DOUBLE")

    assert isinstance(below.strategy, FoldStrategy)
    assert Adding.of(double, below.strategy.groups) is Adding.NEVER


def test_what_asks_for_the_time_has_none() -> None:
    query = "SELECT id FROM visits WHERE id IN (SELECT id FROM visits WHERE happened > now())"

    assert tables_of(query) == 0
    assert tables_of(query.replace("now()", "TIMESTAMP '2013-01-31'")) == 1


def test_equal_ones_are_one() -> None:
    query = (
        "SELECT a.customer FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS a"
        " JOIN (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS b ON a.n = b.n"
    )

    assert tables_of(query) == 1


def test_groups_of_two_recursions_of_one_name_have_two_names() -> None:
    """An intermediate table is kept when the definition changes, if it holds what it held."""

    def name(step: str) -> str:
        query = (
            "WITH RECURSIVE r(id) AS (SELECT id FROM orders WHERE id = 1 UNION"
            f" SELECT o.id FROM r JOIN orders AS o ON {step})"
            " SELECT n FROM (SELECT id, COUNT(*) AS n FROM r GROUP BY id) WHERE n > 1"
        )
        [table] = plan_of(query).with_intermediates.intermediates
        return table.name

    assert name("o.customer = r.id") == name("o.customer = r.id")
    assert name("o.customer = r.id") != name("o.customer = r.id AND o.amount > 3")


@pytest.mark.parametrize(
    ("columns", "where", "name"),
    [
        (", SUM(amount) OVER (PARTITION BY customer) AS n", "", "__st_e5e725604567"),
        ("", " WHERE id IN (SELECT id FROM customers)", "__st_7505135dbfd2"),
        ("", " WHERE amount > 1", "__st_37a1d048c124"),
    ],
)
def test_a_table_keeps_its_name_if_the_class_of_a_shared_step_is_renamed(
    columns: str, where: str, name: str
) -> None:
    """Its SQL names each shared step after the class, and the table is named after its SQL."""
    keys = ("id AS a, customer AS b", "customer, id")
    one, other = (f"SELECT {each}{columns} FROM orders{where}" for each in keys)
    groups = f"SELECT a, COUNT(*) AS c FROM ({one} UNION ALL {other}) GROUP BY a"
    query = f"SELECT a FROM ({groups}) WHERE c > 1"
    *_, table = plan_of(query).with_intermediates.intermediates

    assert table.name == name
