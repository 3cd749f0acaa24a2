"""Aggregates that Spark computes otherwise: composed of others, and over no rows.

An aggregate that becomes an expression over other aggregates passes its FILTER and OVER to each of
them: ``avg(n) FILTER (WHERE f)`` is a quotient of a sum and a count, both with the FILTER.

The grand total of ROLLUP, CUBE and GROUPING SETS exists in other systems even over no rows. Of
several grouping sets, Spark has the row of the empty one only if there are rows. A SELECT that goes
on with its groups (windows, DISTINCT, LIMIT) stays unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product

from sqlglot import exp

from dagster_streamtables.compiler.dialect.rules.rule import Query, call, from_template
from dagster_streamtables.compiler.text.group_by import sets_of

_MARK = "aggregate"
_COMPOSED = "composed"


def mark_aggregate(node: exp.Expr) -> exp.Expr:
    """The node, marked as an aggregate to which a FILTER or a window belongs."""
    node.meta[_MARK] = True
    return node


def mark_composite(node: exp.Expr) -> exp.Expr:
    """The node, marked as an expression over aggregates."""
    node.meta[_COMPOSED] = True
    return node


def spread_over_aggregates(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A FILTER or an OVER, around each aggregate of the expression that it follows."""
    inner = node.this
    if not inner.meta.get(_COMPOSED):
        return None
    whole = exp.paren(inner.copy())
    for each in [each for each in whole.walk() if each.meta.get(_MARK)]:
        around = node.copy()
        part = each.copy()
        part.meta[_MARK] = False
        around.set("this", part)
        each.replace(mark_aggregate(around))
    return mark_composite(whole.this)


def correlation(node: exp.Expr, query: Query, *, flat: str) -> exp.Expr:
    """``corr(y, x)``, which is `flat` if all values of a column are equal. There, Spark's CORR
    divides by zero, also inside a CASE, because Spark computes every aggregate of one."""
    template = f"CASE WHEN _xx = 0 OR _yy = 0 THEN {flat} ELSE _xy / SQRT(_xx * _yy) END"
    return of_squares(node, query, template=template)


def of_squares(node: exp.Expr, query: Query, *, template: str) -> exp.Expr:
    """A statistic of pairs: by the sums of squares ``_xx`` and ``_yy``, and of products ``_xy``."""
    pair = node.this, node.expression
    sums = {
        each: mark_aggregate(call(f"REGR_S{each}".upper(), *(part.copy() for part in pair)))
        for each in ("xx", "yy", "xy")
        if f"_{each}" in template
    }
    return mark_composite(from_template(template, **sums))


_SETS = (exp.GroupingSets, exp.Cube, exp.Rollup)
_GOES_ON = ("distinct", "limit", "offset", "qualify", "windows", "with_")
_INSIDE = (exp.AggFunc, exp.Query, exp.Grouping, exp.GroupingId)
_MOST_KEYS = 6
"""Of a CUBE: it has 64 sets."""
Keys = list[exp.Expr]


def total_over_no_rows(tree: exp.Query) -> None:
    """Write the grand total as a SELECT without groups, which is a row even over no rows.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT a, COUNT(*) AS n FROM t GROUP BY ROLLUP (1)")
    >>> total_over_no_rows(tree)
    >>> rest, total = tree.sql().split(" UNION ALL ")
    >>> print(rest)
    SELECT * FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a))
    >>> print(total)
    SELECT NULL AS a, COUNT(*) AS n FROM t HAVING COUNT(*) >= 0) AS st_totals
    """
    for select in list(tree.find_all(exp.Select)):
        sets = _sets_of(select)
        if [] in sets and sets != [[]] and _is_simple(select, list(chain.from_iterable(sets))):
            _split_totals(select, sets)


def _sets_of(select: exp.Select) -> list[Keys]:
    """The grouping sets; none for a plain list of keys."""
    clause = select.args.get("group")
    if clause is None or clause.args.get("all") is False:
        return []
    held = [*clause.expressions, *(e for k in ("grouping_sets", "cube", "rollup")
                                   for e in clause.args.get(k) or [])]  # fmt: skip
    if not held or any(not isinstance(each, _SETS) or not each.expressions for each in held):
        return []
    if sum(len(each.expressions) for each in held if isinstance(each, exp.Cube)) > _MOST_KEYS:
        return []
    sets = [[*chain.from_iterable(each)] for each in product(*map(sets_of, held))]
    return [[_resolve_number(key, select) for key in each] for each in sets]


def _resolve_number(key: exp.Expr, select: exp.Select) -> exp.Expr:
    """The output that a number counts."""
    if not key.is_int or not 0 < int(key.name) <= len(select.expressions):
        return key
    return select.expressions[int(key.name) - 1].unalias()


def _is_simple(select: exp.Select, keys: Sequence[exp.Expr]) -> bool:
    """Whether the SELECT ends with its groups, and reads nothing of them but keys."""
    if any(map(select.args.get, _GOES_ON)) or select.find(exp.Window):
        return False
    parts = [*select.expressions, *filter(None, [select.args.get("having")])]
    own = (node for part in parts for node in _outside(part, keys))
    return not any(isinstance(node, exp.Column | exp.Star | exp.Query) for node in own)


def _outside(part: exp.Expr, keys: Sequence[exp.Expr]) -> Sequence[exp.Expr]:
    """The nodes of an expression that are in no aggregate, and in no key."""

    def ends(node: exp.Expr) -> bool:
        return isinstance(node, _INSIDE) or _is_key(node, keys)

    found = part.walk(prune=ends)
    return [n for n in found if isinstance(n, exp.Query) or not ends(n)]


def _is_key(node: exp.Expr, keys: Sequence[exp.Expr]) -> bool:
    if isinstance(node, exp.Column):
        same = (each for each in keys if isinstance(each, exp.Column) and each.name == node.name)
        return any(not (each.table and node.table) or each.table == node.table for each in same)
    return node in keys


def _split_totals(select: exp.Select, sets: Sequence[Keys]) -> None:
    keys = list(chain.from_iterable(sets))
    rest: exp.Query = select.copy()
    rest.set("order", None)
    total = rest.copy()
    tuples = [exp.Tuple(expressions=[e.copy() for e in each]) for each in sets if each]
    rest.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=tuples)]))
    total.set("group", None)
    total.set("expressions", [_over_all(each, keys) for each in total.expressions])
    having = total.args.get("having")
    counted = exp.GTE(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    asked = [counted] if having is None else [counted, exp.paren(_over_all(having.this, keys))]
    total.set("having", exp.Having(this=exp.and_(*asked)))
    totals = [total.copy() for each in sets if not each]
    rows, *others = [rest, *totals] if any(sets) else totals
    for other in others:
        rows = exp.Union(this=rows, expression=other, distinct=False)
    for clause in list(select.args):
        select.set(clause, None)
    select.set("expressions", [exp.Star()])
    alias = exp.TableAlias(this=exp.to_identifier("st_totals"))
    select.set("from_", exp.From(this=exp.Subquery(this=rows, alias=alias)))


def _over_all(part: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Expr:
    """An output or a condition of the groups, for the group of all rows."""
    if isinstance(part, exp.Alias):
        return exp.alias_(_over_all(part.this, keys), part.args["alias"].copy())

    def settle(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Grouping):
            return exp.Literal.number(2 ** len(node.expressions) - 1)
        return exp.null() if _is_key(node, keys) else node

    if isinstance(part, _INSIDE) or _is_key(part, keys):
        made = settle(part)
        return exp.alias_(made, part.name) if isinstance(part, exp.Column) else made
    made = part.copy()
    for node in list(made.walk(prune=lambda n: isinstance(n, _INSIDE) or _is_key(n, keys))):
        if isinstance(node, exp.Grouping) or _is_key(node, keys):
            node.replace(settle(node))
    return made
