"""Every case in tests/cases/, as written and then on random rows, on DuckDB.

Three checks for each query: the change of the visible rows is the one written down; the refreshed
table, hidden columns included, is what a full refresh stores, for several windows in a row; and the
same comes out when the plan is told which sources stand still.
"""

from __future__ import annotations

from functools import cache
from itertools import chain, combinations

import casefile
import pytest
from casefile import Case
from database import TABLES, Database, Rows, Stored, Weighted
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_streamtables.compiler import Plan, compile_query

cases = [case for case in casefile.load() if not case.error]
assert len({str(case) for case in cases}) == len(cases), "two cases have one title"

# The examples are the same in every run: a failure here is one that anybody sees.
quick = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
thorough = settings(quick, max_examples=300, derandomize=False)


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()


@cache
def plan_of(case: Case) -> Plan:
    return compile_query(case.query, TABLES)


@pytest.mark.parametrize("case", cases, ids=str)
def test_the_delta_is_the_one_written_down(case: Case, database: Database) -> None:
    plan = plan_of(case)
    with database.fresh():
        database.run(case.before)
        database.remember(plan.sources)
        database.run(case.change)
        database.compare(plan.sources, {})
        for unmoved in subsets(set(plan.sources) - database.moved(plan.sources)):
            stored = Stored(database, plan)
            before = stored.visible()
            stored.refresh(unmoved=unmoved)
            assert signed(stored.visible(), before) == case.expected
            assert stored.rows() == stored.expected()


@pytest.mark.parametrize("case", cases, ids=str)
@given(data=st.data())
@quick
def test_before_plus_change_is_after(case: Case, database: Database, data: st.DataObject) -> None:
    follow_windows(plan_of(case), database, data)


@pytest.mark.long
@pytest.mark.parametrize("case", cases, ids=str)
@given(data=st.data())
@thorough
def test_before_plus_change_is_after_at_length(
    case: Case, database: Database, data: st.DataObject
) -> None:
    follow_windows(plan_of(case), database, data)


def follow_windows(plan: Plan, database: Database, data: st.DataObject) -> None:
    """The law every rule must obey: three refreshes in a row, each checked on all columns."""
    with database.fresh():
        for table in plan.sources:
            database.run(insert(table, data.draw(rows_of(table), label=table)))
        database.remember(plan.sources)
        stored = Stored(database, plan)
        for _ in range(3):
            noise = {}
            for table in plan.sources:
                if data.draw(st.booleans(), label=f"{table} moves"):
                    rows = data.draw(rows_of(table), label=f"{table} then")
                    database.run(f"DELETE FROM {table}; {insert(table, rows)}")
                    noise[table] = data.draw(passing(table), label=f"{table} in between")
            database.compare(plan.sources, noise)
            still = {t for t in plan.sources if not noise.get(t)} - database.moved(plan.sources)
            told = data.draw(st.booleans(), label="told what stands still")
            stored.refresh(unmoved=still if told else frozenset())
            assert stored.rows() == stored.expected()
            assert stored.visible() == stored.expected_visible()


def subsets(names: set[str]) -> list[frozenset[str]]:
    sizes = (combinations(sorted(names), size) for size in range(len(names) + 1))
    return [frozenset(each) for each in chain.from_iterable(sizes)]


def signed(now: Rows, then: Rows) -> list[tuple[str, ...]]:
    change = {row: now[row] - then[row] for row in now | then}
    return sorted((f"{weight:+d}", *row) for row, weight in change.items() if weight)


# Few values in each column, and a NULL: enough to collide, few enough to shrink.
DOMAINS = {
    "INT": ["1", "2", "3", "NULL"],
    "BIGINT": ["1", "2", "9007199254740993", "NULL"],
    "STRING": ["'north'", "'south'", "'1'", "NULL"],
    "BOOLEAN": ["true", "false", "NULL"],
    "DOUBLE": ["0.5", "-0.25", "-0.0", "'NaN'", "NULL"],
    "DECIMAL(10, 2)": ["1.50", "-1.50", "2.25", "NULL"],
    "DECIMAL(38, 4)": ["1.5", "-99999999999.0001", "NULL"],
    "DATE": ["'2013-01-31'", "'2013-02-01'", "NULL"],
}


def row_of(table: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.tuples(*(st.sampled_from(DOMAINS[type_]) for type_ in TABLES[table].values()))


@cache
def rows_of(table: str) -> st.SearchStrategy[list[tuple[str, ...]]]:
    return st.lists(row_of(table), max_size=6)


@cache
def passing(table: str) -> st.SearchStrategy[list[Weighted]]:
    """Rows that come and go within a window, several copies at a time."""
    return st.lists(st.tuples(row_of(table), st.integers(1, 3)), max_size=2)


def insert(table: str, rows: list[tuple[str, ...]]) -> str:
    values = ", ".join(f"({', '.join(row)})" for row in rows)
    return f"INSERT INTO {table} VALUES {values}" if rows else ""
