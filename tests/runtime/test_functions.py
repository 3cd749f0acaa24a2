"""Functions of the author's own: declared in a module, called by queries, found out if they lie."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from dagster_streamtables import Action, Lake, StreamTable, View, deterministic, sql_function
from dagster_streamtables.compiler import compile_query, tokenize_query
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery
from dagster_streamtables.runtime.model.query_functions import functions_in, with_functions
from runtime.delta import run_on_delta, stored
from runtime.refreshes import maintained, refreshed

HEAD = "from dagster_streamtables import deterministic, sql_function\n"
GRADE = """
def _limit():
    return 20

@deterministic("string")
def grade(amount):
    return None if amount is None else "large" if amount > _limit() else "small"
"""
NET = 'net = sql_function("net(a INT, r DOUBLE) RETURNS DOUBLE RETURN a * (1 - r)")\n'
LIAR = """
import random

@deterministic("bigint")
def liar(amount):
    return random.randrange(2 ** 60)
"""
ORDERS = {"orders": {"id": "bigint", "customer": "bigint", "amount": "bigint"}}
Module = Callable[..., str]


@pytest.fixture
def module(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Writes a module, and returns its name."""
    folder = tmp_path_factory.mktemp("project")
    monkeypatch.syspath_prepend(str(folder))

    def write(*texts: str) -> str:
        name = f"{folder.name}_{len(list(folder.iterdir()))}".replace("-", "_")
        (folder / f"{name}.py").write_text(HEAD + "".join(texts))
        importlib.invalidate_caches()
        return name

    return write


def test_each_call_gets_the_name_of_its_function_and_nothing_else(module: Module) -> None:
    functions = functions_in((module(GRADE, NET),))
    grade, net = functions["grade"].registered, functions["net"].registered
    query = "SELECT Grade (amount) AS grade, 'grade(1)' AS t, net(amount, 1) AS net FROM o.grade"
    text = with_functions(tokenize_query(query), functions)
    assert text.sql == (
        f"SELECT {grade} (amount) AS grade, 'grade(1)' AS t, {net}(amount, 1) AS net FROM o.grade"
    )


def test_the_name_changes_with_the_source(module: Module) -> None:
    of = [functions_in((module(each),))["grade"].registered for each in (GRADE, GRADE + "\n\n")]
    assert of[0] == of[1]
    more = functions_in((module(GRADE.replace("amount > _limit()", "amount >= _limit()")),))
    assert more["grade"].registered != of[0]
    typed = functions_in((module(GRADE.replace('"string"', '"varchar(9)"')),))
    assert typed["grade"].registered != of[0]


def test_one_function_of_a_module_can_be_named(module: Module) -> None:
    assert list(functions_in((f"{module(GRADE, NET)}:net",))) == ["net"]


def test_a_query_that_calls_them_is_maintained_by_its_change(module: Module) -> None:
    table = StreamTable(
        "t",
        "SELECT grade(amount) AS g, COUNT(*) AS n FROM orders GROUP BY 1",
        functions=(module(GRADE),),
    )
    assert compile_query(table.text(ORDERS), ORDERS).strategy_kind == "fold"
    with pytest.raises(UnsupportedQuery) as refusal:
        compile_query(table.query, ORDERS)
    assert refusal.value.what == "grade() is neither a function of Spark nor a declared one"
    assert "setting functions" in refusal.value.fix


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("net(a INT) RETURN a", "the text of a SQL function cannot be read"),
        ("net(a INT) RETURNS INT RETURN a * rand()", "the SQL function net calls rand()"),
        (
            "net(a INT) RETURNS DATE RETURN date_add(current_date, a)",
            "the SQL function net calls current_date()",
        ),
        (
            "net(a INT) RETURNS INT RETURN (SELECT MAX(id) FROM orders)",
            "the SQL function net reads a table",
        ),
    ],
)
def test_a_sql_function_that_cannot_be_kept_is_refused(text: str, what: str) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        sql_function(text)
    assert refusal.value.what == what
    assert refusal.value.fix


def test_a_sql_function_may_be_a_whole_statement() -> None:
    written = (
        "CREATE OR REPLACE TEMPORARY FUNCTION Net(s STRING)\n RETURNS STRING RETURN s || 'FROM'"
    )
    assert sql_function(written).name == "net"


@pytest.mark.parametrize(
    ("modules", "texts", "what"),
    [
        (("no module",), (), '"no module" is not a module with functions'),
        (("no.such.module",), (), 'the module "no.such.module" cannot be imported'),
        (("{}",), ("1 / 0\n",), 'the module "{}" cannot be imported'),
        (("{}",), (), '"{}" has no function for queries'),
        (("{}:gone",), (GRADE,), '"{}:gone" has no function for queries'),
        (("{}",), (GRADE.replace("grade", "upper"),), "the function upper is called like one of"),
        (
            ("{}",),
            (NET, NET.replace("net =", "other =").replace("1 - r", "r")),
            "two functions are called net",
        ),
    ],
)
def test_what_is_wrong_with_a_module_is_told(
    modules: tuple[str, ...], texts: tuple[str, ...], what: str, module: Module
) -> None:
    name = module(*texts)
    with pytest.raises(InvalidDefinition) as refusal:
        table = StreamTable(
            "t",
            "SELECT grade(amount) AS g FROM orders",
            functions=tuple(each.format(name) for each in modules),
        )
        table.text(ORDERS)
    assert what.format(name) in refusal.value.what


def test_a_function_stays_what_it_is() -> None:
    @deterministic("bigint")
    def twice(number: int) -> int:
        return 2 * number

    assert twice(3) == 6


def test_a_stream_table_calls_them(lake: Lake, module: Module) -> None:
    """Also through a view, and where a function is only sent to Spark, not importable there."""
    name = module(GRADE, NET)
    table = maintained(
        "t",
        "SELECT g, SUM(n) AS n FROM graded GROUP BY g",
        functions=(name,),
        views=(View("graded", "SELECT grade(amount) AS g, net(amount, 0.5) AS n FROM orders"),),
    )
    assert refreshed(lake, table).action is Action.REINITIALIZE
    run_on_delta(lake, "UPDATE orders SET amount = 30 WHERE id = 1")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    amounts = [row[0] for row in lake.read("orders").select("amount").collect()]
    large, small = ([a / 2 for a in amounts if (a > 20) is large] for large in (True, False))
    expected = {("large", f"{sum(large):g}"), ("small", f"{sum(small):g}")}
    assert set(stored(lake, "t", ["g", "n"])) == expected


@pytest.mark.long
def test_a_function_that_lies_is_found_and_named(lake: Lake, module: Module) -> None:
    table = StreamTable("t", "SELECT id, liar(amount) AS x FROM orders", functions=(module(LIAR),))
    lake.refresh(table)
    found = lake.check(table)
    assert not found.equal
    assert found.missing == found.unexpected > 0
    assert found.functions == ("liar",)


@pytest.mark.long
def test_spark_refuses_what_it_does_not_take(lake: Lake, module: Module) -> None:
    name = module('net = sql_function("net(a INT) RETURNS INT RETURN nothing + 1")\n')
    with pytest.raises(InvalidDefinition) as refusal:
        lake.refresh(StreamTable("t", "SELECT net(id) AS x FROM orders", functions=(name,)))
    assert "Spark does not take the function net" in refusal.value.what
