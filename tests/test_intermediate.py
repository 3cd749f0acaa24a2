"""A query maintained over intermediate tables is the query."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import casefile
from casefile import Case
from dagster_streamtables.compiler import Plan, compile_query
from database import TABLES, Database, Prepared
from test_cases import follow_case, follow_windows, quick


@cache
def plan_of(case: Case) -> Plan:
    return compile_query(case.query, TABLES).with_intermediates


cases = [
    case
    for case in casefile.load()
    if not (case.error or case.spark) and plan_of(case).intermediates
]


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()


@pytest.mark.parametrize("case", cases, ids=str)
def test_the_delta_is_the_one_written_down(case: Case, database: Database) -> None:
    follow_case(Prepared(plan_of(case)), case, database)


@pytest.mark.parametrize("case", cases, ids=str)
@given(data=st.data())
@quick
def test_before_plus_change_is_after(case: Case, database: Database, data: st.DataObject) -> None:
    follow_windows(Prepared(plan_of(case), staged=True), database, data)
