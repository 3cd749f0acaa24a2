"""The order of inner joins: a table comes where a condition connects it to those before it.

    FROM orders o, regions r, customers c WHERE o.customer = c.id AND c.region = r.name

    (o × r) ⋈ c        as it is written: a change of one order is paired with every region
    (o ⋈ c) ⋈ r        with the one of its customer

Inner joins may be taken in any order, with each condition where its columns are there. Spark's
optimizer orders those of a query, but not those of a change, whose parts are unions. An order in
which every table is connected stays as it is, for its author may have chosen it.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.operators import Join, Operator
from dagster_streamtables.compiler.operators.failing import cannot_fail
from dagster_streamtables.compiler.operators.left_linear import conjuncts


def reorder_joins(rows: Operator) -> Operator:
    """The rows, with the joins on top of them in an order without products, if there is one.

    A condition that can fail stays where it is: elsewhere it would see other rows.
    """
    tables, conditions = _chain(rows)
    if len(tables) < 3 or not all(map(cannot_fail, conditions)):
        return rows
    order = _order(tables, conditions)
    return rows if order == tables else _join_in_order(order, conditions)


def _chain(rows: Operator) -> tuple[list[Operator], list[exp.Expr]]:
    """The tables of a chain of joins, in their order, and all of its conditions."""
    tables: list[Operator] = []
    conditions: list[exp.Expr] = []
    while isinstance(rows, Join):
        tables.insert(0, rows.right)
        conditions[:0] = [each for each in conjuncts(rows.condition) if each != exp.true()]
        rows = rows.left
    return [rows, *tables], conditions


def _order(tables: list[Operator], conditions: list[exp.Expr]) -> list[Operator]:
    first, *left = tables
    order, known = [first], set(first.schema)
    while left:
        found = next((each for each in left if _connects(known, each, conditions)), left[0])
        left.remove(found)
        order.append(found)
        known |= set(found.schema)
    return order


def _connects(known: set[str], table: Operator, conditions: list[exp.Expr]) -> bool:
    own = set(table.schema)
    equalities = (each for each in conditions if isinstance(each, exp.EQ | exp.NullSafeEQ))
    names = [_names(each) for each in equalities]
    return any(each & own and each & known and each <= own | known for each in names)


def _join_in_order(order: list[Operator], conditions: list[exp.Expr]) -> Operator:
    rows, *tables = order
    left = list(conditions)
    for table in tables:
        there = {*rows.schema, *table.schema}
        now = [each for each in left if _names(each) <= there]
        left = [each for each in left if not _names(each) <= there]
        rows = Join(rows, table, exp.and_(*now) if now else exp.true())
    return rows


def _names(condition: exp.Expr) -> set[str]:
    return {each.name for each in condition.find_all(exp.Column)}
