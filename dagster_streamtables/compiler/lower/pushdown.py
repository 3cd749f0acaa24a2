"""Push conditions of WHERE below joins, and order inner joins so that a condition connects each.

    σ_p(L ⋈ R)  =  σ_p(L) ⋈ R      if p reads columns of L only
                =  L ⋈_p R          if it reads both
    σ_p(υ_g(R)) =  υ_g(σ_p(R))      if p reads none of the columns that g makes
    (p ∧ q) ∨ (p ∧ r)  =  p ∧ (q ∨ r)

The change of a join reads its sides before and after; below it, a condition saves reading rows. A
condition that can fail is not moved: further down, it would be evaluated for more rows.

Then each table follows tables to which a condition connects it:

    FROM orders o, regions r, customers c WHERE o.customer = c.id AND c.region = r.name

    (o × r) ⋈ c        as written: a change of one order is paired with every region
    (o ⋈ c) ⋈ r        with the region of its customer

Inner joins may be taken in any order, with each condition where its columns exist. Spark's
optimizer orders those of a query, but not those of a change, whose parts are unions. An order in
which every table is connected stays as it is: its author may have chosen it.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.joins import Join, OuterJoin, conjuncts, join_in_order
from dagster_streamtables.compiler.operators.linear import Filter, Unfold
from dagster_streamtables.compiler.operators.net import cannot_fail
from dagster_streamtables.compiler.operators.refresh_time import TimeColumn, TimeFilter
from dagster_streamtables.compiler.operators.sql_builders import column, column_names
from dagster_streamtables.compiler.text.current_time import NOW


def filter_rows(rows: Operator, conditions: list[exp.Expr]) -> Operator:
    """The rows that satisfy all conditions."""
    conditions = [part for each in conditions for part in _factor_out(each)]
    stays: list[exp.Expr] = []
    asking = [each for each in conditions if reads_time(each)]
    for condition in (each for each in conditions if each not in asking):
        lowered = _push_down(rows, condition) if _may_move(condition) else None
        if lowered is None:
            stays.append(condition)
        else:
            rows = lowered
    rows = reorder_joins(rows)
    rows = Filter(rows, exp.and_(*stays)) if stays else rows
    return TimeFilter(rows, exp.and_(*asking)) if asking else rows


def _factor_out(condition: exp.Expr) -> list[exp.Expr]:
    """What all alternatives have in common, and what is left of them: often they repeat a join."""
    if not isinstance(condition.unnest(), exp.Or) or not cannot_fail(condition):
        return [condition]
    alternatives = [conjuncts(each.unnest()) for each in condition.unnest().flatten()]
    common = [each for each in alternatives[0] if all(each in some for some in alternatives)]
    rest = [[each for each in some if each not in common] for some in alternatives]
    if not common:
        return [condition]
    return [*common, exp.or_(*(exp.and_(*some) for some in rest))] if all(rest) else common


def reads_time(expression: exp.Expr) -> bool:
    return column(NOW) in expression.find_all(exp.Column)


def add_time_column(rows: Operator) -> Operator:
    """The rows, with a column for the time."""
    return rows if NOW in rows.schema else TimeColumn(rows)


def _push_down(rows: Operator, condition: exp.Expr) -> Operator | None:
    """The rows with the condition pushed inside; None if that is not possible."""
    names = column_names(condition)
    if isinstance(rows, Join | OuterJoin) and names <= set(rows.left.schema):
        return rows.over(_below(rows.left, condition), rows.right)
    if isinstance(rows, Unfold) and names <= set(rows.input.schema):
        return rows.over(_below(rows.input, condition))
    if not isinstance(rows, Join):
        return None
    if names <= set(rows.right.schema):
        return rows.over(rows.left, _below(rows.right, condition))
    both = [each for each in (rows.condition, condition) if each != exp.true()]
    return Join(rows.left, rows.right, exp.and_(*both))


def _below(rows: Operator, condition: exp.Expr) -> Operator:
    lowered = _push_down(rows, condition)
    if lowered is not None:
        return lowered
    if isinstance(rows, Filter):
        return Filter(rows.input, exp.and_(rows.predicate, condition))
    return Filter(rows, condition)


def _may_move(condition: exp.Expr) -> bool:
    return cannot_fail(condition) and condition.find(exp.Column) is not None


def reorder_joins(rows: Operator) -> Operator:
    """The rows, with the joins on top of them in an order without products, if there is one.

    A condition that can fail stays where it is: elsewhere it would see other rows.
    """
    tables, conditions = _chain(rows)
    if len(tables) < 3 or not all(map(cannot_fail, conditions)):
        return rows
    order = _order(tables, conditions)
    return rows if order == tables else join_in_order(order, conditions)


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
    names = [column_names(each) for each in equalities]
    return any(each & own and each & known and each <= own | known for each in names)
