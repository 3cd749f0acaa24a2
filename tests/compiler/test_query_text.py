"""The user's own text: its tables, the same text over other tables, and the columns added to it."""

from __future__ import annotations

import pytest
from sqlglot import exp

from compiler import casefile
from compiler.database import TABLES
from dagster_streamtables.compiler import StrategyKind, compile_query, read, recursive_table
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.compiler.text.query_text import tokenize_query
from dagster_streamtables.compiler.text.sqlglot_dialects import require_pure_python
from dagster_streamtables.errors import EnvironmentProblem, InvalidDefinition

SOURCES, OPERATORS, JOINS = casefile.tables("query_texts.txt").values()
DECLARED = {f"t{i}": {"id": "bigint", "k": "bigint"} for i in range(13)}


@pytest.mark.parametrize(("query", "sources"), SOURCES)
def test_the_sources_are_the_tables_that_are_no_common_table_expression(
    query: str, sources: str
) -> None:
    assert tokenize_query(query).sources == tuple(sources.split(", "))


def test_only_the_names_of_tables_are_exchanged() -> None:
    text = read("SELECT orders.id /* FROM orders */, 'orders' AS t -- of orders\nFROM orders")
    assert text.over(lambda name: f"<{name}>").sql == (
        "SELECT orders.id /* FROM orders */, 'orders' AS t -- of orders\nFROM <orders> AS `orders`"
    )


def test_an_alias_stays_and_a_name_of_two_parts_answers_to_its_last() -> None:
    text = read("SELECT o.id FROM sales.orders AS o JOIN sales.customers ON customers.id = o.id")
    assert text.over(lambda name: f"`{name}@after`").sql == (
        "SELECT o.id FROM `sales.orders@after` AS o "
        "JOIN `sales.customers@after` AS `customers` ON customers.id = o.id"
    )


def test_a_path_is_a_name() -> None:
    text = read("SELECT id FROM delta.`/data/orders.v1`")
    assert text.sources == ("delta.`/data/orders.v1`",)
    plan = compile_query(
        "SELECT id, SUM(n) AS n FROM delta.`/data/orders.v1` GROUP BY id",
        {"delta.`/data/orders.v1`": {"id": "int", "n": "int"}},
    )
    assert "COUNT(`/data/orders.v1`.`n`)" in plan.full_text.sql


BAG, FOLD, REGROUP = StrategyKind


@pytest.mark.parametrize(
    ("query", "kind", "key", "hidden"),
    [
        ("SELECT id FROM orders", BAG, None, 0),
        ("SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer", FOLD, 1, 0),
        ("SELECT customer, SUM(amount) AS s FROM orders GROUP BY customer", FOLD, 1, 2),
        ("SELECT COUNT(amount) AS n, SUM(amount) AS s FROM orders", FOLD, 0, 1),
        ("SELECT MIN(amount) AS m FROM orders GROUP BY customer, id", FOLD, 2, 3),
        ("SELECT AVG(amount) AS a FROM orders", FOLD, 0, 3),
        ("SELECT DISTINCT customer, amount FROM orders", FOLD, 2, 1),
        ("SELECT id FROM orders UNION SELECT id FROM customers", FOLD, 1, 1),
        ("SELECT id FROM orders UNION ALL SELECT id FROM customers", BAG, None, 0),
        ("SELECT COUNT(*) AS n FROM orders HAVING COUNT(*) > 1", REGROUP, 0, 0),
        ("SELECT COUNT(DISTINCT id) AS n FROM orders GROUP BY customer", REGROUP, 1, 1),
    ],
)
def test_the_root_decides_how_the_change_enters(
    query: str, kind: StrategyKind, key: int | None, hidden: int
) -> None:
    plan = compile_query(query, TABLES)
    assert plan.strategy_kind is kind
    assert (None if plan.key is None else len(plan.key)) == key
    assert len(plan.internal_columns) == hidden
    assert all(name.startswith("__st_") for name in plan.internal_columns)


def test_a_fold_reads_the_change_and_the_table_and_no_source() -> None:
    query = "SELECT customer, SUM(amount) AS s, MAX(id) AS m FROM orders WHERE id > 1 GROUP BY 1"
    plan = compile_query(query, TABLES)
    sql = render(plan.change(stored=dict.fromkeys(plan.stored_columns, "bigint")))
    assert "orders@change" in sql
    assert "__st_table@before" in sql
    assert "orders@after" not in sql
    assert "orders@before" not in sql


def test_a_term_of_a_source_that_stands_still_is_not_written() -> None:
    query = "SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id"
    plan = compile_query(query, TABLES)
    stored = {"id": "int", "region": "string"}
    sql = render(plan.change(stored=stored, unmoved={"customers"}))
    assert "orders@change" in sql
    assert "customers@after" in sql
    assert "customers@change" not in sql
    assert "orders@before" not in sql


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_the_joins_of_a_change_grow_with_the_tables_and_not_faster(join: str) -> None:
    """n tables have n terms, not 2ⁿ; what they share is written once."""
    written = [_chain(tables, join).count(" JOIN ") for tables in (4, 8, 12)]
    assert written[2] - written[1] == written[1] - written[0]
    assert written[2] <= 5 * 12


def test_a_common_table_expression_read_twice_by_each_next_one_is_written_once() -> None:
    """Thirty levels: whoever walked every path to the first would not come back."""
    steps = ["c0 AS (SELECT id, k FROM t0)"]
    steps += [
        f"c{i + 1} AS (SELECT a.id, b.k FROM c{i} AS a JOIN c{i} AS b ON a.id = b.k)"
        for i in range(30)
    ]
    plan = compile_query(f"WITH {', '.join(steps)} SELECT id, k FROM c30", DECLARED)
    sql = render(plan.change(stored={"id": "bigint", "k": "bigint"}))
    assert sql.count("FROM `t0@change`") == 1
    assert "line" in plan.explain()


def test_the_origins_of_a_column_are_the_values_it_is_computed_from() -> None:
    plan = compile_query(
        "WITH t AS (SELECT customer AS who, amount * 2 AS twice FROM orders WHERE id > 1) "
        "SELECT c.region, SUM(t.twice) + MAX(c.id) AS total, COUNT(*) AS n "
        "FROM t JOIN customers AS c ON t.who = c.id GROUP BY c.region",
        TABLES,
    )
    assert plan.lineage() == {
        "region": (("customers", "region"),),
        "total": (("orders", "amount"), ("customers", "id")),
        "n": (),
    }


def test_a_query_that_is_empty_is_no_query() -> None:
    with pytest.raises(InvalidDefinition):
        read(" ; ")


def _chain(tables: int, join: str) -> str:
    steps = " ".join(f"{join} t{i} ON t{i}.id = t{i - 1}.k" for i in range(1, tables))
    plan = compile_query(f"SELECT t0.id, t{tables - 1}.k FROM t0 {steps}", DECLARED)
    return render(plan.change(stored={"id": "bigint", "k": "bigint"}), pretty=False)


@pytest.mark.parametrize(
    ("query", "full"),
    [
        (
            "FROM orders |> AGGREGATE SUM(amount) AS s GROUP BY customer",
            "FROM orders |> AGGREGATE SUM(amount) AS s\n, COUNT(*) AS `__st_n`, "
            "COUNT(`orders`.`amount`) AS `__st_c1` GROUP BY customer",
        ),
        (
            "FROM orders |> AGGREGATE GROUP BY customer",
            "FROM orders |> AGGREGATE\nCOUNT(*) AS `__st_n` GROUP BY customer",
        ),
        (
            "FROM orders AS o JOIN customers AS c ON c.id = o.customer |> EXTEND 1 AS one "
            "|> AGGREGATE SUM(c.id) AS s GROUP BY region",
            "FROM orders AS o JOIN customers AS c ON c.id = o.customer |> EXTEND 1 AS one "
            "|> AGGREGATE SUM(c.id) AS s\n, COUNT(*) AS `__st_n`, COUNT(`c`.`id`) AS `__st_c1` "
            "GROUP BY region",
        ),
        (
            "FROM orders AS o JOIN customers AS c ON c.id = o.customer "
            "|> UNION ALL (SELECT id, id, id, id, 'x' FROM orders) "
            "|> AGGREGATE SUM(c.id) AS s GROUP BY region",
            "FROM orders AS o JOIN customers AS c ON c.id = o.customer "
            "|> UNION ALL (SELECT id, id, id, id, 'x' FROM orders) "
            "|> AGGREGATE SUM(c.id) AS s\n, COUNT(*) AS `__st_n`, COUNT(`c`.`id`) AS `__st_c1` "
            "GROUP BY region",
        ),
        (
            "SELECT DISTINCT id, amount FROM orders |> SELECT DISTINCT amount",
            "SELECT *, COUNT(*) AS `__st_n` FROM (SELECT DISTINCT id, amount FROM orders "
            "|> SELECT  amount\n) GROUP BY ALL",
        ),
    ],
)
def test_a_full_refresh_adds_the_state_to_the_last_step_of_a_pipe(query: str, full: str) -> None:
    assert compile_query(query, TABLES).full_text.sql == full


def test_queries_with_the_same_words_are_normally_the_same() -> None:
    query = read("SELECT id, 'it -- is' AS `select` FROM t WHERE x = 'A'")
    same = read("select id , 'it -- is' as `select` -- no\nfrom t /* t */ where x='A'")
    assert query.normal == same.normal
    formed = read("SELECT `id`, 'it -- is' `select` FROM t WHERE x = 'A'")
    assert formed.normal == query.normal
    changes = {"'it -- is'": "'it -- Is'", "`select`": "`Select`", "'A'": "A", "id": "Id"}
    for word, other in changes.items():
        assert read(query.sql.replace(word, other)).normal != query.normal


def test_a_recursion_reads_the_definitions_of_the_query_around_it() -> None:
    recursion = recursive_table(
        tokenize_query(
            "WITH a AS (SELECT id FROM t) SELECT id FROM (WITH RECURSIVE r(id) AS (SELECT id FROM "
            "a UNION ALL SELECT r.id + 1 FROM r JOIN a ON r.id = a.id) SELECT id FROM r) AS x"
        )
    )
    assert recursion is not None
    assert [each.alias for each in recursion.before] == ["a"]


@pytest.mark.parametrize("case", casefile.load(), ids=str)
def test_tokens_and_tree_tell_of_the_same_tables(case: casefile.Case) -> None:
    try:
        text = read(case.query)
    except InvalidDefinition:
        return
    assert text.has_consistent_tables


def test_an_alias_comes_behind_a_sample() -> None:
    text = tokenize_query("SELECT t.a FROM s.t TABLESAMPLE (3 ROWS) WHERE t.a > 1")
    assert text.over(lambda name: f"<{name}>").sql == (
        "SELECT t.a FROM <s.t> TABLESAMPLE (3 ROWS) AS `t` WHERE t.a > 1"
    )


def test_a_table_whose_name_is_computed_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match="the name of a table is computed"):
        _ = tokenize_query("SELECT a FROM IDENTIFIER('t' || '1')").sources


@pytest.mark.parametrize("clause", ["WHERE 1 = 1", "QUALIFY COUNT(*) OVER () > 1", "|> LIMIT 1"])
def test_a_clause_is_no_alias(clause: str) -> None:
    assert tokenize_query(f"FROM t {clause}").over(str).sql == f"FROM t AS `t` {clause}"


def test_compiled_modules_of_sqlglot_are_refused() -> None:
    with pytest.raises(EnvironmentProblem, match="compiled modules"):
        require_pure_python("/site-packages/sqlglot/parser.cpython-311-x86_64-linux-gnu.so")


@pytest.mark.parametrize(
    ("path", "meant"), [("v:a", "$.a"), ("v:a.b[0].c", "$.a.b[0].c"), ("v:['a b'].c", "$['a b'].c")]
)
def test_a_path_into_a_variant_is_a_call(path: str, meant: str) -> None:
    [call] = read(f"SELECT {path}::INT AS x FROM t").tree.find_all(exp.Anonymous)
    assert [each.name for each in call.expressions] == ["v", meant, "variant"]


@pytest.mark.parametrize(("written", "meant"), OPERATORS)
def test_operators_bind_as_in_the_grammar_of_spark(written: str, meant: str) -> None:
    """https://github.com/apache/spark/blob/v4.2.0/sql/api/src/main/antlr4/, valueExpression."""
    assert _without_parentheses(written) == _without_parentheses(meant)


def _without_parentheses(expression: str) -> exp.Expr:
    tree = read(f"SELECT {expression} AS x FROM t").tree
    for each in list(tree.find_all(exp.Paren)):
        each.replace(each.this)
    return tree


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("'it''s'", "it's"),
        ('"say ""x"""', 'say "x"'),
        ("''''", "'"),
        (r"'a\''''", "a''"),
        ('"it\'s"', "it's"),
        ("''", ""),
    ],
)
def test_two_quotes_inside_of_a_text_are_one(written: str, meant: str) -> None:
    [found] = read(f"SELECT {written} AS x FROM t").tree.find_all(exp.Literal)
    assert found.this == meant


LETTERS = {
    "a": {"x": "int", "y": "int"},
    "b": {"y": "int", "z": "int"},
    "c": {"x": "int", "z": "int", "s": "string"},
}


@pytest.mark.parametrize(("query", "joins"), JOINS)
def test_joins_in_an_order_that_conditions_connect(query: str, joins: str) -> None:
    text = compile_query(query, LETTERS).explain().split("\nChange")[0]
    found = [line.split("Join on ")[1].split("  [")[0] for line in text.splitlines()
             if "Join on " in line]  # fmt: skip
    assert found == joins.split("; ")
