"""Functions of whole numbers of Postgres that Spark does not have, or has for 64 bits only."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.rules.made import from_template
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule

_STEPS = 93
"""Euclid's algorithm takes the most steps for neighbours in the sequence of Fibonacci, of which 93
have at most 64 bits."""
_DIVISOR = (
    f"REDUCE(SEQUENCE(1, {_STEPS}), NAMED_STRUCT('a', ABS(CAST(_a AS BIGINT)), "
    "'b', ABS(CAST(_b AS BIGINT))), (st_r, st_i) -> CASE WHEN st_r.b = 0 THEN st_r "
    "ELSE NAMED_STRUCT('a', st_r.b, 'b', st_r.a % st_r.b) END, st_r -> st_r.a)"
)
_MULTIPLE = (
    "CASE WHEN _a = 0 OR _b = 0 THEN CASE WHEN _a IS NOT NULL AND _b IS NOT NULL THEN 0 END "
    f"ELSE ABS(CAST(_a AS BIGINT) DIV {_DIVISOR} * CAST(_b AS BIGINT)) END"
)
_DIGITS = {
    "to_hex": "LOWER(HEX(_x))",
    "to_bin": "BIN(_x)",
    "to_oct": "CONV(CAST(_x AS STRING), 10, 8)",
}


def _of_two(template: str) -> Rule:
    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        a, b = node.expressions
        kinds = {query.require(node, each, WHOLE, "this needs whole numbers", "cast it to BIGINT")
                 for each in (a, b)}  # fmt: skip
        found = from_template(template, a=a, b=b)
        return from_template("CAST(_x AS INT)", x=found) if kinds == {Kind.INT} else found

    return rule


def _digits(node: exp.Expr, query: Query) -> exp.Expr:
    """The digits of the two's complement, of as many bits as the number has."""
    value = node.expressions[0]
    kind = query.require(node, value, WHOLE, "this needs a whole number", "cast it to INT")
    bits = from_template("CAST(_x AS BIGINT) & 4294967295", x=value) if kind is Kind.INT else value
    return from_template(_DIGITS[node.name.lower()], x=bits)


def bucket(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``width_bucket(x, array)``: the number of bounds that are not above, of a sorted array."""
    if node.args.get("num_buckets"):
        return None
    below = "CARDINALITY(FILTER(_a, st_e -> st_e <= _x))"
    known = f"CASE WHEN _x IS NOT NULL AND _a IS NOT NULL THEN {below} END"
    return from_template(known, x=node.this, a=node.args["threshold"])


WHOLE_NUMBER_CALLS: dict[str, Rule] = {
    "gcd": _of_two(_DIVISOR), "lcm": _of_two(_MULTIPLE), **dict.fromkeys(_DIGITS, _digits),
}  # fmt: skip
