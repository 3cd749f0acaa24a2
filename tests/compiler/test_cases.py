"""Every case in tests/compiler/cases/, as written and then on random rows, on DuckDB.

Checks of each query: the change of the visible rows is the one written down, and the stored table,
hidden columns included, is what a full refresh stores. Thorough tests check the same for a change
that is not netted, for a plan that is told which sources stand still, with a refresh after every
statement, and over random rows for several windows in a row; `STREAMTABLES_EXAMPLES` says how many
random rows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from functools import cache

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from compiler import casefile
from compiler.casefile import Case
from compiler.database import (
    TABLES,
    Database,
    Literals,
    Prepared,
    Rows,
    change_of,
    plan_of,
    statements,
)
from compiler.intermediate import stored_in

cases = casefile.of_duckdb()
assert len({str(case) for case in cases}) == len(cases), "two cases have one title"

EXAMPLES = int(os.environ.get("STREAMTABLES_EXAMPLES", "0"))
# By default the examples are the same in every run: a failure here is one that anybody sees.
random_rows = settings(
    max_examples=EXAMPLES or 2,
    deadline=None,
    derandomize=not EXAMPLES,
    database=None,
    suppress_health_check=list(HealthCheck),
)
more_random_rows = settings(random_rows, max_examples=EXAMPLES or 5)


@cache
def prepared(case: Case) -> Prepared:
    return Prepared(plan_of(case.query))


@pytest.mark.parametrize("case", cases, ids=str)
def test_the_delta_is_the_one_written_down(case: Case, database: Database) -> None:
    follow_case(prepared(case), case, database, net=True, told=False)


@pytest.mark.thorough
@pytest.mark.parametrize("case", cases, ids=str)
def test_the_delta_is_the_one_written_down_in_every_way(case: Case, database: Database) -> None:
    for net, told in ((False, False), (False, True), (True, True)):
        follow_case(prepared(case), case, database, net=net, told=told)


def follow_case(
    prepared: Prepared, case: Case, database: Database, *, net: bool, told: bool
) -> None:
    sources = prepared.plan.sources
    with database.fresh():
        play(case, database, sources)
        moved = {table for table in sources if database.rows(difference(table, net=True))}
        for table in sources:
            database.keep(f"{table}@change", difference(table, net=net))
        stored = stored_in(database, prepared)
        before = stored.visible
        stored.refresh(unmoved=frozenset(sources) - moved if told else frozenset())
        assert signed(stored.visible, before) == case.expected
        stored.check()


def play(case: Case, database: Database, sources: Iterable[str]) -> None:
    """Make the rows of a case before and after its change."""
    database.write(case.before)
    for table in sources:
        database.keep(f"{table}@before", f"FROM {table}")
    database.write(case.change)
    for table in sources:
        database.keep(f"{table}@after", f"FROM {table}")


several = [case for case in cases if len(statements(case.change)) > 1]


@pytest.mark.thorough
@pytest.mark.parametrize("case", several, ids=str)
def test_a_refresh_after_every_statement(case: Case, database: Database) -> None:
    """Whatever windows a change falls into, the table is the same afterwards."""
    sources = prepared(case).plan.sources
    with database.fresh():
        database.write(case.before)
        for table in sources:
            database.keep(f"{table}@before", f"FROM {table}")
        stored = stored_in(database, prepared(case))
        before = stored.visible
        for statement in statements(case.change):
            database.run(statement)
            for table in sources:
                database.keep(f"{table}@after", f"FROM {table}")
                database.keep(f"{table}@change", difference(table, net=True))
            stored.refresh()
            stored.check()
            database.stop_time()
            for table in sources:
                database.keep(f"{table}@before", f"FROM {table}")
        assert signed(stored.visible, before) == case.expected


def test_a_scalar_subquery_of_two_rows_fails_the_refresh(database: Database) -> None:
    region = "(SELECT c.region FROM customers AS c WHERE c.id = o.customer)"
    query = f"SELECT o.id, {region} AS region FROM orders AS o"
    plan = Prepared(plan_of(query))
    with database.fresh():
        database.hold("orders@before", [("10", "1", "5")])
        database.hold("orders@after", [("10", "1", "5")])
        database.hold("customers@before", [("1", "'north'")])
        stored = stored_in(database, plan)
        database.hold("customers@after", [("1", "'north'"), ("1", "'north'")])
        database.hold("customers@change", [("1", "'north'", "1")])
        with pytest.raises(duckdb.Error, match="More than one row"):
            stored.refresh()


@pytest.mark.thorough
@pytest.mark.parametrize("case", cases, ids=str)
@given(data=st.data())
@random_rows
def test_before_plus_change_is_after(case: Case, database: Database, data: st.DataObject) -> None:
    follow_windows(prepared(case), database, data)


def follow_windows(prepared: Prepared, database: Database, data: st.DataObject) -> None:
    """The law every rule must obey: three refreshes in a row, each checked on all columns."""
    sources = prepared.plan.sources
    with database.fresh():
        rows = {table: data.draw(rows_of(table), label=table) for table in sources}
        for table in sources:
            database.hold(f"{table}@before", rows[table])
        database.set_time(_time(0), _time(12))
        stored = stored_in(database, prepared)
        for window in range(3):
            database.set_time(*(_time(12 * (window + i)) for i in (0, 1)))
            still: set[str] = set()
            for table in sources:
                then, passing = rows[table], {}
                if data.draw(st.booleans(), label=f"{table} moves"):
                    then = data.draw(rows_of(table), label=f"{table} then")
                    passing = data.draw(rows_passing(table), label=f"{table} in between")
                if Counter(then) == Counter(rows[table]) and not passing:
                    still.add(table)
                database.hold(f"{table}@before", rows[table])
                database.hold(f"{table}@after", then)
                kept = Counter(rows[table]) & Counter(then)
                if data.draw(st.booleans(), label="and is written anew"):
                    kept.clear()
                went, came = Counter(rows[table]) - kept, Counter(then) - kept
                change = change_of(went, came, passing)
                database.hold(f"{table}@change", change)
                rows[table] = then
            told = data.draw(st.booleans(), label="told what stands still")
            stored.refresh(unmoved=still if told else frozenset())
            stored.check()


def _time(hours: int) -> str:
    return f"TIMESTAMPTZ '2013-01-31 08:00:00+00' + INTERVAL {hours} HOUR"


def difference(table: str, *, net: bool) -> str:
    """The change of a table: what differs, or, not netted, all that was there and all that is."""
    names = ", ".join(f'"{name}"' for name in TABLES[table])
    went, came = (
        f'SELECT {names}, {sign}COUNT(*) AS w FROM "{table}@{moment}" GROUP BY {names}'
        for sign, moment in (("-", "before"), ("", "after"))
    )
    both = f"{went} UNION ALL {came}"
    total = f"SELECT {names}, SUM(w) FROM ({both}) GROUP BY {names} HAVING SUM(w) <> 0"
    return total if net else both


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
    "TIMESTAMP": ["'2013-01-31 10:00:00'", "'2013-01-31 23:30:00'", "NULL"],
    "ARRAY<INT>": ["[1, 2]", "[2, NULL, 2]", "[]::INT[]", "NULL"],
    "STRUCT<x: INT, y: STRING>": ["{'x': 1, 'y': 'north'}", "{'x': 2, 'y': NULL}", "NULL"],
}


def row_of(table: str) -> st.SearchStrategy[Literals]:
    return st.tuples(*(st.sampled_from(DOMAINS[type_]) for type_ in TABLES[table].values()))


@cache
def rows_of(table: str) -> st.SearchStrategy[list[Literals]]:
    return st.lists(row_of(table), max_size=6)


@cache
def rows_passing(table: str) -> st.SearchStrategy[dict[Literals, int]]:
    """Rows that come and go within a window, several copies at a time."""
    return st.dictionaries(row_of(table), st.integers(1, 3), max_size=2)
