"""A change is not paired with all rows of a table that a condition could connect to it."""

from __future__ import annotations

import pytest

from dagster_streamtables.compiler import compile_query

TABLES = {
    "a": {"x": "int", "y": "int"},
    "b": {"y": "int", "z": "int"},
    "c": {"x": "int", "z": "int", "s": "string"},
}


@pytest.mark.parametrize(
    ("query", "joins"),
    [
        ("SELECT a.y FROM a, b, c WHERE a.x = c.x AND c.z = b.z",
         ["`c.z` = `b.z`", "`a.x` = `c.x`"]),
        ("SELECT a.y FROM a JOIN b ON a.y < b.y, c WHERE a.x = c.x AND c.z = b.z",
         ["`a.y` < `b.y` AND `c.z` = `b.z`", "`a.x` = `c.x`"]),
        ("SELECT a.y FROM a CROSS JOIN b JOIN c ON a.x = c.x AND c.z = b.z",
         ["`c.z` = `b.z`", "`a.x` = `c.x`"]),
        ("SELECT a.y FROM a, b WHERE (a.y = b.y AND b.z > 1) OR (a.y = b.y AND a.x < b.z)",
         ["`a.y` = `b.y` AND (`b.z` > 1 OR `a.x` < `b.z`)"]),
        # the author's order, in which every table is connected
        ("SELECT a.y FROM a, b, c WHERE a.y = b.y AND b.z = c.z AND a.x = c.x",
         ["`b.z` = `c.z` AND `a.x` = `c.x`", "`a.y` = `b.y`"]),
        # no condition but one that can fail
        ("SELECT a.y FROM a JOIN b ON a.x / b.y > 1 JOIN c ON a.x = c.x AND c.z = b.z",
         ["`a.x` = `c.x` AND `c.z` = `b.z`", "`a.x` / `b.y` > 1"]),
        ("SELECT a.y FROM a, b, c WHERE a.x = c.x", ["TRUE", "`a.x` = `c.x`"]),
    ],
)  # fmt: skip
def test_joins_in_an_order_that_conditions_connect(query: str, joins: list[str]) -> None:
    text = compile_query(query, TABLES).explain().split("\nChange")[0]
    found = [line.split("Join on ")[1].split("  [")[0] for line in text.splitlines()
             if "Join on " in line]  # fmt: skip
    assert found == joins
