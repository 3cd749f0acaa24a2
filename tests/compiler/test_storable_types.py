"""Types that are told where sqlglot does not, or tells another: see `kinds`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlglot import exp

from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.operators import Step
from dagster_streamtables.compiler.text.types import type_text
from dagster_streamtables.errors import InvalidDefinition

THINGS = {
    "things": {
        "id": "int",
        "pairs": "map<string,int>",
        "tags": "array<int>",
        "json": "string",
        "seen": "timestamp",
        "day": "date",
    }
}


@pytest.mark.parametrize(
    ("outputs", "types"),
    [
        ("seen - INTERVAL 1 DAY AS x", ["TIMESTAMP"]),
        ("(seen - seen) + seen AS x", ["TIMESTAMP"]),
        ("seen + make_dt_interval(1) AS x", ["TIMESTAMP"]),
        ("CASE WHEN id > 1 THEN INTERVAL 1 DAY ELSE seen - day END + seen AS x", ["TIMESTAMP"]),
        ("seen - seen > INTERVAL 1 DAY AS x", ["BOOLEAN"]),
        ("CAST(day - day AS STRING) AS x", ["STRING"]),
        ("day + INTERVAL 1 DAY AS x", ["DATE"]),
        ("day - 1 AS x", ["DATE"]),
        ("id - 1 AS x", ["INT"]),
        # A day, or a moment: whichever the interval is.
        ("day + make_dt_interval(1) AS x", ["UNKNOWN"]),
        # A text, to Spark.
        ("'2024-01-01' + INTERVAL 1 DAY AS x", ["UNKNOWN"]),
        ("from_json(json, 'a TIMESTAMP').a + INTERVAL 1 DAY AS x", ["UNKNOWN"]),
        ("from_json(json, 'a INT') AS x", ["UNKNOWN"]),
        ("from_json(json, 'MAP<STRING, INT>')['a'] AS x", ["UNKNOWN"]),
        ("map('a', id)['a'] AS x", ["UNKNOWN"]),
        ("max_by(json, seen) AS x", ["UNKNOWN"]),
        ("size(collect_list(pairs)) AS x", ["INT"]),
    ],
)
def test_a_type_is_told_as_spark_has_it_or_not_at_all(outputs: str, types: list[str]) -> None:
    plan = compile_query(f"SELECT {outputs} FROM things", THINGS)
    assert [type_text(type_) for type_ in plan.schema.values()] == types


@pytest.mark.parametrize(
    ("beside", "types"),
    [
        ("LATERAL VIEW explode(tags) t AS a", ["INT"]),
        ("LATERAL VIEW explode(pairs) t AS a, b", ["STRING", "INT"]),
        ("LATERAL VIEW posexplode(pairs) t AS a, b, c", ["INT", "STRING", "INT"]),
        (", LATERAL explode(from_json(json, 'MAP<STRING, INT>')) AS t(a, b)", ["STRING", "INT"]),
        (", LATERAL explode(sequence(day, day, INTERVAL 1 DAY)) AS t(a)", ["DATE"]),
        (", LATERAL json_tuple(json, 'a') AS t(a)", ["UNKNOWN"]),
        (", LATERAL variant_explode(parse_json(json)) AS t(a, b, c)", ["INT", "STRING"]),
    ],
)
def test_a_table_function_makes_what_is_in_a_value(beside: str, types: list[str]) -> None:
    """Not what the value itself is: the keys of a MAP can be compared."""
    names = ", ".join("abc"[: len(types)])
    plan = compile_query(f"SELECT {names} FROM things {beside}", THINGS)
    assert [type_text(type_) for type_ in plan.schema.values()] == types


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT abs(seen - day) AS x FROM things", 'the column "x" holds an INTERVAL'),
        ("SELECT make_ym_interval(1) * 2 AS x FROM things", 'the column "x" holds an INTERVAL'),
        ("SELECT map('a', 1) AS x FROM things", '"x" holds a MAP'),
        ("SELECT first(pairs) AS x FROM things", "FIRST of a MAP"),
        ("SELECT max_by(id, json) + size(array_agg(x)) AS n FROM "
         "(SELECT id, json, from_json(json, 'VARIANT') AS x FROM things)", None),
        ("SELECT lag(pairs) OVER (ORDER BY id) AS x FROM things", '"x" holds a MAP'),
        ("SELECT array_agg(pairs) OVER (ORDER BY id ROWS 1 PRECEDING) AS x FROM things",
         '"x" holds a MAP'),
        ("SELECT element_at(x, 1) AS x FROM (SELECT array(pairs) AS x FROM things)",
         '"x" holds a MAP'),
        ("SELECT a FROM things, LATERAL explode(array(pairs)) AS t(a)", '"a" holds a MAP'),
        ("SELECT v FROM things, LATERAL variant_explode(parse_json(json)) AS t(p, k, v)",
         '"v" holds a VARIANT'),
    ],
)  # fmt: skip
def test_a_type_that_matters_is_followed_to_the_output(query: str, what: str | None) -> None:
    if what is None:
        compile_query(query, THINGS)
        return
    with pytest.raises(InvalidDefinition) as refusal:
        compile_query(query, THINGS)
    assert refusal.value.what == what


def test_no_type_of_which_only_halves_are_known_comes_further() -> None:
    """`CAST(NULL AS INTERVAL)` would be another interval, and no MAP is of UNKNOWN."""
    query = (
        "SELECT id, CAST(s AS STRING) AS s, m['a'] AS a FROM "
        "(SELECT id, seen - day AS s, map('a', id) AS m FROM things UNION ALL "
        "SELECT id, make_dt_interval(1), map('b', id) FROM things WHERE id > 1) AS t"
    )
    types = [type_text(type_) for type_ in _types(compile_query(query, THINGS).view)]
    assert "UNKNOWN" in types
    assert not [each for each in types if "INTERVAL" in each or "MAP<" in each]


def _types(step: Step) -> Iterator[exp.DataType]:
    yield from step.schema.values()
    for below in step.inputs:
        yield from _types(below)
