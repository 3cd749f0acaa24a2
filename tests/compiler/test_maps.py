"""MAPs as lists of their entries: the forms, and where a rule or a completed query has them."""

from __future__ import annotations

import pytest

from compiler import casefile
from dagster_streamtables.compiler import comparable_columns, compile_query
from dagster_streamtables.compiler.operators.comparable import (
    as_maps,
    comparable,
    ordered,
    value_without_null,
)
from dagster_streamtables.compiler.operators.leaves import Empty, Scan
from dagster_streamtables.compiler.operators.net import Net
from dagster_streamtables.compiler.operators.sql_builders import column
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.compiler.text.sqlglot_dialects import type_from

THINGS = {
    "things": {"id": "int", "m": "map<string,string>", "s": "struct<a:int,m:map<string,string>>"}
}


@pytest.mark.parametrize(
    ("type_", "listed", "by_key", "back"), casefile.tables("maps.txt")["forms"]
)
def test_a_value_with_maps_has_forms_without(
    type_: str, listed: str, by_key: str, back: str
) -> None:
    value, known = column("m"), type_from(type_)
    assert comparable(value, known).sql("spark") == listed
    assert ordered(value, known).sql("spark") == by_key
    assert as_maps(value, known).sql("spark") == back
    assert comparable_columns({"m": type_, "x": "int"}) == ({"m": listed} if "map" in type_ else {})


@pytest.mark.parametrize(
    ("query", "completed"), casefile.tables("completed_orders.txt")["values with a MAP"]
)
def test_what_has_several_answers_is_completed(query: str, completed: str) -> None:
    assert compile_query(query, THINGS).text.sql == completed


def test_the_key_of_a_group_is_the_list_of_the_entries_by_key() -> None:
    plan = compile_query("SELECT m, s, COUNT(*) AS n FROM things GROUP BY m, s", THINGS)
    assert plan.key == ("__st_k0", "__st_k1")
    assert "SORT_ARRAY(MAP_ENTRIES(`things`.`m`)) AS `__st_k0`" in plan.full_text.sql
    change = plan.change_sql()
    assert "MAP_FROM_ENTRIES(`key_0`)" in change
    # A group whose map has only another order of entries is the same group.
    assert "MAP_ENTRIES(`row.m`) IS NOT DISTINCT FROM MAP_ENTRIES(`old.m`)" in _spaced(change)


def _spaced(sql: str) -> str:
    return " ".join(sql.split()).replace("<=>", "IS NOT DISTINCT FROM")


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("map<string,string>", None),
        ("map<int,array<int>>", None),
        ("map<int,decimal(9,2)>", None),
        ("array<map<int,struct<a:int>>>", None),
        ("map<string,bigint>", "BIGINT"),
        ("struct<a:map<string,map<int,date>>>", "DATE"),
        ("map<unknown,unknown>", "UNKNOWN"),
    ],
)
def test_a_map_that_spark_sorts_without_its_nulls_is_no_key(type_: str, kind: str | None) -> None:
    assert value_without_null(type_from(type_)) == kind


def test_groups_that_are_computed_again_are_compared_by_entries() -> None:
    made = "map_from_entries(collect_list(struct(id, id)))"
    plan = compile_query(f"SELECT id, {made} AS x FROM things GROUP BY id", THINGS)
    types = {"id": "int", "x": "map<int,int>"}
    sql = _spaced(render(plan.change(stored=types)))
    assert "MAP_ENTRIES(`n`.`x`) IS NOT DISTINCT FROM MAP_ENTRIES(`s`.`x`)" in sql


def test_rows_are_netted_by_entries_and_shown_with_their_maps() -> None:
    types = (("id", type_from("int")), ("m", type_from("map<string,int>")))
    sql = _spaced(render(Net(Scan("things", types))))
    assert "SELECT `id`, ANY_VALUE(`m`) AS `m`" in sql
    assert "GROUP BY `id`, MAP_ENTRIES(`m`)" in sql


def test_a_map_of_which_the_types_are_not_known_is_null_without_a_type() -> None:
    sql = render(Empty((("m", type_from("map<unknown,unknown>")),), False))
    assert "CAST" not in sql
