"""Rules that older versions did not have: what they stored by others is rebuilt."""

from __future__ import annotations

import pytest

from compiler.database import TABLES
from dagster_streamtables.compiler import QueryPlan, compile_query

PAIRS = "WITH pairs AS (SELECT id, customer FROM orders) SELECT customer FROM pairs AS p"
JOINED = "SELECT o.amount FROM orders AS o JOIN orders AS p ON o.id = p.customer"


@pytest.mark.parametrize(
    ("query", "rules"),
    [
        (f"{PAIRS} (customer, id)", ("names of definitions",)),
        (PAIRS, ()),
        (f"{JOINED} NATURAL JOIN customers", ("names of NATURAL",)),
        (
            "SELECT o.amount FROM (orders AS o JOIN orders AS p ON o.id = p.customer) "
            "NATURAL JOIN customers",
            ("names of NATURAL",),
        ),
        (
            "WITH twice AS (SELECT o.id, p.id FROM orders AS o JOIN orders AS p ON o.id = p.id) "
            "SELECT region FROM twice NATURAL JOIN customers",
            ("names of NATURAL",),
        ),
        ("SELECT amount FROM orders NATURAL JOIN customers", ()),
        (f"{JOINED} JOIN customers AS c ON c.id = o.id", ()),
    ],
)
def test_only_what_an_older_version_read_otherwise_is_rebuilt(
    query: str, rules: tuple[str, ...]
) -> None:
    plan = compile_query(query, TABLES)
    assert isinstance(plan, QueryPlan)
    assert plan.newer_rules == rules
