"""window() and session_window(): what they return, by a model, and how they are maintained.

DuckDB has neither, so the user's text cannot be the oracle here; on Spark it is, for the cases of
`time_windows.sql`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from compiler.database import TABLES, Database, Prepared, change_of, in_duckdb
from compiler.intermediate import stored_in
from compiler.test_cases import follow_windows, random_rows
from dagster_streamtables.compiler import QueryPlan, compile_query
from dagster_streamtables.compiler.analyze.lateral_views import microseconds
from dagster_streamtables.compiler.operators.step_trees import render

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Window = tuple[datetime, datetime]

FIXED = {
    "'10 minutes'": (10, 10, 0),
    "'10 minutes', '5 minutes'": (10, 5, 0),
    "'10 minutes', '4 minutes', '1 minute'": (10, 4, 1),
    "'1 hour', '25 minutes', '-7 minutes'": (60, 25, -7),
}
"""Arguments of window(), and the same in minutes."""
MAINTAINED = [
    "SELECT window, COUNT(*) AS n FROM visits GROUP BY window(happened, '6 hours')",
    "SELECT id, window, COUNT(*) AS n FROM visits "
    "GROUP BY id, window(happened, '1 day', '7 hours')",
    "SELECT id, session_window, COUNT(*) AS n FROM visits "
    "GROUP BY id, session_window(happened, '14 hours')",
    "SELECT session_window, COUNT(*) AS n FROM visits GROUP BY session_window(happened, '2 hours')",
    "SELECT id, session_window(happened, '2 hours') AS w FROM visits WHERE id > 1",
]
"""Queries without hidden columns, whose rows are those of their operators."""


class Compiled(Prepared):
    """A plan whose full refresh is the compiled query."""

    def write_full(self, plan: QueryPlan) -> None:
        self.full = {
            moment: in_duckdb(render(rows, pretty=False))
            for moment, rows in (("before", plan.view.before), ("after", plan.view.after))
        }


def compiled(query: str) -> Prepared:
    return Compiled(compile_query(query, TABLES))


def windows_of(minute: int, length: int, slide: int, start: int) -> Iterator[Window]:
    """The windows that a minute is in: those that begin at start + k · slide and contain it."""
    first = (minute - length - start) // slide
    begins = (start + k * slide for k in range(first, first + length // slide + 3))
    for begin in begins:
        if begin <= minute < begin + length:
            yield _at(begin), _at(begin + length)


def sessions_of(minutes: Iterable[int], gap: int) -> Iterator[Window]:
    """The runs of minutes of which each is at most the gap after the one before."""
    first = last = None
    for minute in sorted(minutes):
        if first is not None and last is not None and minute > last + gap:
            yield _at(first), _at(last + gap)
            first = None
        first, last = minute if first is None else first, minute
    if first is not None and last is not None:
        yield _at(first), _at(last + gap)


def _at(minute: int) -> datetime:
    return EPOCH + timedelta(minutes=minute)


def _rows(database: Database, query: str, visits: list[tuple[int, int | None]]) -> Counter[object]:
    """The rows of a query over visits: (id, minute)."""
    literals = ((str(id), _literal(minute), "NULL", "NULL") for id, minute in visits)
    plan = compiled(query)
    with database.fresh():
        database.hold("visits@after", literals)
        sql = plan.by_name(database, plan.full["after"], plan.plan.stored_columns)
        found = database.connection.execute(sql).fetchall()
    names = plan.plan.stored_columns
    rows = (dict(zip(names, row, strict=True)) for row in found)
    return Counter((row["id"], *_bounds(row), row["n"]) for row in rows)


def _bounds(row: dict[str, Any]) -> tuple[object, object]:
    [window] = (value for name, value in row.items() if name.endswith("window"))
    return window["start"], window["end"]


def _literal(minute: int | None) -> str:
    return "NULL" if minute is None else f"'{_at(minute).isoformat(sep=' ')}'"


visits_of = st.lists(
    st.tuples(st.integers(1, 2), st.integers(-40, 90) | st.none()), min_size=1, max_size=9
)


@pytest.mark.parametrize("arguments", FIXED)
@given(visits=visits_of)
@random_rows
def test_a_row_is_in_each_window_that_contains_its_time(
    arguments: str, database: Database, visits: list[tuple[int, int | None]]
) -> None:
    query = "SELECT id, window, COUNT(*) AS n FROM visits "
    found = _rows(database, f"{query} GROUP BY id, window(happened, {arguments})", visits)

    expected = Counter(
        (id, *window)
        for id, minute in visits
        if minute is not None
        for window in windows_of(minute, *FIXED[arguments])
    )
    assert found == Counter((*group, n) for group, n in expected.items())


@given(visits=visits_of)
@example(visits=[(1, 0), (1, 6), (1, 13), (2, 3), (2, 20), (1, None), (1, 6)])
@random_rows
def test_a_session_ends_with_the_gap_after_its_last_row(
    database: Database, visits: list[tuple[int, int | None]]
) -> None:
    query = "SELECT id, session_window, COUNT(*) AS n FROM visits "
    found = _rows(database, f"{query} GROUP BY id, session_window(happened, '6 minutes')", visits)

    expected: Counter[object] = Counter()
    for id in (1, 2):
        minutes = [minute for each, minute in visits if each == id and minute is not None]
        for start, end in sessions_of(minutes, 6):
            inside = sum(start <= _at(minute) < end for minute in minutes)
            expected[id, start, end, inside] += 1
    assert found == expected


@pytest.mark.thorough
@pytest.mark.parametrize("query", MAINTAINED)
@given(data=st.data())
@random_rows
def test_before_plus_change_is_after(query: str, database: Database, data: st.DataObject) -> None:
    follow_windows(compiled(query), database, data)


def test_a_row_between_two_sessions_makes_one_of_them(database: Database) -> None:
    plan = compiled(MAINTAINED[2])
    near, far = "'2013-01-31 00:00:00'", "'2013-02-01 00:00:00'"
    rows = [("1", near, "NULL", "NULL"), ("1", far, "NULL", "NULL")]
    between = ("1", "'2013-01-31 12:00:00'", "NULL", "NULL")
    with database.fresh():
        database.hold("visits@before", rows)
        stored = stored_in(database, plan)
        assert len(stored.rows) == 2
        database.hold("visits@after", [*rows, between])
        database.hold("visits@change", change_of(Counter(), Counter([between]), {}))
        stored.refresh()
        stored.check()
        assert len(stored.rows) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 week", 604_800_000_000),
        ("interval 2 hours 1 minute", 7_260_000_000),
        ("3 milliseconds -1 microsecond", 2_999),
        ("1 month", None),
        ("10", None),
        ("", None),
        ("minutes", None),
    ],
)
def test_a_length_is_weeks_days_hours_minutes_and_seconds(text: str, expected: int | None) -> None:
    assert microseconds(text) == expected
