"""What is not maintained says so when the table is defined: what, where, why, and what to do."""

from __future__ import annotations

import pytest

from compiler import casefile
from compiler.casefile import Case
from compiler.database import TABLES
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery

refused = [case for case in casefile.load() if case.error]
*_, REFUSED_TYPES = casefile.tables("types.txt").values()
TYPED = {
    "things": {
        "id": "int",
        "pairs": "map<string,int>",
        "anything": "variant",
        "place": "geometry",
        "nested": "struct<x:int,m:map<string,int>>",
        "clock": "time(6)",
        "folded": "string collate UTF8_LCASE",
        "nothing": "void",
    }
}


@pytest.mark.parametrize("case", refused, ids=str)
def test_a_refusal_has_four_parts(case: Case) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        compile_query(case.query, TABLES)
    error = refusal.value
    assert error.what == case.error.removeprefix("-- ")
    line, _, marks = error.where.partition("\n")
    assert line.startswith("line "), "the place has a line and a column"
    assert "^" in marks, "the place is underlined"
    assert error.why
    assert error.fix


def test_the_caret_stands_under_the_word_that_is_meant() -> None:
    with pytest.raises(UnsupportedQuery) as refusal:
        compile_query("SELECT id,\n  amount + rand() AS r\nFROM orders", TABLES)
    assert refusal.value.where == (
        "line 2, column 12\n"
        "  amount + rand() AS r\n"
        "           ^^^^"
    )  # fmt: skip


_BOTH = "FROM orders AS o JOIN customers AS c ON o.customer = c.id"
_IDS = "WITH x AS (SELECT id FROM orders), y(id) AS (SELECT customer FROM orders)"


CALENDAR = {"days": {"id": "int", "current_date": "int", "user": "int"}, "others": {"id": "int"}}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, current_date FROM days",
        "SELECT id FROM days WHERE current_date > 1",
        "SELECT id FROM others WHERE id IN (SELECT current_date FROM days)",
        "SELECT current_timestamp FROM (SELECT id AS current_timestamp FROM others)",
    ],
)
def test_a_column_that_is_called_like_a_function_of_the_time(query: str) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        compile_query(query, CALENDAR)
    assert "is the name of a column, and of a function" in refusal.value.what
    assert "^" in refusal.value.where
    assert "in backticks" in refusal.value.fix


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, `current_date` FROM days",
        "SELECT d.current_date FROM days AS d",
        "SELECT id, user FROM days",
        "SELECT id AS current_date FROM others",
    ],
)
def test_what_is_surely_a_column_is_one(query: str) -> None:
    assert not compile_query(query, CALENDAR).is_time_dependent


@pytest.mark.parametrize(
    ("query", "what", "word", "fix"),
    [
        (f"SELECT o.amount {_BOTH}\nWHERE id > 1", '"id" is ambiguous', "id", "o.id"),
        (f"SELECT o.amount AS m,\nid * m AS d {_BOTH}", '"id" is ambiguous', "id", "o.id"),
        ("SELECT a.id FROM orders AS a JOIN orders AS b ON a.id = b.id\nWHERE amount > 1",
         '"amount" is ambiguous', "amount", "a.amount"),
        (f"{_IDS} SELECT x.id FROM x JOIN y ON x.id = y.id\nWHERE id > 1",
         '"id" is ambiguous', "id", "x.id"),
        ("SELECT q.id FROM (SELECT id FROM orders) AS q JOIN customers AS c ON q.id = "
         "c.id\nWHERE id > 1", '"id" is ambiguous', "id", "q.id"),
        (f"SELECT o.id {_BOTH} WHERE EXISTS (SELECT 1 FROM regions AS r\nWHERE r.name = id)",
         '"id" is ambiguous', "id", "o.id"),
        ("SELECT o.id, amount FROM orders AS o\nWHERE o.amont > 1",
         '"o.amont" does not exist', "o.amont", "amount"),
        ("SELECT o.id, o.amount FROM orders AS o\nWHERE x.amount > 1",
         '"x.amount" does not exist', "x.amount", "amount"),
    ],
)  # fmt: skip
def test_a_name_is_underlined_where_it_cannot_be_found(
    query: str, what: str, word: str, fix: str
) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        compile_query(query, TABLES)
    assert refusal.value.what == f"column {what}"
    place, line, marks = refusal.value.where.split("\n")
    assert place.startswith("line 2, ")
    assert line[marks.index("^") : marks.rindex("^") + 1].strip() == word
    assert fix in refusal.value.fix


@pytest.mark.parametrize(("query", "what"), REFUSED_TYPES)
def test_a_type_that_cannot_be_compared_is_refused(query: str, what: str) -> None:
    with pytest.raises(UnsupportedQuery) as refusal:
        compile_query(query, TYPED)
    assert refusal.value.what == what


def test_a_column_of_such_a_type_may_stand_beside() -> None:
    plan = compile_query("SELECT id, anything::INT AS a, nested.x AS x FROM things", TYPED)
    assert list(plan.schema) == ["id", "a", "x"]


def test_a_source_may_not_have_weights_of_its_own() -> None:
    with pytest.raises(UnsupportedQuery) as refusal:
        compile_query("SELECT __weight AS w FROM t", {"t": {"__weight": "bigint"}})
    assert refusal.value.what == 'the query uses a column called "__weight"'


@pytest.mark.parametrize(
    "word",
    sorted(
        spark_functions.AGGREGATES
        | spark_functions.UNREPEATABLE
        | spark_functions.CLOCK
        | spark_functions.TABLE_VALUED
        | spark_functions.OTHERS
    ),
)
def test_no_function_of_the_lists_slips_through(word: str) -> None:
    """Whatever sqlglot makes of the call, and wherever it stands."""
    queries = [f"SELECT id FROM orders WHERE COALESCE({word}(amount, id), 1) = 1"]
    if word not in spark_functions.TABLE_VALUED:
        queries.append(f"SELECT id, {word}(amount) AS x FROM orders")
    for query in queries:
        with pytest.raises(InvalidDefinition):
            compile_query(query, TABLES)


def test_the_lists_of_functions_do_not_overlap() -> None:
    lists = [
        spark_functions.SCALAR,
        spark_functions.MAINTAINED,
        spark_functions.AGGREGATES,
        spark_functions.UNREPEATABLE,
        spark_functions.CLOCK,
        spark_functions.TABLE_VALUED,
        spark_functions.OTHERS,
    ]
    assert len(frozenset().union(*lists)) == sum(map(len, lists))


def test_a_star_over_a_join_is_told_two_ways_that_work() -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        compile_query("SELECT * FROM orders AS o JOIN customers AS c ON o.id = c.id", TABLES)
    assert refusal.value.fix == (
        "join by USING (id), which returns it once, or write o.*, c.* EXCEPT (id)"
    )
    compile_query("SELECT * FROM orders AS o JOIN customers AS c USING (id)", TABLES)
    compile_query(
        "SELECT o.*, c.* EXCEPT (id) FROM orders AS o JOIN customers AS c ON o.id = c.id", TABLES
    )


def test_a_table_that_only_the_parser_sees_is_refused() -> None:
    query = "SELECT id, c.id AS z FROM customers AS c, JOIN orders AS o USING (id)"
    with pytest.raises(InvalidDefinition, match='"orders" cannot be read as a table'):
        compile_query(query, TABLES)
