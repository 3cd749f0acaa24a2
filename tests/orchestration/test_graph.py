"""The graph: order, cycles, inheritance, connected parts."""

from __future__ import annotations

import pytest

from dagster_streamtables.declare import graph
from dagster_streamtables.declare.schedule import Cron, Duration, OnChange
from dagster_streamtables.errors import InvalidDefinition

DIAMOND = {"a": ["s"], "left": ["a"], "right": ["a"], "bottom": ["left", "right"], "other": ["s"]}


def test_every_table_comes_after_those_it_reads() -> None:
    order = graph.dependency_order(DIAMOND)
    assert sorted(order) == sorted(DIAMOND)
    for name, read in DIAMOND.items():
        assert all(order.index(source) < order.index(name) for source in read if source != "s")


def test_a_cycle_is_refused_with_its_path() -> None:
    with pytest.raises(InvalidDefinition) as raised:
        graph.dependency_order({"d": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]})
    assert raised.value.where == "a reads b reads c reads a"


def test_every_cycle_is_found_and_only_its_own_tables_are_in_it() -> None:
    reads = {"x": ["x"], "p": ["q"], "q": ["p", "x"], "fine": ["p"], "also": []}
    assert {frozenset(path) for path in graph.cycles(reads)} == {frozenset("x"), frozenset("pq")}


def test_the_tightest_duration_is_inherited_through_any_number_of_levels() -> None:
    reads = {"a": ["s"], "b": ["a"], "c": ["b"], "slow": ["c"], "fast": ["c"]}
    slow, fast = Duration("1h", 3600), Duration("5m", 300)
    schedules = {"a": None, "b": None, "c": None, "slow": slow, "fast": fast}
    assert graph.inheritance_paths(schedules, reads) == {
        "a": ("b", "c", "fast"),
        "b": ("c", "fast"),
        "c": ("fast",),
    }


def test_on_change_is_inherited_before_any_duration() -> None:
    reads = {"a": ["s"], "eager": ["a"], "fast": ["a"]}
    schedules = {"a": None, "eager": OnChange(), "fast": Duration("1s", 1)}
    assert graph.inheritance_paths(schedules, reads) == {"a": ("eager",)}


def test_a_duration_below_a_scheduled_reader_counts_too() -> None:
    reads = {"a": [], "b": ["a"], "c": ["b"]}
    schedules = {"a": None, "b": Duration("1h", 3600), "c": Duration("1m", 60)}
    assert graph.inheritance_paths(schedules, reads)["a"] == ("b", "c")


def test_cron_tables_take_no_part_and_lonely_tables_are_on_demand() -> None:
    reads = {"a": ["s"], "nightly": ["a"], "alone": ["s"]}
    schedules = {"a": None, "nightly": Cron("@daily"), "alone": None}
    assert graph.inheritance_paths(schedules, reads) == {"a": (), "alone": ()}


def test_siblings_are_connected_through_what_they_read() -> None:
    assert graph.group_by_connection(["left", "right", "other"], DIAMOND) == [
        ["left", "right"],
        ["other"],
    ]
    assert graph.group_by_connection([], DIAMOND) == []
