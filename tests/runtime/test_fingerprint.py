"""Fingerprints: which tables of older versions are rebuilt."""

from __future__ import annotations

import pytest

from compiler.database import TABLES
from dagster_streamtables import StreamTable
from dagster_streamtables.compiler import QueryPlan, compile_query
from dagster_streamtables.runtime.model.refresh_work import fingerprint_of

COLUMNS = {"t": {"id": "int", "n": "decimal(10,2)"}}


def _layout(query: str, dialect: str) -> str:
    table = StreamTable("result", query, dialect=dialect)
    plan = compile_query(table.text(COLUMNS), COLUMNS)
    return fingerprint_of(table, plan).partition(".")[2]


@pytest.mark.parametrize(
    ("query", "is_rebuilt"),
    [
        ("SELECT id, n FROM (SELECT * FROM t) AS q", True),
        ("WITH q AS (SELECT * FROM t) SELECT id FROM q", True),
        ("SELECT * FROM t", False),
        ("SELECT id, n FROM (SELECT id, n FROM t) AS q", False),
        ("SELECT q.c FROM (SELECT COUNT(*) AS c FROM t) AS q", False),
    ],
)
def test_a_translation_over_a_star_is_rebuilt(query: str, is_rebuilt: bool) -> None:
    assert (_layout(query, "postgres") != _layout(query, "spark")) is is_rebuilt


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
        (
            "SELECT last_value(amount) OVER (ORDER BY id) AS v FROM orders",
            ("names of fields", "values of ties"),
        ),
        ("SELECT first_value(amount) OVER (ORDER BY id) AS v FROM orders", ()),
        ("SELECT sum(id) OVER (ORDER BY id ROWS 1 PRECEDING) AS v FROM orders", ()),
        (
            "SELECT sum(id) OVER (ORDER BY id rows 1 preceding) AS v FROM orders",
            ("values of ties",),
        ),
        (
            "SELECT rank() OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS v FROM orders",
            ("values of ties",),
        ),
        (
            "SELECT last_value(amount) OVER (ORDER BY id RANGE 1 PRECEDING) AS v FROM orders",
            ("names of fields",),
        ),
    ],
)
def test_only_what_an_older_version_read_otherwise_is_rebuilt(
    query: str, rules: tuple[str, ...]
) -> None:
    plan = compile_query(query, TABLES)
    assert isinstance(plan, QueryPlan)
    assert plan.newer_rules == rules
