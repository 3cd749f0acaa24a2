"""How many digits the numbers of an expression may have, before and after the point.

Postgres computes with ``numeric`` of any size; Spark's decimals have 38 digits, and the type of a
result depends on the types of the operands.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.kinds.kind_inference import Kinds, results, spark_kind
from dagster_streamtables.compiler.dialect.kinds.origins import Element, Origin

MOST = 38
"""The digits of Spark's widest decimal."""
_FEWEST, _FRACTION = 20, 24
_T = exp.DataType.Type
_SAME = (exp.Min, exp.Max, exp.AnyValue, exp.Abs, exp.Neg, exp.Paren, exp.Alias, exp.Window,
         exp.Filter, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Distinct,
         exp.Ordered)  # fmt: skip


class Digits(NamedTuple):
    whole: int
    """The most digits before the point."""
    scale: int
    """The most digits after it."""
    varying: bool = False
    """Whether fewer than `scale` are shown in Postgres, depending on the value."""

    @property
    def fits(self) -> bool:
        return self.whole + self.scale <= MOST

    def over(self, divisor: Digits) -> Digits:
        """The digits of a quotient. Of Spark's 38, at most 24 are after the point, so that sums
        have room, and at least 20, with which Postgres writes a fraction from 0.0001 to 1; a
        quotient of more than 18 digits before it overflows, and is an error."""
        whole = self.whole + divisor.scale
        scale = max(_FEWEST, min(MOST - whole, _FRACTION), self.scale, divisor.scale)
        return Digits(whole, scale, varying=True)


_OF_KIND = {Kind.INT: Digits(10, 0), Kind.BIGINT: Digits(19, 0)}
UNDECLARED = Digits(20, 18, varying=True)
"""The digits of a NUMERIC without any, that a text or a float is cast to."""


def digits_of(node: exp.Expr, kinds: Kinds) -> Digits | None:
    """The digits of a number, by the rules of Postgres; None if they are not known.

    Args:
        node: As parsed, not yet rewritten.
        kinds: Of the query.
    """
    if id(node) not in kinds.sizes:
        kinds.sizes[id(node)] = None
        kinds.sizes[id(node)] = _digits_of(node, kinds)
    return kinds.sizes[id(node)]


def _digits_of(node: exp.Expr, kinds: Kinds) -> Digits | None:
    if isinstance(node, exp.Column):
        return _of_column(node, kinds)
    if isinstance(node, exp.Literal):
        return _of_literal(node)
    if isinstance(node, exp.Cast):
        return _of_cast(node, kinds)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod | exp.Div):
        return _of_operation(node, kinds)
    if isinstance(node, _SAME) and isinstance(node.this, exp.Expr):
        return digits_of(node.this, kinds)
    if isinstance(node, exp.Sum | exp.Avg):
        return _of_mean(node, kinds)
    if isinstance(node, exp.Sign):
        return Digits(1, 0) if kinds[node] is Kind.DECIMAL else None
    if isinstance(node, exp.Round | exp.Trunc | exp.Ceil | exp.Floor):
        return _of_rounding(node, kinds)
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least | exp.If | exp.Case | exp.Nullif):
        found = [digits_of(e, kinds) for e in results(node) if not isinstance(e, exp.Null)]
        return _common_digits(found)
    if isinstance(node, exp.Subquery) and len(node.selects) == 1:
        return digits_of(node.selects[0], kinds)
    if isinstance(node, exp.Extract) and kinds[node] is Kind.DECIMAL:
        return _of_part(node, kinds)
    return _OF_KIND.get(kinds[node])


def _of_part(node: exp.Extract, kinds: Kinds) -> Digits:
    """The digits of a part of a time; of a date, each part is whole."""
    part = str(node.this.name).upper().rstrip("S")
    if kinds[node.expression] is Kind.DATE:
        return Digits(12, 0)
    return {"EPOCH": Digits(14, 6), "SECOND": Digits(2, 6), "MILLISECOND": Digits(5, 3)}.get(
        part, Digits(8, 0)
    )


def of_type(type_: exp.DataType) -> Digits | None:
    """The digits of a type that has them."""
    if not type_.is_type(_T.DECIMAL) or not type_.expressions:
        return None
    sizes = [int(each.this.name) for each in type_.expressions]
    scale = sizes[1] if len(sizes) > 1 else 0
    return Digits(sizes[0] - scale, scale)


def _of_column(column: exp.Column, kinds: Kinds) -> Digits | None:
    return _common_digits([_of_origin(each, kinds) for each in kinds.origins.of(column)])


def _of_origin(origin: Origin, kinds: Kinds) -> Digits | None:
    if isinstance(origin, str):
        return _of_spark_type(origin)
    if isinstance(origin, Element):
        return _OF_KIND.get(kinds.element(origin.array))
    return digits_of(origin, kinds) if isinstance(origin, exp.Expr) else None


def _of_spark_type(type_: str) -> Digits | None:
    whole = _OF_KIND.get(spark_kind(type_))
    if whole:
        return whole
    try:
        return of_type(exp.DataType.build(type_, dialect="spark"))
    except SqlglotError:
        return None


def _of_literal(node: exp.Expr) -> Digits | None:
    if not node.is_string and "e" in node.name.lower():
        return _of_literal(exp.Literal.number(format(Decimal(node.name), "f")))
    whole, _, fraction = node.name.partition(".")
    if node.is_string or not (whole + fraction).isdigit():
        return None
    return Digits(len(whole.lstrip("0")), len(fraction))


def _of_cast(node: exp.Cast, kinds: Kinds) -> Digits | None:
    known = of_type(node.to)
    if known or not node.to.is_type(_T.DECIMAL):
        return known or _OF_KIND.get(kinds[node])
    if kinds[node.this] in (Kind.STRING, Kind.DOUBLE, Kind.FLOAT):
        return UNDECLARED
    return digits_of(node.this, kinds)


def _of_operation(node: exp.Expr, kinds: Kinds) -> Digits | None:
    left, right = (digits_of(node.args[name], kinds) for name in ("this", "expression"))
    whole = _OF_KIND.get(kinds[node])
    if whole or left is None or right is None:
        return whole
    if isinstance(node, exp.Div):
        return left.over(right)
    varying = left.varying or right.varying
    if isinstance(node, exp.Mul):
        return Digits(left.whole + right.whole, left.scale + right.scale, varying)
    scale = max(left.scale, right.scale)
    if isinstance(node, exp.Mod):
        return Digits(min(left.whole, right.whole), scale, varying)
    return Digits(max(left.whole, right.whole) + 1, scale, varying)


def _of_mean(node: exp.Expr, kinds: Kinds) -> Digits | None:
    of = digits_of(node.this, kinds)
    if of is None:
        return None
    if isinstance(node, exp.Avg):
        return of.over(Digits(19, 0))
    if of.scale == 0 and kinds[node.this] in _OF_KIND:
        return Digits(19, 0)
    return Digits(of.whole + 10, of.scale, of.varying)


def _of_rounding(node: exp.Expr, kinds: Kinds) -> Digits | None:
    of = digits_of(node.this, kinds)
    places = node.args.get("decimals")
    if of is None:
        return None
    after = int(places.name) if isinstance(places, exp.Literal) and places.is_int else 0
    return Digits(of.whole + 1, after)


def _common_digits(found: list[Digits | None]) -> Digits | None:
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    varying = any(each.varying for each in known) or len({each.scale for each in known}) > 1
    whole, scale = (max(each[i] for each in known) for i in (0, 1))
    return Digits(whole, scale, varying)
