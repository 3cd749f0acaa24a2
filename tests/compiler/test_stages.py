"""A plan whose stages ran first gives the rows of the plan as it was."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from compiler import casefile
from compiler.casefile import Case
from compiler.database import Database, staged, step_of_change
from compiler.test_cases import follow_windows, random_rows
from dagster_streamtables.compiler.operators.step_trees import rebuild
from dagster_streamtables.compiler.rewrite.stages import next_stage, with_rows


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    casefile.parametrize_with_cases(metafunc, has_stages)


def has_stages(case: Case) -> bool:
    return next_stage(step_of_change(case.query)) is not None


@pytest.mark.thorough
@given(data=st.data())
@random_rows
def test_stages_change_no_row(case: Case, database: Database, data: st.DataObject) -> None:
    follow_windows(staged(case.query), database, data)


def test_cheap_plans_have_none() -> None:
    for query in (
        "SELECT id, amount FROM orders WHERE amount > 1",
        "SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id",
        "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer",
    ):
        assert next_stage(step_of_change(query)) is None


def test_a_part_of_a_recursion_is_no_stage() -> None:
    """It reads the rows of a round, which are not there before the recursion runs."""
    recursive = [case for case in casefile.of_duckdb() if "RECURSIVE" in case.query]
    for case in filter(has_stages, recursive):
        step = rebuild(step_of_change(case.query))
        while (stage := next_stage(step)) is not None:
            assert not stage.open
            step = with_rows(step, stage, "made")
