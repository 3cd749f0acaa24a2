"""The clauses of a SELECT, its window functions, and set operations → operators.

One function per clause, in the order in which SQL runs the clauses: FROM, WHERE, GROUP BY, HAVING,
windows, QUALIFY, SELECT, DISTINCT, ORDER BY with LIMIT. Each takes the rows so far and returns the
rows after its clause. Each window becomes a column, computed before the expression around it.

INTERSECT and EXCEPT are aggregates, because how often a row is in the result depends only on its
counts in both sides:

    L ∩ R, L − R      γ over both, every row marked with its side and counted there

Names are settled here, once; see `scope`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from dagster_streamtables.compiler.analyze.bind import BoundQuery, Columns
from dagster_streamtables.compiler.lower.from_clause import FromClause
from dagster_streamtables.compiler.lower.grouping import (
    Grouping,
    keys_and_sets,
    replace_by_columns,
    with_sessions,
)
from dagster_streamtables.compiler.lower.pushdown import add_time_column, reads_time
from dagster_streamtables.compiler.lower.scope import Scope, rewrite_expression
from dagster_streamtables.compiler.lower.subqueries import Subqueries
from dagster_streamtables.compiler.lower.with_clause import add_ctes
from dagster_streamtables.compiler.operators.algebra import Operator, Union
from dagster_streamtables.compiler.operators.keyed import Aggregate, Top, WindowColumns, distinct
from dagster_streamtables.compiler.operators.linear import Filter, Project, Unfold, column_outputs
from dagster_streamtables.compiler.operators.sql_builders import column, type_of, typed
from dagster_streamtables.compiler.text.current_time import is_now
from dagster_streamtables.compiler.text.group_by import calls, grouping_keys, has_groups
from dagster_streamtables.compiler.text.table_mentions import own_aliases

Outputs = tuple[tuple[str, exp.Expr], ...]
_NUMBER = exp.DataType.build("int")
_LEFT, _RIGHT, _COPY = "in left", "in right", "in result"


def lower(parsed: BoundQuery, sources: Mapping[str, Columns]) -> Operator:
    """The operator tree of a query; its outputs have the names in `parsed.names`."""
    scope = Scope({f: (name, sources[name]) for f, name in parsed.scans.items()})
    rows = _query(parsed.tree, scope)
    if tuple(rows.schema) == parsed.names:
        return rows
    return _rename_columns(rows, column_outputs(rows.schema, parsed.names))


def _rename_columns(rows: Operator, outputs: Outputs) -> Operator:
    """Rename the columns inside a root that `fold` supports, not by a projection above it."""
    new = {e.name: name for name, e in outputs}
    if isinstance(rows, Project):
        return Project(rows.input, tuple((new[name], e) for name, e in rows.outputs))
    if isinstance(rows, Aggregate) and not rows.measures:
        return distinct(_rename_columns(rows.input, outputs))
    return Project(rows, outputs)


def _query(query: exp.Expr, scope: Scope) -> Operator:
    scope = add_ctes(query, scope, _query)
    match query:
        case exp.SetOperation():
            rows = lower_set_operation(query, _query(query.left, scope), _query(query.right, scope))
            return _top_of_outputs(rows, query)
        case exp.Subquery():
            return _top_of_outputs(_query(query.this, scope), query)
        case exp.Select():
            return _select(query, scope)
    raise AssertionError(f"{query.key} has not been refused")


@dataclass
class _Parts:
    """The expressions evaluated after WHERE; GROUP BY and windows treat them alike."""

    outputs: list[exp.Expr]
    order: list[exp.Expr]
    having: list[exp.Expr]
    qualify: list[exp.Expr]

    @classmethod
    def of(cls, query: exp.Select) -> _Parts:
        windows: list[exp.Expr] = query.args.get("windows") or []
        named = {str(each.alias).lower() or each.name.lower(): each for each in windows}
        having, qualify = (_condition(query, name) for name in ("having", "qualify"))
        outputs = [each.unalias() for each in query.expressions]
        parts = cls(outputs, _order_beside(query), having, qualify)
        parts.replace([inline_window(each, named) for each in parts.all])
        return parts

    @property
    def all(self) -> list[exp.Expr]:
        return [*self.outputs, *self.order, *self.having, *self.qualify]

    def replace(self, new: list[exp.Expr]) -> None:
        for part in (self.outputs, self.order, self.having, self.qualify):
            count = len(part)
            part[:], new = new[:count], new[count:]


def _condition(query: exp.Select, name: str) -> list[exp.Expr]:
    clause = query.args.get(name)
    return [] if clause is None else [clause.this]


def _select(query: exp.Select, scope: Scope) -> Operator:
    scope = scope.seeing(own_aliases(query))
    subqueries = Subqueries(_query, _from)
    rows = _from(query, _condition(query, "where"), scope, subqueries)
    parts = _Parts.of(query)
    if any(is_now(node) for part in parts.all for node in part.walk()):
        rows = add_time_column(rows)
    if has_groups(query):
        rows, scope = _group(rows, query, parts, scope, subqueries)
    rows = _apply_having(rows, parts, scope, subqueries)
    rows = _apply_windows(rows, parts, scope)
    return _output(rows, query, parts)


def _from(
    query: exp.Select,
    conditions: list[exp.Expr],
    scope: Scope,
    subqueries: Subqueries | None = None,
) -> Operator:
    subqueries = subqueries or Subqueries(_query, _from)
    rows = FromClause(query, scope, _query, subqueries).rows()
    return subqueries.where(rows, exp.and_(*conditions), scope) if conditions else rows


def _group(
    rows: Operator, query: exp.Select, parts: _Parts, scope: Scope, subqueries: Subqueries
) -> tuple[Operator, Scope]:
    """Group the rows, and replace each key and call by the column that now holds it."""
    rows, clause = _subqueries_in_keys(rows, query.args.get("group"), parts, scope, subqueries)
    found = list(dict.fromkeys(call for part in parts.all for call in calls(part)))
    rows, results = subqueries.add_results(rows, found, scope)
    inside = {call: new for call, new in zip(found, results, strict=True) if call != new}
    parts.replace([scope.flat(replace_by_columns(each, inside)) for each in parts.all])
    keys, sets = keys_and_sets(clause, scope)
    rows = with_sessions(rows, keys, clause, scope)
    rows, held = Grouping(rows, keys, sets, parts.all).groups()
    parts.replace([replace_by_columns(each, held) for each in parts.all])
    if any(map(reads_time, [*parts.outputs, *parts.order, *parts.qualify])):
        # A group has no time of its own.
        rows = add_time_column(rows)
    columns = {key.name: held[key] for key in keys if isinstance(key, exp.Column)}
    return rows, replace(scope, held={**scope.held, **columns})


def _subqueries_in_keys(
    rows: Operator,
    clause: exp.Group | None,
    parts: _Parts,
    scope: Scope,
    subqueries: Subqueries,
) -> tuple[Operator, exp.Group | None]:
    """Add the results of subqueries in keys before the rows are grouped, and replace them in
    GROUP BY and in all that is evaluated after it."""
    keys = [key for key in grouping_keys(clause) if key.find(exp.Query)] if clause else []
    if clause is None or not keys:
        return rows, clause
    rows, results = subqueries.add_results(rows, keys, scope)
    new = dict(zip(keys, results, strict=True))
    parts.replace([replace_by_columns(each, new) for each in parts.all])
    written = replace_by_columns(clause, new)
    assert isinstance(written, exp.Group)
    return rows, written


def _apply_having(rows: Operator, parts: _Parts, scope: Scope, subqueries: Subqueries) -> Operator:
    """The rows that satisfy HAVING, with columns for the subqueries of the other parts."""
    for condition in parts.having:
        rows = subqueries.where(rows, condition, scope)
    parts.having.clear()
    rows, results = subqueries.add_results(rows, parts.all, scope)
    parts.replace([scope.flat(each) for each in results])
    return rows


def _apply_windows(rows: Operator, parts: _Parts, scope: Scope) -> Operator:
    """The rows that satisfy QUALIFY, with a column for each window."""
    windows = dict.fromkeys(node for part in parts.all for node in part.find_all(exp.Window))
    if not windows and not parts.qualify:
        return rows
    found: list[exp.Expr] = list(windows)
    rows, keys = _add_partition_keys(rows, found, scope)
    held: dict[exp.Expr, exp.Expr] = {}
    together: dict[tuple[str, ...], list[tuple[str, exp.Expr]]] = {}
    for i, node in enumerate(found):
        name = scope.unique_name(f"win_{i}")
        by = tuple(dict.fromkeys(keys[each] for each in node.args.get("partition_by") or []))
        call = node.copy()
        call.set("partition_by", [column(key) for key in by])
        together.setdefault(by, []).append((name, typed(call, type_of(node))))
        held[node] = typed(column(name), type_of(node))
    for by, outputs in together.items():
        rows = WindowColumns(rows, by, tuple(outputs))

    def settle(node: exp.Expr) -> exp.Expr:
        return held[node].copy() if node in held else node

    parts.replace([rewrite_expression(part, settle) for part in parts.all])
    return Filter(rows, exp.and_(*parts.qualify)) if parts.qualify else rows


def _add_partition_keys(
    rows: Operator, windows: list[exp.Expr], scope: Scope
) -> tuple[Operator, dict[exp.Expr, str]]:
    """Add a column for each expression in PARTITION BY."""
    partitions = dict.fromkeys(k for each in windows for k in each.args.get("partition_by") or [])
    keys: dict[exp.Expr, str] = {k: k.name for k in partitions if isinstance(k, exp.Column)}
    made = [key for key in partitions if key not in keys]
    if not made:
        return rows, keys
    keys |= {key: scope.unique_name(f"part_{i}") for i, key in enumerate(made)}
    kept = column_outputs(rows.schema)
    return Project(rows, (*kept, *((keys[key], key) for key in made))), keys


def _output(rows: Operator, query: exp.Select, parts: _Parts) -> Operator:
    names = [each.alias_or_name for each in query.expressions]
    outputs = tuple(zip(names, parts.outputs, strict=True))
    beside = tuple((f"ord_{i}", each) for i, each in enumerate(parts.order))
    if query.args.get("distinct"):
        return _top_of_outputs(distinct(Project(rows, outputs)), query)
    if not parts.order:
        return _top_of_outputs(Project(rows, outputs), query)
    ordered = _ordered_by(query)
    held = {id(each): name for each, (name, _) in zip(_beside(query), beside, strict=True)}
    order = tuple(_by(each, held.get(id(each)) or each.this.name) for each in ordered)
    rows = _top(Project(rows, (*outputs, *beside)), query, order)
    return Project(rows, tuple((n, typed(column(n), type_of(e))) for n, e in outputs))


def _top_of_outputs(rows: Operator, query: exp.Expr) -> Operator:
    """Apply ORDER BY with LIMIT, ordered by columns of the result."""
    order = tuple(_by(each, each.this.name) for each in _ordered_by(query))
    return _top(rows, query, order)


def _top(rows: Operator, query: exp.Expr, order: Outputs | tuple[exp.Expr, ...]) -> Operator:
    limit, offset = (query.args.get(name) for name in ("limit", "offset"))
    if limit is None and offset is None:
        # A table has no order.
        return rows
    count = None if limit is None else limit.expression or limit.args.get("count")
    return Top(rows, order, count, offset.expression if offset is not None else None)  # type: ignore[arg-type]


def _by(ordered: exp.Ordered, name: str) -> exp.Expr:
    new = ordered.copy()
    new.set("this", column(name))
    return new


def _ordered_by(query: exp.Expr) -> list[exp.Ordered]:
    clause = query.args.get("order")
    limited = query.args.get("limit") or query.args.get("offset")
    return list(clause.expressions) if clause and limited else []


def _beside(query: exp.Select) -> list[exp.Ordered]:
    """The items of ORDER BY that are not columns of the result."""
    names = {each.alias_or_name for each in query.expressions}
    items = _ordered_by(query)
    return [each for each in items if not (_is_plain(each.this) and each.this.name in names)]


def _order_beside(query: exp.Select) -> list[exp.Expr]:
    outputs = {each.alias_or_name: each.unalias() for each in query.expressions}

    def settle(node: exp.Expr) -> exp.Expr:
        return outputs[node.name].copy() if _is_plain(node) and node.name in outputs else node

    return [each.this.copy().transform(settle) for each in _beside(query)]


def _is_plain(node: exp.Expr) -> bool:
    """Whether it names a column of the result, or one that only Spark can resolve."""
    return isinstance(node, exp.Column) and not node.table


def inline_window(part: exp.Expr, named: Mapping[str, exp.Expr]) -> exp.Expr:
    """``OVER w`` with the definition of ``w`` from the WINDOW clause."""

    def settle(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Window) and node.alias.lower() in named:
            meant = named[node.alias.lower()]
            new = node.copy()
            new.set("alias", None)
            for key in ("partition_by", "order", "spec"):
                new.set(key, meant.copy().args.get(key))
            return typed(new, type_of(node))
        return node

    return rewrite_expression(part, settle)


def has_parentheses_below(tree: exp.Expr) -> bool:
    """Whether a subquery has a set operation one of whose sides is in parentheses."""
    return any(
        isinstance(side, exp.Subquery)
        for each in tree.find_all(exp.SetOperation)
        if each.find_ancestor(exp.Subquery, exp.Exists, exp.In, exp.Lateral)
        for side in (each.left, each.right)
    )


def lower_set_operation(query: exp.SetOperation, left: Operator, right: Operator) -> Operator:
    if isinstance(query, exp.Union):
        rows = Union(left, right)
        return distinct(rows) if query.args["distinct"] else rows
    both = Union(_mark_side(left, left, 1, 0), _mark_side(right, left, 0, 1))
    counts = tuple((name, exp.Sum(this=column(name))) for name in (_LEFT, _RIGHT))
    counted = Aggregate(both, tuple(left.schema), counts)
    in_left, in_right = column(_LEFT), column(_RIGHT)
    except_ = isinstance(query, exp.Except)
    if query.args["distinct"]:
        other = in_right.eq(0) if except_ else in_right > 0
        rows = Filter(counted, exp.and_(in_left > 0, other))
    else:
        fewer = exp.Least(this=in_left, expressions=[in_right])
        copies = in_left - in_right if except_ else fewer
        some = Filter(counted, exp.GT(this=copies.copy(), expression=exp.Literal.number(0)))
        each = [exp.Literal.number(1), exp.cast(copies, "INT")]
        numbers = exp.Anonymous(this="sequence", expressions=each)
        rows = Unfold(some, exp.Explode(this=numbers), ((_COPY, _NUMBER),))
    return Project(rows, column_outputs(left.schema))


def _mark_side(side: Operator, left: Operator, in_left: int, in_right: int) -> Operator:
    marks = ((_LEFT, in_left), (_RIGHT, in_right))
    numbers = ((n, typed(exp.Literal.number(value), _NUMBER)) for n, value in marks)
    return Project(side, (*column_outputs(side.schema, left.schema), *numbers))
