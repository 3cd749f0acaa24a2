"""A plan over a small change is found from its small parts outwards, and is the same relation."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from compiler import casefile
from compiler.database import Database, staged, step_of_change
from compiler.test_cases import follow_windows, more_random_rows
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.compiler.plan.plan_description import outline
from dagster_streamtables.compiler.rewrite.semijoin_reduction import reduce_semijoins

CHAIN = (
    "SELECT o.id, c.region, r.country FROM regions AS r JOIN customers AS c ON c.region = r.name"
    " JOIN orders AS o ON o.customer = c.id"
)
QUERIES = dict(casefile.tables("filtered_queries.txt")["semijoin reduction"])


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
@more_random_rows
def test_it_is_the_same_relation(name: str, database: Database, data: st.DataObject) -> None:
    follow_windows(staged(QUERIES[name]), database, data)


def found(query: str, changed: str) -> list[str]:
    """The lines of the narrowed change when one source moved."""
    step = step_of_change(query, changed)
    return [line.split(maxsplit=1)[1] for line in outline(reduce_semijoins(step)).splitlines()]


def test_joins_begin_with_what_changed() -> None:
    reads = [line for line in found(CHAIN, "orders") if line.startswith("Scan")]

    assert [line.split()[1] for line in reads] == ["orders", "customers", "regions"]


def test_a_restriction_stands_where_its_columns_are() -> None:
    lines = found(QUERIES["outer join above a chain"], "sales")
    place = next(i for i, line in enumerate(lines) if line.startswith("Restriction"))

    assert lines[place + 1].startswith("Scan customers")


def test_both_sides_of_an_outer_join_are_restricted() -> None:
    lines = found(CHAIN.replace("JOIN orders", "LEFT JOIN orders"), "orders")
    restricted = [lines[i + 1] for i, line in enumerate(lines) if line.startswith("Restriction")]

    assert {line.split()[1] for line in restricted} == {"customers", "orders"}


@pytest.mark.parametrize(
    ("condition", "both"), [("o.customer = c.id", True), ("o.customer = c.region", False)]
)
def test_equal_values_of_other_types_restrict_one_side_only(condition: str, both: bool) -> None:
    query = f"SELECT o.id FROM orders AS o LEFT JOIN customers AS c ON {condition}"
    lines = found(query, "customers")
    restricted = [lines[i + 1] for i, line in enumerate(lines) if line.startswith("Restriction")]

    assert any(line.startswith("Scan customers") for line in restricted) == both


def test_spark_is_told_which_side_is_small() -> None:
    change = step_of_change(CHAIN, "orders")

    assert render(reduce_semijoins(change)).count("BROADCAST(l)") == 2
    assert "BROADCAST" not in render(change)
