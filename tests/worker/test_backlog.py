"""Which of the decided refreshes is next, and what an error of one does to others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dagster_streamtables.worker.backlog import Backlog

NOW = datetime(2026, 1, 1, tzinfo=UTC)
READS = {"a": ("s",), "b": ("a",), "c": ("b",), "x": ("s",), "d": ("a", "x")}


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def backlog(*names: str, **deadlines: float) -> Backlog:
    made = Backlog()
    made.add(names, READS, {name: at(deadlines.get(name, 100)) for name in names}, NOW)
    return made


def started(made: Backlog) -> list[str]:
    return [task.name for task in iter(lambda: made.next(NOW), None)]


def test_a_table_starts_as_soon_as_those_that_it_reads_have_ended() -> None:
    made = backlog("a", "x", "b", "c", "d")
    assert started(made) == ["a", "x"]
    made.finish("a", NOW)
    assert started(made) == ["b"], "d waits for x alone"
    made.finish("x", NOW)
    made.finish("b", NOW)
    assert started(made) == ["c", "d"]


def test_the_tightest_deadline_is_first_even_of_a_table_that_waits() -> None:
    made = backlog("a", "x", "b", "c", x=50, c=10)
    assert started(made) == ["a", "x"]
    made = backlog("a", "x", "b", "c", x=5, c=10)
    assert started(made) == ["x", "a"]


def test_what_waits_for_a_failed_table_is_not_refreshed_and_the_others_are() -> None:
    made = backlog("a", "x", "b", "c", "d")
    assert started(made) == ["a", "x"]
    assert set(made.fail("a")) == {"b", "c", "d"}
    assert [*made.tasks] == ["x"]


def test_decisions_do_not_wait_for_one_another() -> None:
    made = backlog("a", "b")
    assert started(made) == ["a"]
    made.add(["x"], READS, {"x": NOW}, at(1))
    assert started(made) == ["x"]
    made.finish("x", NOW)
    assert started(made) == []


def test_tables_that_are_gone_do_not_start_and_those_that_run_end() -> None:
    made = backlog("a", "b", "x")
    assert started(made) == ["a", "x"]
    made.keep(["x", "b"])
    assert [*made.tasks] == ["a", "b", "x"], "a runs"
    made.finish("a", NOW)
    made.keep(["x"])
    assert [*made.tasks] == ["x"]


def test_a_table_is_behind_no_reader_that_has_caught_up() -> None:
    readers = {"a": ["b", "d"], "x": ["d"], "b": ["c"], "d": [], "c": []}
    made = backlog("a", "x", "b", "c", "d")
    assert made.behind(readers) == {"a", "x", "b"}
    assert started(made) == ["a", "x"]
    made.finish("a", NOW)
    made.finish("b", NOW)
    assert made.behind(readers) == {"a", "x", "b"}, "c still waits for b, and b for c"
    made.finish("x", NOW)
    made.finish("d", NOW)
    assert made.behind(readers) == {"b"}, "a has a reader that shows what a has"
    made.finish("c", NOW)
    assert not made.behind(readers)
