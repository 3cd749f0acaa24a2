"""Schedules: what is one, where the mistake is in what is not, and when the next refresh is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dagster_streamtables import StreamTable, StreamTablesError
from dagster_streamtables.declare.analysis import find_problems
from dagster_streamtables.declare.schedule import Cron, Duration, OnChange, Schedule, parse_schedule
from dagster_streamtables.declare.sql_files import load_tables
from dagster_streamtables.errors import InvalidDefinition


def parsed(text: str, timezone: str = "UTC") -> Schedule:
    schedule = parse_schedule(text, timezone, min_schedule_seconds=1)
    assert schedule is not None
    return schedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86_400),
        ("1w", 604_800),
        ("1h30m", 5400),
        ("1w2d3h4m5s", 604_800 + 2 * 86_400 + 3 * 3600 + 4 * 60 + 5),
        (" 5m ", 300),
    ],
)
def test_a_duration_is_numbers_with_units(text: str, seconds: int) -> None:
    assert parsed(text) == Duration(text.strip(), seconds)


@pytest.mark.parametrize("text", ["on change", "ON  CHANGE", " On change "])
def test_on_change_is_due_at_once_and_late_after_ten_seconds(text: str) -> None:
    schedule = parse_schedule(text, min_schedule_seconds=0)
    assert schedule == OnChange()
    moment = at("2026-01-01 12:00:00")
    assert schedule is not None
    assert schedule.due_at(moment) == moment
    assert schedule.deadline(moment) == moment + timedelta(seconds=10)
    with pytest.raises(InvalidDefinition, match="too tight") as raised:
        parse_schedule(text)
    assert "streamtables worker" in raised.value.fix


@pytest.mark.parametrize("text", [None, "", "CALCULATED", "calculated"])
def test_no_schedule_is_a_calculated_one(text: str | None) -> None:
    assert parse_schedule(text) is None


@pytest.mark.parametrize(
    ("text", "underlined"),
    [
        ("5 m", " "),
        ("5M", "M"),
        ("m", "m"),
        ("5mm", "m"),
        ("1h1h", "1h"),
        ("0s", "0s"),
        ("every hour", "e"),
        ("@fortnightly", "@fortnightly"),
        ("61 * * * *", "61"),
        ("0 9 * * funday", "funday"),
        ("0 0 9 * * MON#9", "MON#9"),
        ("R * * * *", "R"),
        ("* * * *", "* * * *"),
        ("0 0 30 2 *", "0 0 30 2 *"),
        ("0 0 9 * * 1-5 2024", "0 0 9 * * 1-5 2024"),
        ("** * * * *", "**"),
    ],
)
def test_anything_else_is_refused_with_its_position(text: str, underlined: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        parsed(text)
    line, carets = raised.value.where.split("\n")
    marked = carets.count("^")
    assert line == text
    start = carets.index("^")
    assert text[start : start + marked] == underlined
    assert "write a duration" in raised.value.fix


def test_a_number_without_a_unit_is_marked_where_the_unit_should_be() -> None:
    with pytest.raises(InvalidDefinition) as raised:
        parsed("15")
    assert raised.value.where.endswith("15\n  ^")
    assert "units" in raised.value.why


def test_a_schedule_tighter_than_the_least_is_refused() -> None:
    for text in ("59s", "*/30 * * * * *"):
        with pytest.raises(InvalidDefinition, match="too tight"):
            parse_schedule(text)
        assert parse_schedule(text, min_schedule_seconds=30) is not None


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc", "Europe"])
def test_a_time_zone_that_does_not_exist_is_refused(zone: str) -> None:
    with pytest.raises(InvalidDefinition, match="time zone"):
        parsed("@daily", zone)


def test_six_fields_begin_with_the_seconds() -> None:
    cron = parsed("30 0 9 * * *")
    assert cron.due_at(at("2026-01-01T00:00")) == at("2026-01-01T09:00:30")


@pytest.mark.parametrize(
    ("alias", "first"),
    [
        ("@hourly", "2026-01-01T01:00"),
        ("@daily", "2026-01-02T00:00"),
        ("@weekly", "2026-01-04T00:00"),
        ("@monthly", "2026-02-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
    ],
)
def test_aliases(alias: str, first: str) -> None:
    assert parsed(alias).due_at(at("2026-01-01T00:00")) == at(first)


def test_the_hours_of_a_cron_are_those_of_its_zone_through_both_clock_changes() -> None:
    cron = parsed("0 9 * * *", "Europe/Berlin")
    days = ["2026-01-10", "2026-03-29", "2026-07-10", "2026-10-25"]
    hours = [cron.due_at(at(f"{day}T00:30")).hour for day in days]
    assert hours == [8, 7, 7, 8]


def test_a_cron_is_due_once_after_each_tick() -> None:
    cron = parsed("*/10 * * * *")
    assert cron.due_at(at("2026-01-01T00:09:59")) == at("2026-01-01T00:10")
    assert cron.due_at(at("2026-01-01T00:10:01")) == at("2026-01-01T00:20")
    assert cron.deadline(at("2026-01-01T00:10:01")) == at("2026-01-01T00:30")


@pytest.mark.parametrize("text", ["5s", "30s", "48s", "1m", "5m", "17m", "1h", "1d", "1w"])
def test_a_period_is_at_most_the_schedule_and_more_than_half_of_it(text: str) -> None:
    duration = parsed(text)
    assert isinstance(duration, Duration)
    assert duration.seconds / 2 < duration.period <= duration.seconds


def test_tables_with_related_schedules_come_due_at_the_same_instants() -> None:
    last = at("2026-01-01T00:01:07")
    fast, slow = parsed("1m"), parsed("10m")
    ticks = [last]
    while ticks[-1] < slow.due_at(last):
        ticks.append(fast.due_at(ticks[-1]))
    assert ticks[-1] == slow.due_at(last)


def test_a_table_refreshed_when_it_is_due_is_never_older_than_its_schedule() -> None:
    duration = parsed("5m")
    for seconds in range(0, 600, 7):
        last = at("2026-01-01T00:00") + timedelta(seconds=seconds)
        assert last < duration.due_at(last) <= duration.deadline(last)


@pytest.mark.parametrize(
    ("text", "shortest", "longest"),
    [
        ("*/5 * * * *", 300, 300),
        ("0 9 * * 1-5", 86_400, 3 * 86_400),
        ("0 9,10,18 * * *", 3600, 15 * 3600),
        ("* 9,17 * * *", 60, 15 * 3600 + 60),
        ("* 9 * * 1", 60, 7 * 86_400 - 59 * 60),
        ("0 */2 8-17 * * *", 120, 14 * 3600 + 120),
        ("0 0 1 * *", 28 * 86_400, 31 * 86_400),
    ],
)
def test_gaps_between_ticks(text: str, shortest: int, longest: int) -> None:
    cron = parsed(text)
    assert isinstance(cron, Cron)
    assert (cron.shortest_gap(), cron.longest_gap()) == (shortest, longest)


@pytest.mark.parametrize(
    ("cron", "after", "ticks"),
    [
        # The clocks of Berlin show 2:30 twice on this day: once is meant.
        ("30 2 * * *", "2026-10-24T12", ["25T00:30", "26T01:30"]),
        ("30 1-3 * * *", "2026-10-24T22", ["24T23:30", "25T00:30", "25T02:30"]),
        # Every hour means every hour.
        ("0 * * * *", "2026-10-24T23", ["25T00:00", "25T01:00", "25T02:00"]),
        ("0 */30 * * * *", "2026-10-25T00", ["25T00:30", "25T01:00", "25T01:30"]),
        # And on this one not at all: it is made up for when the clocks go on.
        ("30 2 * * *", "2026-03-28T12", ["29T01:00", "30T00:30"]),
        ("0 * * * *", "2026-03-29T00", ["29T01:00", "29T02:00"]),
    ],
)
def test_clocks_that_are_changed_leave_no_tick_out_and_double_none(
    cron: str, after: str, ticks: list[str]
) -> None:
    found = Cron(cron, "Europe/Berlin").ticks(datetime.fromisoformat(after).replace(tzinfo=UTC))
    assert [f"{tick:%dT%H:%M}" for tick, _ in zip(found, ticks, strict=False)] == ticks


def problem(folder: Path, text: str) -> StreamTablesError:
    (folder / "a.sql").write_text(text)
    [found] = find_problems(load_tables(folder))
    return found.error


@pytest.mark.parametrize(
    ("header", "line", "column", "words"),
    [
        ("-- mode: FULL\n-- schedule: 5 minutes", 2, 15, " "),
        ("--schedule:   61 * * * *", 1, 15, "61"),
        ("-- Schedule: @dayly\n-- mode: FULL", 1, 14, "@dayly"),
        ("-- schedule: 5m\n-- timezone: Europe/Nowhere", 2, 14, "Europe/Nowhere"),
        ("-- description: a schedule: 1s for all\n-- schedule: 1s", 2, 14, "1s"),
    ],
)
def test_a_header_is_underlined(
    header: str, line: int, column: int, words: str, tmp_path: Path
) -> None:
    error = problem(tmp_path, f"{header}\nSELECT id FROM t\n")
    head, text, carets = error.where.splitlines()
    assert head == f"{tmp_path}/a.sql:{line}:{column}"
    assert text == header.splitlines()[line - 1]
    assert carets == " " * (column - 1) + "^" * len(words)


def test_yaml_shows_the_line_of_the_table_that_has_the_schedule(tmp_path: Path) -> None:
    file = tmp_path / "defs.yaml"
    table = "  - name: {}\n    query: SELECT id FROM t\n    schedule: {}\n"
    file.write_text("tables:\n" + table.format("a", "5m") + table.format("b", '"5 parsecs"'))
    broken = StreamTable("b", "SELECT id FROM t", schedule="5 parsecs", file=str(file), line=6)
    [found] = find_problems([broken])
    assert found.error.where.splitlines()[:2] == [f"{file}:7", '    schedule: "5 parsecs"']


def test_a_declaration_in_python_shows_the_words() -> None:
    [found] = find_problems([StreamTable("b", "SELECT id FROM t", schedule="5 parsecs")])
    assert found.error.where == "5 parsecs\n ^"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("5 minutes", "5m"), ("every 1 hour 30 min", "1h30m"), ("@dayly", "@daily"), ("soon", "")],
)
def test_the_form_that_was_meant_comes_first(text: str, meant: str) -> None:
    with pytest.raises(StreamTablesError) as raised:
        parse_schedule(text)
    assert raised.value.fix.startswith(f'write "{meant}"; or ' if meant else "write a duration")
