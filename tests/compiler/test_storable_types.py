"""Types that are told where sqlglot does not, or tells another: see `kinds`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlglot import exp

from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.operators.algebra import Step
from dagster_streamtables.compiler.text.sqlglot_dialects import type_text
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
        ("from_json(json, 'MAP<STRING, INT>')['a'] AS x", ["INT"]),
        ("map('a', id)['a'] AS x", ["INT"]),
        ("map('a', id, 'b', json)['a'] AS x", ["UNKNOWN"]),
        ("map('a', map(1, id)) AS x", ["MAP<STRING, MAP<INT, INT>>"]),
        ("map_concat(pairs, pairs) AS x", ["MAP<STRING, INT>"]),
        ("map_filter(pairs, (k, v) -> v > 1) AS x", ["MAP<STRING, INT>"]),
        ("map_zip_with(pairs, pairs, (k, a, b) -> a) AS x", ["MAP<UNKNOWN, UNKNOWN>"]),
        ("transform_values(pairs, (k, v) -> CAST(v AS STRING)) AS x", ["MAP<STRING, STRING>"]),
        ("transform_keys(pairs, (k, v) -> 1) AS x", ["MAP<INT, INT>"]),
        ("map_from_arrays(tags, tags) AS x", ["MAP<INT, INT>"]),
        ("map_from_entries(array(struct(id AS a, json AS b))) AS x", ["MAP<INT, STRING>"]),
        ("str_to_map(json) AS x", ["MAP<STRING, STRING>"]),
        ("transform(tags, e -> map(1, id)) AS x", ["ARRAY<MAP<INT, INT>>"]),
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
        ("SELECT max_by(id, json) + size(array_agg(x)) AS n FROM "
         "(SELECT id, json, from_json(json, 'VARIANT') AS x FROM things)", None),
        ("SELECT DISTINCT map('a', 1) AS x FROM things", "DISTINCT over a MAP"),
        ("SELECT DISTINCT x FROM (SELECT lag(pairs) OVER (ORDER BY id) AS x FROM things)",
         "DISTINCT over a MAP"),
        ("SELECT DISTINCT array_agg(pairs) AS x FROM things", "DISTINCT over a MAP"),
        ("SELECT DISTINCT from_json(json, 'a INT, m MAP<STRING, INT>') AS x FROM things",
         "DISTINCT over a MAP"),
        ("SELECT DISTINCT element_at(x, 1) AS x FROM (SELECT array(pairs) AS x FROM things)",
         "DISTINCT over a MAP"),
        ("SELECT a FROM things, LATERAL explode(array(pairs)) AS t(a) UNION SELECT 1 AS a",
         "UNION over a MAP"),
        ("SELECT array_agg(from_json(json, 'VARIANT')) AS x FROM things", "ARRAY_AGG of a VARIANT"),
        ("SELECT DISTINCT v FROM things, LATERAL variant_explode(parse_json(json)) AS t(p, k, v)",
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


def test_the_type_of_a_result_is_asked_of_the_aggregate_itself() -> None:
    """A fold would ask for that of a quotient of sums, which is another decimal."""
    plan = compile_query("SELECT id, typeof(AVG(id)) AS t FROM things GROUP BY id", THINGS)
    assert plan.strategy_kind == "regroup"


@pytest.mark.parametrize(("of", "is_null"), [("id", True), ("json", False), ("seen", False)])
def test_count_in_pivot_is_null_without_rows_beside_numbers_alone(of: str, is_null: bool) -> None:
    plan = compile_query(
        "SELECT * FROM (SELECT id, day, json, seen FROM things) AS t "
        f"PIVOT (COUNT(*) AS n, MAX({of}) AS m FOR day IN (DATE '2024-01-01' AS a))",
        THINGS,
    )
    assert ("> 0 THEN" in plan.change_sql()) is is_null


def test_no_interval_whose_units_are_unknown_comes_further() -> None:
    """`CAST(NULL AS INTERVAL)` would be another interval."""
    query = (
        "SELECT id, CAST(s AS STRING) AS s FROM (SELECT id, seen - day AS s FROM things "
        "UNION ALL SELECT id, make_dt_interval(1) FROM things WHERE id > 1) AS t"
    )
    types = [type_text(type_) for type_ in _types(compile_query(query, THINGS).view)]
    assert "UNKNOWN" in types
    assert not [each for each in types if "INTERVAL" in each]


def _types(step: Step) -> Iterator[exp.DataType]:
    yield from step.schema.values()
    for below in step.inputs:
        yield from _types(below)
