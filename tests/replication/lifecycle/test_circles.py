"""Replications that would replicate rows in a circle are refused; where one leaves out what was
replicated, rows end."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dagster_streamtables import Replication, Replications
from dagster_streamtables.errors import InvalidDefinition
from replication.lifecycle.origins import LakeOrigin, Subscriber, rows


def test_two_lakes_replicate_each_other(tmp_path: Path) -> None:
    one, two = LakeOrigin(tmp_path / "one"), LakeOrigin(tmp_path / "two")
    for each in (one, two):
        each.create("t")
        each.publish("p", "t")
    one.insert("t", (1, "one"))
    two.insert("t", (2, "two"))
    to_two, to_one = Subscriber(two.lake), Subscriber(one.lake)
    circle = Replication("back", two.declared("p"), copy=False)
    to_two.refresh(Replication("r", one.declared("p"), copy=False))
    with pytest.raises(Exception, match="in a circle"):
        to_one.create(circle)
    to_two.alter(Replication("r", replace(one.declared("p"), origin="none"), copy=False))
    to_one.create(replace(circle, publisher=replace(two.declared("p"), origin="none")))
    with pytest.raises(InvalidDefinition, match="in a circle"):
        to_one.alter(circle)
    for inserts in (True, False):
        for _ in range(3):
            to_two.refresh("r")
            to_one.refresh("back")
        if inserts:
            one.insert("t", (3, "three"))
            two.insert("t", (4, "four"))
    assert to_one.rows("t") == Counter([(1, "one"), (3, "three"), (4, "four")])
    assert to_two.rows("t") == Counter([(2, "two"), (3, "three"), (4, "four")])


class Ring:
    """Three lakes with a table, each of which reads from others."""

    def __init__(self, folder: Path) -> None:
        self.lakes = {name: LakeOrigin(folder / name) for name in "abc"}
        for name, each in self.lakes.items():
            each.create("t")
            each.publish("p", "t")
            each.insert("t", (ord(name), name))

    def link(self, source: str, to: str, origin: Any) -> None:
        publisher = replace(self.lakes[source].declared("p"), origin=origin)
        at = Replications(self.lakes[to].lake)
        at.create(Replication(f"from_{source}", publisher, slot=f"of_{to}", copy=False))

    def settle(self) -> None:
        for _ in range(4):
            for each in self.lakes.values():
                at = Replications(each.lake)
                for status in at.list():
                    at.refresh(status.name)


@pytest.mark.parametrize("origins", ["any any any", "none any any", "any none any", "any any none"])
def test_a_circle_over_three_lakes_is_refused(tmp_path: Path, origins: str) -> None:
    ring, (first, second, third) = Ring(tmp_path), origins.split()
    ring.link("a", "b", first)
    ring.link("b", "c", second)
    with pytest.raises(InvalidDefinition, match="in a circle") as told:
        ring.link("c", "a", third)
    way = (ring.lakes[name].lake.root for name in "abca")
    assert told.value.why == f"rows of public.t would go {' → '.join(way)}"
    assert '"from_c" and "from_b" of' in told.value.what and '"from_a"' in told.value.what
    assert Replications(ring.lakes["a"].lake).list() == []


def test_a_circle_that_a_publication_closes_later_is_refused(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.link("a", "b", "any")
    one, two = ring.lakes["a"], ring.lakes["b"]
    for each in (one, two):
        each.create("other")
    two.publish("q", "other")
    back, new = Replications(one.lake), Replications(one.lake)
    back.refresh(Replication("back", two.declared("q"), copy=False))
    two.add("q", "t")
    for each in (back, new, new):
        with pytest.raises(InvalidDefinition, match="in a circle"):
            each.refresh("back")
    assert "public.t" not in {each.name for each in back.read("back").tables}
    two.remove("q", "t")
    new.refresh("back")
    assert new.read("back").errors == 0


def test_rows_pass_two_links_of_a_circle_at_most(tmp_path: Path) -> None:
    """Where two leave out what was replicated, rows end before they are back."""
    ring = Ring(tmp_path)
    ring.link("a", "b", "any")
    ring.link("b", "c", "none")
    ring.link("c", "a", "none")
    ring.settle()
    for name, each in ring.lakes.items():
        each.insert("t", (100 + ord(name), f"new {name}"))
    ring.settle()
    have = {n: {v for _, v in rows(each.lake, "t")} for n, each in ring.lakes.items()}
    new = {name: {v for v in have[name] if v.startswith("new")} for name in have}
    assert new == {"a": {"new a", "new c"}, "b": {"new a", "new b", "new c"},
                   "c": {"new b", "new c"}}  # fmt: skip


@pytest.mark.long
def test_three_lakes_are_equal_by_pairs(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    for source, to in itertools.permutations("abc", 2):
        ring.link(source, to, "none")
    for name, each in ring.lakes.items():
        each.insert("t", (100 + ord(name), f"new {name}"))
    ring.settle()
    ring.lakes["a"].update("t", f"k = {100 + ord('b')}", v="'changed'")
    ring.lakes["b"].delete("t", f"k = {100 + ord('c')}")
    ring.settle()
    have = [{(k, v) for k, v in rows(each.lake, "t") if k > 150} for each in ring.lakes.values()]
    assert have == [{(197, "new a"), (198, "changed")}] * 3
