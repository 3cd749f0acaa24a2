"""Types that only Spark can tell: asked for before a table is built, refused in our own words."""

from __future__ import annotations

import pytest

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.compute.column_types import (
    are_of_arrow,
    maintenance_problem,
    require_storable,
)
from dagster_streamtables.runtime.errors.error_translation import is_lasting
from runtime.delta import run_on_delta, write
from runtime.orders import orders
from runtime.refreshes import refreshed

INTERVAL = "SELECT id, aggregate(array(1), make_dt_interval(id), (a, e) -> a) AS length FROM orders"
MAP = (
    "SELECT pairs, COUNT(*) AS n FROM (SELECT aggregate(array(1), map(0, amount), (m, e) -> m) "
    "AS pairs FROM orders) AS t GROUP BY pairs"
)
KEY = "SELECT COUNT(*) AS n FROM orders GROUP BY make_dt_interval(customer)"
VARIANT = "SELECT id, to_variant_object(struct(amount)) AS v, id % 2 AS n FROM orders"


@pytest.mark.parametrize(
    ("mode", "query", "what"),
    [
        ("DIFFERENTIAL", INTERVAL, 'the column "length" holds values of the type INTERVAL DAY'),
        ("FULL", INTERVAL, 'the column "length" holds values of the type INTERVAL DAY TO SECOND'),
        ("AUTO", "SELECT id, array() AS x FROM orders", 'the column "x" holds values of the type'),
        ("DIFFERENTIAL", MAP, '"pairs" holds a MAP'),
        ("DIFFERENTIAL", KEY, "the table's own state would hold values of the type INTERVAL DAY"),
        ("DIFFERENTIAL", "SELECT id, coalesce(NULL, NULL) AS x FROM orders", '"x" holds a NULL'),
    ],
)
def test_a_type_that_cannot_be_kept_is_named_and_nothing_written(
    lake: Lake, mode: str, query: str, what: str
) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        lake.refresh(StreamTable("t", query, mode=mode))
    assert refusal.value.what.startswith(f'stream table "t": {what}')
    assert is_lasting(refusal.value)
    assert refusal.value.fix
    assert lake.version("t") is None


@pytest.mark.parametrize("query", [pytest.param(MAP, marks=pytest.mark.long), KEY])
def test_auto_runs_in_full_what_turns_out_not_to_be_maintainable(lake: Lake, query: str) -> None:
    table = StreamTable("t", query, mode="AUTO")
    built = lake.refresh(table)
    run_on_delta(lake, "DELETE FROM orders WHERE id IN (1, 4, 5)")
    write(lake, "orders", orders(100))
    again = refreshed(lake, table, because="the mode is AUTO, and ")
    assert (built.action, again.action) == (Action.REINITIALIZE, Action.FULL)
    assert lake.refresh(table).action is Action.NO_DATA


@pytest.mark.long
def test_another_query_under_the_name_is_maintained_again(lake: Lake) -> None:
    table = StreamTable("t", MAP, mode="AUTO")
    lake.refresh(table)
    mended = StreamTable("t", "SELECT id, amount FROM orders", mode="AUTO")
    lake.refresh(mended)
    write(lake, "orders", orders(100))
    refreshed(lake, mended, Action.DIFFERENTIAL)


@pytest.mark.falls_back
@pytest.mark.long
def test_an_intermediate_table_that_cannot_be_stored_is_not_kept(lake: Lake) -> None:
    query = (
        "SELECT c FROM (SELECT make_dt_interval(customer) AS b, COUNT(*) AS c FROM orders "
        "GROUP BY make_dt_interval(customer)) AS t WHERE b > INTERVAL 1 DAY"
    )
    table = StreamTable("t", query)
    for _ in range(3):
        refreshed(lake, table)
        run_on_delta(lake, "DELETE FROM orders WHERE id % 5 = 2 AND id < 10")
        write(lake, "orders", orders(102, 105))


@pytest.mark.long
def test_a_variant_is_stored_as_one(lake: Lake) -> None:
    """Arrow has it as a struct of two columns of bytes, which delta-rs would store."""
    table = StreamTable("t", VARIANT, mode="FULL")
    lake.refresh(table)
    assert (lake.columns("t") or {})["v"] == "variant"
    shown = lake.read("t").where("id = 3").selectExpr("to_json(v)").collect()
    assert [row[0] for row in shown] == ['{"amount":6}']
    assert lake.check(table).equal
    run_on_delta(lake, "DELETE FROM t WHERE id = 3")
    found = lake.check(table)
    assert (found.missing, found.unexpected) == (1, 0)


@pytest.mark.parametrize(
    ("type_", "kept", "followed", "of_arrow"),
    [
        ("long", True, True, True),
        ("time(6)", False, True, True),
        ("interval", False, True, True),
        ("variant", True, True, False),
        ("geometry", True, False, True),
        ("void", True, False, False),
        ({"type": "array", "elementType": "void"}, False, True, False),
        ({"type": "array", "elementType": "interval day"}, False, True, True),
        ({"type": "map", "keyType": "string", "valueType": "long"}, True, True, True),
        ({"type": "struct", "fields": [{"name": "interval", "type": "long"}]}, True, True, True),
        ({"type": "struct", "fields": [{"name": "a", "type": "void"}]}, False, True, False),
        (
            {"type": "struct", "fields": [{"name": n, "type": n} for n in ("void", "long")]},
            True, False, False,
        ),
        (
            {"type": "array", "elementType": {
                "type": "struct", "fields": [{"name": n, "type": n} for n in ("void", "long")],
            }},
            False, True, False,
        ),
    ],
)  # fmt: skip
def test_each_type(type_: object, kept: bool, followed: bool, of_arrow: bool) -> None:
    types = {"x": type_}
    if kept:
        require_storable(types)  # type: ignore[arg-type]
    else:
        with pytest.raises(InvalidDefinition):
            require_storable(types)  # type: ignore[arg-type]
    assert (maintenance_problem(types) is None) is followed  # type: ignore[arg-type]
    assert are_of_arrow(types) is of_arrow  # type: ignore[arg-type]
    assert (maintenance_problem({"__st_n": type_}) is None) is (kept and followed)  # type: ignore
