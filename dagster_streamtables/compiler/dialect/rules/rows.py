"""Row values: ``(a, b)``, which Spark compares as structs, in which NULLs are equal."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dagster_streamtables.compiler.dialect.rules.rule import Query


def row(node: exp.Expr, query: Query) -> None:
    """A row value stays if the expression around it handles it; otherwise it is refused."""
    parent = node.parent.parent if isinstance(node.parent, exp.Paren) else node.parent
    inside = (
        exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Values, exp.Distinct,
        exp.Group, exp.GroupingSets, exp.Cube, exp.Rollup, exp.Window,
    )  # fmt: skip
    counted = isinstance(parent, exp.Distinct) and parent.args.get("on") is not node
    if counted or not isinstance(parent, inside):
        raise query.refusal(
            node, "Spark compares NULLs inside a row differently", "compare column by column",
            called="a row of values",
        )  # fmt: skip


def equal_rows(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``(a, b) = (c, d)`` is ``a = c AND b = d``; Spark compares structs, in which NULLs are
    equal."""
    left, right = node.this.unnest(), node.args["expression"].unnest()
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
        pairs = zip(left.expressions, right.expressions, strict=True)
        equal = isinstance(node, exp.EQ | exp.NullSafeEQ)
        joined: Callable[..., exp.Expr] = exp.and_ if equal else exp.or_
        return exp.paren(
            joined(*[type(node)(this=a.copy(), expression=b.copy()) for a, b in pairs])
        )
    if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
        raise query.refusal(node, "Spark compares NULLs inside a row differently", "use IN")
    return None


def in_rows(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Rows IN a list, as equalities of their columns joined by OR."""
    left, among = node.this.unnest(), node.expressions
    if not isinstance(left, exp.Tuple) or not among:
        return None
    equal = [exp.EQ(this=left.copy(), expression=each.copy()) for each in among]
    return exp.paren(exp.or_(*[equal_rows(each, query) or each for each in equal]))
