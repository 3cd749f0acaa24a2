"""Add parentheses where operators have another precedence in Spark.

In Postgres ``2 | 1 & 0`` is 0 and ``'a' || 1 + 1`` is 'a2': all operators except arithmetic have
the same precedence there and associate to the left. Printed without parentheses, a syntax tree
would be read by the rules of Spark.
"""

from __future__ import annotations

from sqlglot import exp

_BINDS: dict[type[exp.Expr], int] = {
    **dict.fromkeys((exp.Mul, exp.Div, exp.IntDiv, exp.Mod), 6),
    **dict.fromkeys((exp.Add, exp.Sub, exp.DPipe), 5),
    exp.BitwiseAnd: 4,
    exp.BitwiseXor: 3,
    exp.BitwiseOr: 2,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), 1),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), 1),
}


def parenthesize(tree: exp.Expr) -> None:
    """Put operands in parentheses that Spark would otherwise split.

    >>> tree = exp.DPipe(this=exp.column("a"), expression=exp.Add(this="b", expression="c"))
    >>> parenthesize(tree)
    >>> tree.sql()
    'a || (b + c)'
    """
    for node in list(tree.walk()):
        binds = _BINDS.get(type(node))
        if binds is not None:
            for name in ("this", "expression"):
                if _is_taken_apart(node.args[name], binds, right=name == "expression"):
                    node.set(name, exp.paren(node.args[name], copy=False))


def _is_taken_apart(operand: object, binds: int, *, right: bool) -> bool:
    inner = _BINDS.get(type(operand))  # type: ignore[arg-type]
    if inner is not None:
        return inner < binds or (right and inner == binds)
    quantified = isinstance(operand, exp.Any | exp.All)
    return isinstance(operand, exp.Predicate | exp.Connector | exp.Not) and not quantified
