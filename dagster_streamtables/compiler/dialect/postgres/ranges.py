"""Ranges and periods of Postgres in expressions: no column of a Delta table can hold one.

A bound that is NULL is none. A range of whole numbers or dates is one from its lower bound up to,
and without, its upper one, however it was written; so ``(1, 3)`` and ``(2, 4)`` do not overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import DATES, WHOLE, Kind
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    from_template,
    literal_text,
    outer_node,
    refuse_if,
)

_NUMBERS = frozenset({*WHOLE, Kind.DECIMAL})
_KINDS = {
    "int4range": WHOLE, "int8range": WHOLE, "numrange": _NUMBERS,
    "daterange": frozenset({Kind.DATE}), "tsrange": frozenset({Kind.LOCAL}),
    "tstzrange": frozenset({Kind.INSTANT}),
}  # fmt: skip
_DISCRETE = ("int4range", "int8range", "daterange")
_BOUNDS = ("[)", "[]", "(]", "()")
_WRONG = "CAST('a range ends before it begins' AS INT)"


@dataclass(frozen=True)
class _Range:
    lower: exp.Expr
    upper: exp.Expr
    bounds: str

    def above(self, strict: str = ">") -> str:
        return strict if self.bounds[0] == "(" else f"{strict}="

    def below(self) -> str:
        return "<" if self.bounds[1] == ")" else "<="


def _is_range(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _KINDS


def _range(node: exp.Expr, query: Query) -> _Range:
    """The bounds of ``int4range(a, b)`` and its like."""
    name = node.name.lower()
    lower, upper, *rest = node.expressions
    bounds = literal_text(rest[0]) if rest else "[)"
    if bounds not in _BOUNDS:
        raise query.refusal(node, "what it includes must be known", "write '[)' or '[]'")
    ends: list[exp.Expr] = []
    for each in (lower, upper):
        if not isinstance(each, exp.Null):
            query.require(node, each, _KINDS[name], "this needs another type", "cast it")
        ends.append(each.copy())
    if name in _DISCRETE:
        ends[0] = from_template("_x + 1", x=ends[0]) if bounds[0] == "(" else ends[0]
        ends[1] = from_template("_x + 1", x=ends[1]) if bounds[1] == "]" else ends[1]
        bounds = "[)"
    return _Range(ends[0], ends[1], bounds)


def contains(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``r @> x`` and ``x <@ r``; None if the whole is no range."""
    sides = [node.this, node.expression]
    if isinstance(node, exp.ArrayContainedBy):
        sides.reverse()
    whole, part = sides
    if not _is_range(whole):
        return None
    if _is_range(part):
        raise query.refusal(node, "a range that contains another is not translated",
                            "compare both ends")  # fmt: skip
    found = _range(whole, query)
    query.require(node, part, _KINDS[whole.name.lower()], "the range is of another type", "cast it")
    template = (
        f"CASE WHEN _a > _b THEN {_WRONG} > 0 WHEN _x IS NOT NULL THEN "
        f"(_a IS NULL OR _x {found.above()} _a) AND (_b IS NULL OR _x {found.below()} _b) END"
    )
    return from_template(template, a=found.lower, b=found.upper, x=part)


def overlap(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``r && s``; None if neither side is a range."""
    if not _is_range(node.this) and not _is_range(node.expression):
        return None
    if not (_is_range(node.this) and _is_range(node.expression)):
        raise query.refusal(node, "a range is compared with something else", "compare both ends")
    one, two = _range(node.this, query), _range(node.expression, query)
    some = " AND ".join(
        f"(_{low} IS NULL OR _{high} IS NULL OR _{low} {_meets(of, of)} _{high})"
        for low, high, of in (("a", "b", one), ("c", "d", two))
    )
    meets = " AND ".join(
        f"(_{low} IS NULL OR _{high} IS NULL OR _{low} {_meets(above, below)} _{high})"
        for low, high, above, below in (("a", "d", one, two), ("c", "b", two, one))
    )
    template = f"CASE WHEN _a > _b OR _c > _d THEN {_WRONG} > 0 ELSE {some} AND {meets} END"
    return from_template(template, a=one.lower, b=one.upper, c=two.lower, d=two.upper)


def _meets(above: _Range, below: _Range) -> str:
    return "<=" if above.bounds[0] == "[" and below.bounds[1] == "]" else "<"


def periods(node: exp.Expr, query: Query) -> exp.Expr:
    """``(a, b) OVERLAPS (c, d)``: ends in either order; a period of which one end is NULL is the
    moment that is known, until an unknown one (SQL:1999, 8.12)."""
    ends = [*node.this.expressions, *node.expression.expressions]
    for each in ends:
        query.require(node, each, DATES, "this needs dates or timestamps",
                      "write the end of the period instead of its length")  # fmt: skip
    first, last = (
        "LEAST(_{0}, _{1})",
        "CASE WHEN _{0} <= _{1} THEN _{1} WHEN _{1} < _{0} THEN _{0} END",
    )
    a, b = first.format("a", "b"), last.format("a", "b")
    c, d = first.format("c", "d"), last.format("c", "d")
    later = (
        "CASE WHEN {d} IS NULL THEN NULL WHEN {a} < {d} THEN TRUE "
        "WHEN {b} IS NOT NULL THEN FALSE END"
    )
    template = (
        f"CASE WHEN {a} IS NULL OR {c} IS NULL THEN NULL "
        f"WHEN {a} > {c} THEN {later.format(a=a, b=b, d=d)} "
        f"WHEN {a} < {c} THEN {later.format(a=c, b=d, d=b)} "
        f"WHEN {b} IS NULL OR {d} IS NULL THEN NULL ELSE TRUE END"
    )
    return from_template(template, **dict(zip("abcd", ends, strict=True)))


_OPERATORS = exp.ArrayContainsAll | exp.ArrayContainedBy | exp.ArrayOverlaps
"""Which take a range apart."""
_check_range = refuse_if(
    lambda node, _: not isinstance(outer_node(node), _OPERATORS), "a Delta table has no ranges",
    "compare both ends: a >= lower AND a < upper",
)  # fmt: skip
RULES: Rules = {exp.Overlaps: periods}
CALLS: dict[str, Rule] = dict.fromkeys(_KINDS, _check_range)
