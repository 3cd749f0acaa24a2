"""Normalized syntax tree → operator tree.

One function per clause, in the order in which SQL runs the clauses: FROM, WHERE, GROUP BY, HAVING,
SELECT, DISTINCT. Each takes the rows built so far and returns the rows after its clause.

This is also where names are settled, once. Below this module a column is a plain name, unique in
its input: ``orders AS o`` enters the tree with the columns ``o.id``, ``o.customer``, and so on. No
operator ever has to guess which side of a join a column came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.names import flat
from dagster_streamtables.compiler.operators import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    Scan,
    Union,
    column,
    distinct,
    type_of,
)
from dagster_streamtables.compiler.parse import Columns, Parsed, known_type

Outputs = tuple[tuple[str, exp.Expr], ...]


@dataclass(frozen=True)
class Names:
    """What the names of tables mean at one place of a query."""

    sources: Mapping[str, tuple[str, Columns]]
    """Name in the tree → the source's own name, and its columns."""
    shared: Mapping[str, Operator]
    """The common table expressions in reach."""


def lower(parsed: Parsed, sources: Mapping[str, Columns]) -> Operator:
    """The operator tree of a query; its outputs carry the names in `parsed.names`."""
    names = Names({f: (name, sources[name]) for f, name in parsed.scans.items()}, {})
    rows = _query(parsed.tree, names)
    if tuple(rows.schema) == parsed.names:
        return rows
    outputs = zip(parsed.names, rows.schema.items(), strict=True)
    return _renamed(rows, tuple((name, _typed(column(n), t)) for name, (n, t) in outputs))


def _renamed(rows: Operator, outputs: tuple[tuple[str, exp.Expr], ...]) -> Operator:
    """New names for the columns, inside a root that `fold` knows rather than around it."""
    new = {e.name: name for name, e in outputs}
    if isinstance(rows, Project):
        return Project(rows.input, tuple((new[name], e) for name, e in rows.outputs))
    if isinstance(rows, Aggregate) and not rows.measures:
        return distinct(_renamed(rows.input, outputs))
    return Project(rows, outputs)


def _query(query: exp.Expr, names: Names) -> Operator:
    names = _with(query, names)
    match query:
        case exp.Union():
            rows = Union(_query(query.left, names), _query(query.right, names))
            return distinct(rows) if query.args["distinct"] else rows
        case exp.Subquery():
            return _query(query.this, names)
        case exp.Select():
            return _select(query, names)
    raise AssertionError(f"{query.key} has not been refused")


def _with(query: exp.Expr, names: Names) -> Names:
    clause = query.args.get("with_")
    for cte in clause.expressions if clause else []:
        shared = {**names.shared, cte.alias: _query(cte.this, names)}
        names = Names(names.sources, shared)
    return names


def _select(query: exp.Select, names: Names) -> Operator:
    rows = _from(query, names)
    rows = _where(rows, _clause(query, "where"))
    outputs = tuple((each.alias_or_name, _flat(each.unalias())) for each in query.expressions)
    rows, outputs, having = _group_by(rows, query, outputs)
    rows = Project(_where(rows, having), outputs)
    return distinct(rows) if query.args.get("distinct") else rows


def _clause(query: exp.Select, name: str) -> exp.Expr | None:
    clause = query.args.get(name)
    return _flat(clause.this) if clause else None


def _from(query: exp.Select, names: Names) -> Operator:
    clause = query.args.get("from_")
    assert clause is not None, "a SELECT without FROM has been refused"
    used = _used_columns(query)
    rows = _relation(clause.this, names, used)
    for join in query.args.get("joins") or []:
        rows = _join(rows, join, names, used)
    return rows


def _join(left: Operator, join: exp.Join, names: Names, used: Mapping[str, set[str]]) -> Operator:
    right = _relation(join.this, names, used)
    condition = _flat(join.args.get("on") or exp.true())
    match join.side:
        case "LEFT":
            return OuterJoin(left, right, condition)
        case "RIGHT":
            return _ordered(OuterJoin(right, left, condition), left, right)
        case "FULL":
            lonely = AntiJoin(right, left, condition)
            # Without a type: it takes that of the column above it, which only Spark knows.
            nulls = ((n, _typed(exp.null(), t)) for n, t in left.schema.items())
            kept = ((n, _typed(column(n), t)) for n, t in right.schema.items())
            return OuterJoin(left, right, condition) + Project(lonely, (*nulls, *kept))
    return Join(left, right, condition)


def _ordered(rows: Operator, *sides: Operator) -> Operator:
    schema = {name: type_ for side in sides for name, type_ in side.schema.items()}
    return Project(rows, tuple((n, _typed(column(n), t)) for n, t in schema.items()))


def _relation(source: exp.Expr, names: Names, used: Mapping[str, set[str]]) -> Operator:
    alias = source.alias_or_name
    if isinstance(source, exp.Subquery):
        rows = _query(source.this, _with(source, names))
    elif source.name in names.shared and not source.args.get("db"):
        rows = names.shared[source.name]
    else:
        name, columns = names.sources[source.name]
        needed = used.get(alias, set())
        read = ((n.lower(), t) for n, t in columns.items())
        rows = Scan(name, tuple((n, known_type(n, t)) for n, t in read if n in needed))
    return Project(
        rows, tuple((flat(alias, n), _typed(column(n), t)) for n, t in rows.schema.items())
    )


def _used_columns(query: exp.Select) -> dict[str, set[str]]:
    """For each table alias, the columns that this SELECT reads from it."""
    used: dict[str, set[str]] = {}
    for each in query.find_all(exp.Column):
        used.setdefault(each.table, set()).add(each.name)
    return used


def _where(rows: Operator, predicate: exp.Expr | None) -> Operator:
    return rows if predicate is None else Filter(rows, predicate)


def _group_by(
    rows: Operator, query: exp.Select, outputs: Outputs
) -> tuple[Operator, Outputs, exp.Expr | None]:
    """Group the rows, and replace what was grouped by the column that now holds it."""
    clause, having = query.args.get("group"), _clause(query, "having")
    after = [expression for _, expression in outputs] + ([having] if having else [])
    calls = list(dict.fromkeys(call for part in after for call in _calls(part)))
    if not clause and not calls and not having:
        return rows, outputs, None

    keys = list(dict.fromkeys(_flat(key) for key in (clause.expressions if clause else [])))
    arguments: dict[exp.Expr, str] = {}
    measures = tuple((f"agg_{i}", _measure(call, arguments)) for i, call in enumerate(calls))
    inputs = {f"key_{i}": key for i, key in enumerate(keys)}
    below = (*inputs.items(), *((name, argument) for argument, name in arguments.items()))
    grouped = Aggregate(Project(rows, below), tuple(inputs), measures)

    held_by: dict[exp.Expr, str] = {call: f"agg_{i}" for i, call in enumerate(calls)}
    held_by |= {key: f"key_{i}" for i, key in enumerate(keys)}

    def settle(node: exp.Expr) -> exp.Expr:
        return _typed(column(held_by[node]), type_of(node)) if node in held_by else node

    settled = tuple((name, expression.transform(settle)) for name, expression in outputs)
    return grouped, settled, having.transform(settle) if having else None


def _calls(part: exp.Expr) -> list[exp.Expr]:
    """The aggregate calls of an expression, each with the FILTER that belongs to it."""
    found: list[exp.Expr] = []
    for call in part.find_all(exp.AggFunc):
        parent = call.parent
        found.append(parent if isinstance(parent, exp.Filter) else call)
    return found


def _measure(call: exp.Expr, arguments: dict[exp.Expr, str]) -> exp.Expr:
    """The aggregate function with its argument replaced by the column that will hold it."""
    function, condition = call, None
    if isinstance(call, exp.Filter):
        function, condition = call.this, call.expression.this
    argument = function.this
    if isinstance(argument, exp.Distinct):
        held = [_argument(each, condition, arguments) for each in argument.expressions]
        return _typed(type(function)(this=exp.Distinct(expressions=held)), type_of(function))
    if isinstance(argument, exp.Star) and condition is None:
        return _typed(exp.Count(this=exp.Star()), type_of(function))
    return _typed(type(function)(this=_argument(argument, condition, arguments)), type_of(function))


def _argument(
    place: exp.Expr, condition: exp.Expr | None, arguments: dict[exp.Expr, str]
) -> exp.Expr:
    value = exp.Literal.number(1) if isinstance(place, exp.Star) else place.copy()
    if condition is not None:
        # Every aggregate function here ignores NULL, so a row that is filtered out may be one.
        value = exp.Case().when(condition.copy(), value)
    value = _typed(value, type_of(place))
    name = arguments.setdefault(value, f"arg_{len(arguments)}")
    return _typed(column(name), type_of(value))


def _flat(expression: exp.Expr) -> exp.Expr:
    """Turn each ``table.column`` into the one name it has in the tree."""

    def settle(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table:
            return _typed(column(flat(node.table, node.name)), type_of(node))
        return node

    return expression.copy().transform(settle)


def _typed(expression: exp.Expr, type_: exp.DataType) -> exp.Expr:
    expression.type = type_
    return expression
