"""How many digits a number may have before and after the point, by the rules of Postgres.

Postgres computes with ``numeric`` of any size; Spark's decimals have 38 digits, and the type of a
result depends on the types of the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind

MOST = 38
"""The digits of Spark's widest decimal."""
_FEWEST, _FRACTION = 20, 24


class Digits(NamedTuple):
    whole: int
    """The most digits before the point."""
    scale: int
    """The most digits after it."""
    varying: bool = False
    """Whether Postgres shows fewer than `scale`, depending on the value."""

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


OF_KIND = {Kind.INT: Digits(10, 0), Kind.BIGINT: Digits(19, 0)}
UNDECLARED = Digits(20, 18, varying=True)
"""The digits of a NUMERIC without any to which a text or a float is cast."""
_OF_PART = {"EPOCH": Digits(14, 6), "SECOND": Digits(2, 6), "MILLISECOND": Digits(5, 3)}


def of_type(type_: exp.DataType) -> Digits | None:
    """The digits of a decimal type that declares them."""
    if not type_.is_type(exp.DataType.Type.DECIMAL) or not type_.expressions:
        return None
    sizes = [int(each.this.name) for each in type_.expressions]
    scale = sizes[1] if len(sizes) > 1 else 0
    return Digits(sizes[0] - scale, scale)


def of_literal(node: exp.Expr) -> Digits | None:
    if not node.is_string and "e" in node.name.lower():
        return of_literal(exp.Literal.number(format(Decimal(node.name), "f")))
    whole, _, fraction = node.name.partition(".")
    if node.is_string or not (whole + fraction).isdigit():
        return None
    return Digits(len(whole.lstrip("0")), len(fraction))


def of_part(node: exp.Extract, kind: Kind) -> Digits:
    """The digits of a part of a time of some kind; of a date, each part is whole."""
    part = str(node.this.name).upper().rstrip("S")
    return Digits(12, 0) if kind is Kind.DATE else _OF_PART.get(part, Digits(8, 0))


def of_operation(node: exp.Expr, left: Digits | None, right: Digits | None) -> Digits | None:
    """The digits of a sum, a difference, a product, a quotient or a remainder of decimals."""
    if left is None or right is None or isinstance(node, exp.IntDiv):
        return None
    if isinstance(node, exp.Div):
        return left.over(right)
    varying = left.varying or right.varying
    if isinstance(node, exp.Mul):
        return Digits(left.whole + right.whole, left.scale + right.scale, varying)
    scale = max(left.scale, right.scale)
    if isinstance(node, exp.Mod):
        return Digits(min(left.whole, right.whole), scale, varying)
    return Digits(max(left.whole, right.whole) + 1, scale, varying)


def of_total(node: exp.Sum | exp.Avg, kind: Kind, of: Digits) -> Digits:
    """The digits of a sum or a mean of values of some kind."""
    if isinstance(node, exp.Avg):
        return of.over(OF_KIND[Kind.BIGINT])
    if of.scale == 0 and kind in OF_KIND:
        return OF_KIND[Kind.BIGINT]
    return Digits(of.whole + 10, of.scale, of.varying)


def of_rounding(node: exp.Expr, of: Digits) -> Digits:
    places = node.args.get("decimals")
    after = int(places.name) if isinstance(places, exp.Literal) and places.is_int else 0
    return Digits(of.whole + 1, after)


def common_digits(found: Sequence[Digits | None]) -> Digits | None:
    """Digits that suffice for each of several values; None if those of one are not known."""
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    varying = any(each.varying for each in known) or len({each.scale for each in known}) > 1
    whole, scale = (max(each[i] for each in known) for i in (0, 1))
    return Digits(whole, scale, varying)
