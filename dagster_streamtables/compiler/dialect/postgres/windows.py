"""Windows of Postgres: those that add to a named one, ``OVER (w ROWS 1 PRECEDING)``, and frames of
hours."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.rules import instants
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON
from dagster_streamtables.compiler.dialect.rules.query import Query

_OWN = ("partition_by", "order", "spec")


def inherit(tree: exp.Query) -> None:
    """Write each window whole that adds to another. A name alone stays: Spark has it, too.

    >>> import sqlglot
    >>> text = "SELECT SUM(x) OVER (w ROWS 1 PRECEDING) FROM t WINDOW w AS (ORDER BY y)"
    >>> tree = sqlglot.parse_one(text, dialect="postgres")
    >>> inherit(tree)
    >>> tree.selects[0].sql("postgres")
    'SUM(x) OVER (ORDER BY y ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)'
    """
    for select in tree.find_all(exp.Select):
        named: dict[str, exp.Expr] = {}
        for each in select.args.get("windows") or []:
            _complete(each, named)  # also WINDOW v AS (w), to which others may add
            named[each.name.lower()] = each
        for each in select.find_all(exp.Window):
            adds = any(each.args.get(part) for part in _OWN)
            if adds and each.find_ancestor(exp.Select) is select:
                _complete(each, named)


def _complete(window: exp.Expr, named: dict[str, exp.Expr]) -> None:
    base = named.get(window.alias.lower())
    if base is None:
        return
    for part in ("partition_by", "order"):
        found = base.args.get(part)
        if found and not window.args.get(part):
            copies = [each.copy() for each in found] if isinstance(found, list) else found.copy()
            window.set(part, copies)
    window.set("alias", None)


def frame(node: exp.Expr, query: Query) -> exp.Expr | None:
    """The frame of a window; over instants not of 24 hours or more, which Spark takes for days."""
    order = node.parent.args.get("order") if node.parent is not None else None
    kinds = {query.kind(term.this) for term in order.expressions} if order is not None else set()
    for end in (node.args.get("start"), node.args.get("end")):
        if Kind.INSTANT in kinds and isinstance(end, exp.Expr) and instants.is_long(end):
            raise query.refusal(end, instants.DAYS, "count days, or hours below 24")
    return COMMON.mended[exp.WindowSpec](node, query)
