"""Types that are told where sqlglot does not, or tells another: see `kinds`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlglot import exp

from compiler import casefile
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.operators.algebra import Step
from dagster_streamtables.compiler.text.sqlglot_dialects import type_text
from dagster_streamtables.errors import InvalidDefinition

OUTPUTS, TABLE_FUNCTIONS, MATTERING, _ = casefile.tables("types.txt").values()
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


@pytest.mark.parametrize(("output", "type_"), OUTPUTS)
def test_a_type_is_told_as_spark_has_it_or_not_at_all(output: str, type_: str) -> None:
    plan = compile_query(f"SELECT {output} FROM things", THINGS)
    assert [type_text(each) for each in plan.schema.values()] == [type_]


@pytest.mark.parametrize(("beside", "types"), TABLE_FUNCTIONS)
def test_a_table_function_makes_what_is_in_a_value(beside: str, types: str) -> None:
    """Not what the value itself is: the keys of a MAP can be compared."""
    names = ", ".join("abc"[: types.count(",") + 1])
    plan = compile_query(f"SELECT {names} FROM things {beside}", THINGS)
    assert [type_text(type_) for type_ in plan.schema.values()] == types.split(", ")


@pytest.mark.parametrize(("query", "what"), MATTERING)
def test_a_type_that_matters_is_followed_to_the_output(query: str, what: str) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        compile_query(query, THINGS)
    assert refusal.value.what == what


def test_a_variant_that_reaches_no_output_may_be_there() -> None:
    parsed = "(SELECT id, json, from_json(json, 'VARIANT') AS x FROM things)"
    compile_query(f"SELECT max_by(id, json) + size(array_agg(x)) AS n FROM {parsed}", THINGS)


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
