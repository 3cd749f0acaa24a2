"""VARIANTs as strings that tell them apart, and where a rule or a completed query has them."""

from __future__ import annotations

import pytest

from dagster_streamtables.compiler import comparable_columns, compile_query, json_columns
from dagster_streamtables.compiler.operators.comparable import comparable, variant_form
from dagster_streamtables.compiler.operators.leaves import Scan
from dagster_streamtables.compiler.operators.net import Net, can_net
from dagster_streamtables.compiler.operators.sql_builders import column
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.compiler.text.sqlglot_dialects import type_from

THINGS = {"things": {"id": "int", "v": "variant", "s": "struct<a:int,v:variant>"}}
JSON = "TO_JSON({}, MAP('timeZone', 'UTC'))"


def _form(value: str) -> str:
    """The form of a value of which the name stands nowhere else in it."""
    return variant_form(column("it")).sql("spark").replace("`it`", value)


@pytest.mark.parametrize(
    ("type_", "form", "json"),
    [
        ("int", "`v`", None),
        ("map<int,int>", "MAP_ENTRIES(`v`)", None),
        ("variant", _form("`v`"), JSON.format("`v`")),
        ("array<variant>", f"TRANSFORM(`v`, e0 -> {_form('e0')})",
         f"TRANSFORM(`v`, e0 -> {JSON.format('e0')})"),
        ("struct<a:int,v:variant>",
         f"CASE WHEN `v` IS NULL THEN NULL ELSE NAMED_STRUCT('a', `v`.`a`, 'v', "
         f"{_form('`v`.`v`')}) END",
         f"CASE WHEN `v` IS NULL THEN NULL ELSE NAMED_STRUCT('a', `v`.`a`, 'v', "
         f"{JSON.format('`v`.`v`')}) END"),
        ("map<int,variant>",
         "TRANSFORM(MAP_ENTRIES(`v`), e0 -> NAMED_STRUCT('key', e0.key, 'value', "
         f"{_form('e0.value')}))",
         "MAP_FROM_ENTRIES(TRANSFORM(MAP_ENTRIES(`v`), e0 -> NAMED_STRUCT('key', e0.key, 'value', "
         f"{JSON.format('e0.value')})))"),
        # Its maps stay maps where only the variants are wanted as text.
        ("struct<m:map<int,int>,v:variant>",
         "CASE WHEN `v` IS NULL THEN NULL ELSE NAMED_STRUCT('m', MAP_ENTRIES(`v`.`m`), 'v', "
         f"{_form('`v`.`v`')}) END",
         f"CASE WHEN `v` IS NULL THEN NULL ELSE NAMED_STRUCT('m', `v`.`m`, 'v', "
         f"{JSON.format('`v`.`v`')}) END"),
    ],
)  # fmt: skip
def test_a_value_with_variants_has_a_form_without(type_: str, form: str, json: str | None) -> None:
    assert comparable(column("v"), type_from(type_)).sql("spark") == form
    types = {"v": type_, "x": "int"}
    assert comparable_columns(types) == ({} if type_ == "int" else {"v": form})
    assert json_columns(types) == ({"v": json} if json else {})


def test_the_form_names_no_zone_but_its_own() -> None:
    assert _form("v").count("TO_JSON(v, MAP('timeZone', 'UTC'))") == 2
    assert "TO_JSON(v)" not in _form("v")


def test_rows_are_netted_by_forms_and_shown_with_their_variants() -> None:
    types = (("id", type_from("int")), ("v", type_from("variant")))
    rows = Net(Scan("things", types))
    assert can_net(rows)
    sql = "".join(render(rows).split())
    assert "SELECT`id`,ANY_VALUE(`v`)AS`v`" in sql
    assert "GROUPBY`id`,ARRAY(TO_JSON(`v`,MAP('timeZone','UTC')),SCHEMA_OF_VARIANT(`v`)" in sql


@pytest.mark.parametrize(
    ("query", "completed"),
    [
        ("SELECT first(v) AS x FROM things",
         f"SELECT min_by(v, CASE WHEN (v) IS NOT NULL THEN {_form('(v)')} END) AS x FROM things"),
        ("SELECT last(v) IGNORE NULLS AS x, first(id) AS i FROM things",
         f"SELECT max_by(v, CASE WHEN (v) IS NOT NULL THEN {_form('(v)')} END) AS x, min(id) AS i "
         "FROM things"),
        ("SELECT any_value(v, true) FILTER (WHERE id > 1) AS x FROM things",
         f"SELECT min_by(v, CASE WHEN (v) IS NOT NULL THEN {_form('(v)')} END) FILTER (WHERE "
         "id > 1) AS x FROM things"),
        ("SELECT max_by(v, id) AS x FROM things",
         "SELECT max_by(v, CASE WHEN (id) IS NOT NULL THEN STRUCT(id, "
         f"{_form('(v)')}) END) AS x FROM things"),
        ("SELECT id, v FROM things LIMIT 1",
         f"SELECT id, v FROM things ORDER BY 1, {_form('`v`')} LIMIT 1"),
        ("SELECT lag(id) OVER (ORDER BY id) AS l, v FROM things",
         f"SELECT lag(id) OVER (ORDER BY id, {_form('`things`.`v`')}, `things`.`id`) AS l, v "
         "FROM things"),
    ],
)  # fmt: skip
def test_what_has_several_answers_is_completed(query: str, completed: str) -> None:
    assert compile_query(query, THINGS).text.sql == completed


def test_groups_that_are_computed_again_are_compared_by_forms() -> None:
    plan = compile_query("SELECT id, max_by(v, id) AS x FROM things GROUP BY id", THINGS)
    sql = render(plan.change(stored={"id": "int", "x": "variant"}))
    assert "TO_JSON(`n`.`x`, MAP('timeZone', 'UTC'))" in sql
    assert "TO_JSON(`s`.`x`, MAP('timeZone', 'UTC'))" in sql
