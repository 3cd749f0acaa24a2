"""The origins of each output column: known for every maintained query, and the right ones."""

from __future__ import annotations

import pytest

from compiler import casefile
from compiler.casefile import Case
from compiler.database import TABLES, plan_of

maintained = [case for case in casefile.load() if not case.error]
LOWER = {table: {name.lower() for name in columns} for table, columns in TABLES.items()}


@pytest.mark.parametrize("case", maintained, ids=str)
def test_every_output_has_its_origins(case: Case) -> None:
    plan = plan_of(case.query)
    lineage = plan.lineage()
    assert list(lineage) == list(plan.schema)
    for origins in lineage.values():
        for source, column in origins:
            assert source in plan.sources
            assert column.lower() in LOWER[source]


AMOUNT, CUSTOMER, ID = (("orders", name) for name in ("amount", "customer", "id"))
REGION = ("customers", "region")


@pytest.mark.parametrize(
    ("query", "origins"),
    [
        pytest.param(
            "SELECT id, SUM(amount) OVER (PARTITION BY customer ORDER BY id) AS x FROM orders",
            (AMOUNT, CUSTOMER, ID),
            id="a window: its argument, its partition, its order",
        ),
        pytest.param(
            "SELECT c.id, (SELECT MAX(o.amount) FROM orders AS o WHERE o.customer = c.id) AS x "
            "FROM customers AS c",
            (AMOUNT,),
            id="a scalar subquery: what it selects, not what it looks for",
        ),
        pytest.param(
            "SELECT c.id, EXISTS (SELECT o.amount FROM orders AS o WHERE o.customer = c.id) AS x "
            "FROM customers AS c",
            (),
            id="EXISTS: no value",
        ),
        pytest.param(
            "SELECT o.id, o.customer IN (SELECT c.id FROM customers AS c) AS x FROM orders AS o",
            (CUSTOMER, ("customers", "id")),
            id="IN: both sides of the comparison",
        ),
        pytest.param(
            "SELECT c.id, t.x FROM customers AS c, LATERAL (SELECT o.amount + c.id AS x "
            "FROM orders AS o WHERE o.customer = c.id ORDER BY o.id LIMIT 1) AS t",
            (AMOUNT, ("customers", "id")),
            id="LATERAL: what it selects",
        ),
        pytest.param(
            "SELECT v.id, t.x FROM visits AS v LATERAL VIEW explode(v.tags) t AS x",
            (("visits", "tags"),),
            id="a table function: its argument",
        ),
        pytest.param(
            "SELECT id, now() AS x FROM orders", (), id="the time of the refresh: no column"
        ),
        pytest.param(
            "SELECT customer, grouping_id(customer) AS x FROM orders GROUP BY ROLLUP (customer)",
            (),
            id="which grouping set it is: no column",
        ),
        pytest.param(
            "SELECT id, amount AS x FROM orders UNION SELECT id, customer FROM orders",
            (AMOUNT, CUSTOMER),
            id="a union: both sides",
        ),
        pytest.param(
            "WITH RECURSIVE r(id, x) AS (SELECT id, amount FROM orders UNION ALL "
            "SELECT c.id, r.x + LENGTH(c.region) FROM r JOIN customers AS c ON c.id = r.id) "
            "SELECT id, x FROM r",
            (AMOUNT, REGION),
            id="a recursion: its base and its step",
        ),
        pytest.param(
            "WITH RECURSIVE r(id, x, y, z) AS (SELECT id, 1, 2, amount FROM orders UNION ALL "
            "SELECT c.id, r.y, r.z, r.x FROM r JOIN customers AS c ON c.id = r.id) "
            "SELECT id, x FROM r",
            (AMOUNT,),
            id="a recursion that passes columns on: what comes in the third round",
        ),
    ],
)
def test_the_origins_are_the_values_that_a_column_is_computed_from(
    query: str, origins: tuple[tuple[str, str], ...]
) -> None:
    assert set(plan_of(query).lineage()["x"]) == set(origins)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT id, now() AS x, current_date AS y FROM orders", ("x", "y")),
        (
            "SELECT id, x FROM (SELECT id, date_diff(now(), DATE '2024-01-01') AS x FROM orders)",
            "x",
        ),
        ("SELECT customer, MAX(now()) AS x FROM orders GROUP BY customer", "x"),
        ("SELECT id FROM orders UNION ALL SELECT unix_timestamp() FROM orders", ("id",)),
        ("SELECT id, amount AS x FROM orders WHERE amount < year(now())", ()),
        ("SELECT id, 'now()' AS x FROM orders", ()),
    ],
)
def test_a_plan_tells_which_columns_hold_the_time(query: str, columns: tuple[str, ...]) -> None:
    plan = plan_of(query)
    assert plan.time_columns == tuple(columns)
    said = "All rows change as time passes, by the columns" in plan.explain()
    assert said is bool(columns)
