"""A fix that quotes a name quotes it as the dialect of the query does."""

from __future__ import annotations

import pytest

from dagster_streamtables import StreamTable
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.model.definition import stored_plan

COLUMNS = {"orders": {"id": "int", "customer": "int", "amount": "int"}}
DATED = {"orders": {"id": "int", "current_date": "date"}}


def fix_of(query: str, dialect: str, columns: dict[str, dict[str, str]]) -> str:
    with pytest.raises(InvalidDefinition) as refused:
        table = StreamTable("t", query, dialect=dialect)
        stored_plan(table, table.text(columns), columns)
    return refused.value.fix


@pytest.mark.parametrize(
    ("query", "dialect", "fix"),
    [
        ('SELECT id AS "Order Id" FROM orders', "postgres", 'rename it, as in AS "Order_Id"'),
        ('SELECT id AS "Order Id" FROM orders', "duckdb", 'rename it, as in AS "Order_Id"'),
        ("SELECT id AS `Order Id` FROM orders", "spark", "rename it, as in AS `Order_Id`"),
    ],
)
def test_the_name_in_a_fix_can_be_written(query: str, dialect: str, fix: str) -> None:
    assert fix_of(query, dialect, COLUMNS) == fix
    # And it helps.
    quote = "`" if dialect == "spark" else '"'
    table = StreamTable(
        "t", query.replace(f"{quote}Order Id{quote}", fix.rpartition(" ")[2]), dialect=dialect
    )
    assert list(stored_plan(table, table.text(COLUMNS), COLUMNS).schema) == ["Order_Id"]


def test_a_word_with_two_meanings() -> None:
    assert fix_of("SELECT id, current_date AS d FROM orders", "spark", DATED) == (
        "write `current_date` in backticks for the column, or current_date() for the function"
    )
