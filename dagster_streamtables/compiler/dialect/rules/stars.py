"""Stars over joins by names: each dialect has their columns in another order.

    SELECT b.*, v FROM a JOIN b USING (k)       SELECT b.y, b.k, v FROM a JOIN b USING (k)

In PostgreSQL and DuckDB, ``b.*`` has the columns in the order of the table; in Spark, what was
merged comes first. In DuckDB, ``*`` has what is merged where the left table has it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dagster_streamtables.compiler.dialect.rules.query import Columns
from dagster_streamtables.compiler.scope.from_columns import (
    DUCKDB,
    POSTGRES,
    FromColumn,
    Scopes,
    StarRules,
    joins_by_name,
)
from dagster_streamtables.compiler.text.query_text import table_name
from dagster_streamtables.compiler.text.refusal import Refusal

RULES: Mapping[str, StarRules] = {"postgres": POSTGRES, "duckdb": DUCKDB}


def expand_stars(tree: exp.Query, columns: Columns, rules: StarRules) -> None:
    """List the columns of stars that would have another order in Spark.

    Args:
        tree: A query as parsed. It is changed.
        columns: The columns of its tables; stars over others stay.
        rules: Those of its dialect.
    """
    scopes = Scopes(lambda table: list(columns.get(table_name(table), ())) or None, rules)
    expanded = dict[int, list[exp.Expr]]()
    selects = [each for each in tree.find_all(exp.Select) if joins_by_name(each)]
    for select in selects:
        for item in select.expressions:
            is_of_table = isinstance(item, exp.Column)
            if not item.is_star or not (is_of_table or not rules.keys_first):
                continue
            try:
                expanded[id(item)] = [_output(each) for each in scopes.expand(item, select)]
            except Refusal:
                continue  # Spark knows the columns, and the names are the same in any order
    for select in selects:
        items = [each for item in select.expressions for each in expanded.get(id(item), [item])]
        select.set("expressions", items)


def _output(column: FromColumn) -> exp.Expr:
    return column.value.copy() if column.table else exp.column(column.name, quoted=True)
