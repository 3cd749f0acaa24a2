"""Intermediate tables: groups below the root of a query, stored in tables of their own.

    Q(γ(R))   =   Q(T),  T = γ(R)

The keyed law computes the touched groups twice, from R before and after, and the operators above
read them again for each of their terms. Stored in a table, an aggregate below the root changes like
one at the root: its stored groups plus what the change adds to them (see `fold`), without reading
R. To the operators above, T is a source like any other: a small table before and after, whose
change is what the fold committed.

An aggregate at the root with HAVING is also stored: for groups that HAVING excludes, the table
itself has no row to fold into. Groups inside a recursion are not stored, nor are groups that read
the time: those change without a commit.

An intermediate table has the key columns ``k0 … kN``, the measures ``m0 … mN``, and ``s0 … sN`` for
the other state of a fold. Its name is derived from its definition.

To find more such groups, `decorrelate` replaces the rows that a subquery or a semi join reads by
one row per key:

    (SELECT f(γ) FROM R WHERE R.k = row.k)   =   (SELECT f(max(m)) FROM γ_k(R) WHERE k = row.k)
    EXISTS (SELECT … FROM R WHERE R.k = row.k)   =   EXISTS (SELECT … FROM δ_k(R) WHERE k = row.k)
    x IN (SELECT k FROM R),  L ⋉ R,  L ▷ R   =   the same over δ_k(R)

Whether a key has rows seldom changes, so these groups also change less. A key without rows has no
group: MAX of nothing is NULL, as SUM, AVG, MIN and MAX of no rows are, and COUNT of no rows is 0.

This holds if keys are compared as they are grouped: columns of the same type. The groups are
computed for every key, used or not, so an argument that can fail is not moved.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from sqlglot import exp

from dagster_streamtables.compiler.maintain.root_groups import foldable, state_calls
from dagster_streamtables.compiler.maintain.strategy import GroupStrategy, strategy_of
from dagster_streamtables.compiler.operators.algebra import Operator, Step
from dagster_streamtables.compiler.operators.apply import Apply, SubqueryOperator
from dagster_streamtables.compiler.operators.joins import SemiJoin, conjuncts
from dagster_streamtables.compiler.operators.keyed import Aggregate, distinct
from dagster_streamtables.compiler.operators.leaves import Constant, Scan
from dagster_streamtables.compiler.operators.linear import Filter, Project, column_outputs
from dagster_streamtables.compiler.operators.net import can_net, cannot_fail
from dagster_streamtables.compiler.operators.sql_builders import (
    column,
    column_names,
    type_of,
    typed,
)
from dagster_streamtables.compiler.operators.step_trees import rebuild
from dagster_streamtables.compiler.rewrite.fixpoint import canonical_text
from dagster_streamtables.compiler.text.group_by import calls

_ROWS = typed(exp.Count(this=exp.Star()), exp.DataType.build("BIGINT"))


@dataclass(frozen=True)
class Intermediate:
    name: str
    view: Operator
    """Its rows, over sources and previous intermediate tables."""


def split(view: Operator) -> tuple[Operator, tuple[Intermediate, ...]]:
    """The query over intermediate tables, and these tables, each after those that it reads."""
    view = _operator(rebuild(view, lambda step, inputs: decorrelate(step.over(*inputs))))
    stays = _groups_of_the_table(view)
    found: dict[str, Intermediate] = {}

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        new = step.over(*inputs)
        if not isinstance(new, Aggregate) or step is stays or new.open:
            return new
        table = _intermediate(new)
        found[table.name] = table
        return _read(table, new)

    return _operator(rebuild(view, rule)), tuple(found.values())


def _groups_of_the_table(view: Operator) -> Aggregate | None:
    """The groups at the root, if the table itself stores all of them."""
    strategy = strategy_of(view)
    if isinstance(strategy, GroupStrategy) and strategy.having is None:
        return strategy.groups.aggregate
    return None


def _intermediate(groups: Aggregate) -> Intermediate:
    """The groups under plain names, with the state of a fold."""
    calls = [call for _, call in groups.measures]
    states: list[exp.Expr] = []
    if all(map(foldable, calls)):
        needed = dict.fromkeys(state for call in calls for state in state_calls(call))
        states = [each for each in (_ROWS, *needed) if each not in calls]
    kept = {f"s{i}": call for i, call in enumerate(dict.fromkeys(states))}
    names = {name: f"k{i}" for i, name in enumerate(groups.keys)}
    names |= {name: f"m{i}" for i, (name, _) in enumerate(groups.measures)}
    outputs = [(new, typed(column(old), groups.schema[old])) for old, new in names.items()]
    outputs += [(name, typed(column(name), type_of(call))) for name, call in kept.items()]
    whole = Aggregate(groups.input, groups.keys, (*groups.measures, *kept.items()))
    view = Project(whole, tuple(outputs))
    digest = hashlib.sha256(canonical_text(view).encode()).hexdigest()
    return Intermediate(f"__st_{digest[:12]}", view)


def _read(table: Intermediate, groups: Aggregate) -> Operator:
    """The groups, read from the table."""
    new = [name for name in table.view.schema if not name.startswith("s")]
    scan = Scan(table.name, tuple(zip(new, groups.schema.values(), strict=True)))
    return Project(scan, column_outputs(scan.schema, groups.schema))


def _operator(step: Step) -> Operator:
    assert isinstance(step, Operator)
    return step


_CLAUSES = frozenset(("expressions", "from_", "where"))
_ALIKE = (exp.DType.TEXT, exp.DType.BOOLEAN, exp.DType.DATE, exp.DType.DECIMAL)


def decorrelate(step: Step) -> Step:
    """The step over groups if it reads such a subquery; otherwise the step itself."""
    match step:
        case SubqueryOperator(rights=[rows], subquery=subquery):
            positive = subquery.this if isinstance(subquery, exp.Not) else subquery
            match positive:
                case exp.Subquery(this=exp.Select() as query) if isinstance(step, Apply):
                    return _of_groups(step, query, rows)
                case exp.Exists(this=exp.Select() as query) if _is_plain(query):
                    return replace(step, rights=(_distinct(rows, _keys(query, step.left, rows)),))
                case exp.In():
                    query = positive.args["query"].this
                    whole = _is_plain(query) and not query.args.get("where")
                    keys = list(rows.schema) if whole else []
                    return replace(step, rights=(_distinct(rows, keys),))
                case _:
                    return step
        case SemiJoin(left=left, right=right):
            keys = [theirs.name for _, theirs in step.pairs if isinstance(theirs, exp.Column)]
            all_are_keys = len(keys) == len(conjuncts(step.condition))
            return step.over(left, _distinct(right, keys if all_are_keys else []))
        case _:
            return step


def _is_plain(query: exp.Select) -> bool:
    """Whether a subquery has no clauses but SELECT, FROM and WHERE, and no aggregates."""
    clauses = {name for name, value in query.args.items() if value}
    return clauses <= _CLAUSES and not any(True for each in query.expressions for _ in calls(each))


def _distinct(rows: Operator, keys: list[str]) -> Operator:
    """Each key once; the unchanged rows without keys, or if they are groups already."""
    below: Step = rows
    while isinstance(below, Project | Filter):
        below = below.input
    if not keys or isinstance(below, Aggregate | Constant) or not can_net(rows):
        return rows
    return distinct(Project(rows, column_outputs({key: rows.schema[key] for key in keys})))


def _of_groups(step: Apply, query: exp.Select, rows: Operator) -> Step:
    if any(value for name, value in query.args.items() if name not in _CLAUSES):
        return step
    keys, measured = _keys(query, step.left, rows), _measures_in(query.expressions, rows)
    if not keys or not measured:
        return step
    # No other visible column has such a name: the names of a subquery's columns are marked.
    names = {call: f"{keys[0]} {number}" for number, call in enumerate(measured)}
    subquery = exp.Subquery(this=_over_groups(query, names))
    return replace(step, rights=(_groups(rows, keys, names),), subquery=subquery)


def _keys(query: exp.Select, left: Operator, rows: Operator) -> list[str]:
    """The columns that are equated with columns of the outer row; none if any condition differs."""
    where = query.args.get("where")
    condition = where.this if where is not None else exp.true()
    keys: dict[str, None] = {}
    for each in conjuncts(condition):
        sides = [each.this, each.expression] if isinstance(each, exp.EQ) else []
        own = next((side for side in sides if _is_column(side, rows)), None)
        around = next((side for side in sides if _is_column(side, left)), None)
        if own is None or around is None:
            return []
        if not _same(rows.schema[own.name], left.schema[around.name]):
            return []
        keys[own.name] = None
    return list(keys)


def _is_column(node: exp.Expr, rows: Operator) -> bool:
    return isinstance(node, exp.Column) and node.name in rows.schema


def _same(one: exp.DataType, two: exp.DataType) -> bool:
    """Whether values of the types are equal exactly when they are in the same group."""
    whole = exp.DataType.INTEGER_TYPES
    return (one.is_type(*whole) and two.is_type(*whole)) or (one == two and one.this in _ALIKE)


def _measures_in(items: list[exp.Expr], rows: Operator) -> list[exp.Expr]:
    """The aggregates in the items; none if an item contains other columns."""
    found = list(dict.fromkeys(call for item in items for call in calls(item)))
    reads = column_names(*found)
    safe = (isinstance(call.this, exp.Star) or cannot_fail(call.this) for call in found)
    simple = all(map(foldable, found)) and all(safe)
    seen = reads <= set(rows.schema) and column_names(*items) <= reads
    return found if len(items) == 1 and simple and seen else []


def _groups(rows: Operator, keys: list[str], names: dict[exp.Expr, str]) -> Operator:
    arguments = {each: f"arg_{i}" for i, each in enumerate(dict.fromkeys(c.this for c in names))}
    plain = {each: n for each, n in arguments.items() if not isinstance(each, exp.Star)}
    same = column_outputs({key: rows.schema[key] for key in keys})
    below = Project(rows, (*same, *((name, each) for each, name in plain.items())))

    def over(call: exp.Expr) -> exp.Expr:
        argument: exp.Expr = exp.Star()
        if call.this in plain:
            argument = typed(column(plain[call.this]), type_of(call.this))
        return typed(type(call)(this=argument), type_of(call))

    return Aggregate(below, tuple(keys), tuple((name, over(call)) for call, name in names.items()))


def _over_groups(query: exp.Select, names: dict[exp.Expr, str]) -> exp.Select:
    """The subquery over one row per key."""

    def settle(node: exp.Expr) -> exp.Expr:
        if node not in names:
            return node
        value = typed(exp.Max(this=column(names[node])), type_of(node))
        zero = [exp.Literal.number(0)]
        return exp.Coalesce(this=value, expressions=zero) if isinstance(node, exp.Count) else value

    grouped = query.copy()
    grouped.set("expressions", [each.transform(settle) for each in grouped.expressions])
    return grouped
