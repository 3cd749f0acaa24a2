"""Numbers of Postgres: quotients and averages, roundings, and functions of numbers.

A quotient of ``numeric`` is rounded to the digit at which Postgres rounds it. It has at least 16
significant digits, so this place depends on its value: 10 / 3 has 16 digits after the point, 1 / 3
has 20 and 100000 / 3 has 12. Postgres keeps digits in groups of four; with w the group of the first
digit and f its value from 1 to 9999, a quotient has ``16 - 4 * (w₁ - w₂ - (f₁ <= f₂))`` digits
after the point.

Functions that raise errors in Postgres raise one in Spark: a cast of a text that is no number.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.digits import MOST, OF_KIND, Digits, of_type
from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.rules import function_rules
from dagster_streamtables.compiler.dialect.rules.aggregation import (
    correlation,
    mark_aggregate,
    mark_composite,
)
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.function_rules import NUMBERS, typed
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    call,
    from_template,
    literal_int,
    outer_node,
    template_rule,
)

DIGITS = "its last digits are rounded: Postgres keeps more digits than the 38 of Spark's decimals"
LAST = "functions and statistics of floats may differ in the last digit or two"
FLOAT = "numeric functions are computed as floats, which have 15 to 17 digits"
_EXACT = (*WHOLE, Kind.DECIMAL)
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_COUNT = Digits(19, 0)
_AS_TEXT = "CASE WHEN _x IS NOT NULL THEN FORMAT_STRING('%.{}e', _x) END"


def divide(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A quotient of whole numbers is whole; one of decimals has sixteen digits or more."""
    left, right = query.kind(node.this), query.kind(node.expression)
    if left is Kind.INTERVAL:
        raise query.refusal(node, "Spark divides intervals to other digits",
                            "multiply it, as in interval '1 day' * 0.5")  # fmt: skip
    if {left, right} <= WHOLE:
        return exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())
    if Kind.DOUBLE in (left, right) and {left, right} <= set(NUMBERS):
        return None
    known = (*WHOLE, Kind.DECIMAL, Kind.DOUBLE)
    unknown = node.this if left not in known or right in known else node.expression
    query.require(
        node, unknown, known,
        "a quotient of whole numbers is whole, and one of decimals has other digits in Spark",
        "write CAST(a AS DOUBLE PRECISION) / b for a fraction, DIV(a, b) for a whole number",
    )  # fmt: skip
    return _quotient(node, query)


def _quotient(node: exp.Expr, query: Query) -> exp.Expr:
    left, right = query.digits(node.this), query.digits(node.expression)
    if left is None or right is None:
        raise query.refusal(
            node, "the digits of a quotient depend on those of its operands, which are not known",
            "cast both to NUMERIC with digits, for example NUMERIC(20, 6)",
        )  # fmt: skip
    at_least_one = isinstance(node.expression, exp.Literal) and Decimal(node.expression.name) >= 1
    result = left.over(right._replace(scale=0) if at_least_one else right)
    _note_quotient(node, query, left, right, result)
    return quotient(node.this, node.expression, left, right, result)


def average(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``avg``: the sum divided by the count, as a decimal; of floats, a float."""
    distinct = node.this if isinstance(node.this, exp.Distinct) else None
    value = distinct.expressions[0] if distinct is not None else node.this
    if query.kind(value) is Kind.INTERVAL and isinstance(node.parent, exp.Extract):
        return None  # the EXTRACT around it takes the mean of microseconds
    kind = query.require(node, value, (*_EXACT, *_FLOATS),
                         "the digits of an average depend on those of its values",
                         "cast it to NUMERIC with digits, or to DOUBLE PRECISION")  # fmt: skip
    if kind in _FLOATS:
        return None
    of = query.digits(value)
    if of is None:
        raise query.refusal(
            node, "the digits of an average depend on those of its values, which are not known",
            "cast the values to NUMERIC with digits, for example NUMERIC(20, 6)",
        )  # fmt: skip
    return _mean(node, value, kind, of, query)


def _mean(node: exp.Expr, value: exp.Expr, kind: Kind, of: Digits, query: Query) -> exp.Expr:
    argument = node.this.copy()
    summed = argument.copy()
    if kind is Kind.BIGINT:  # a sum of them may not fit into another
        wide = from_template("CAST(_x AS DECIMAL(19, 0))", x=value)
        summed = exp.Distinct(expressions=[wide]) if isinstance(argument, exp.Distinct) else wide
    wide = Digits(19, 0) if kind is Kind.INT else Digits(of.whole + 10, of.scale)
    _note_quotient(node, query, wide, _COUNT, of.over(_COUNT))
    total = mark_aggregate(exp.Sum(this=summed))
    count = mark_aggregate(exp.Count(this=argument, big_int=True))
    return mark_composite(quotient(total, count, wide, _COUNT, of.over(_COUNT)))


def quotient(a: exp.Expr, b: exp.Expr, left: Digits, right: Digits, result: Digits) -> exp.Expr:
    """``a / b`` as Postgres rounds it, with the digits of `result`. Spark fails if b is 0, as
    Postgres does, and if the quotient has more than 38 digits."""
    values = {weight: _value(weight, left, right, result) for weight in _weights(left, right)}
    smallest = values[min(values)]
    large = {weight: value for weight, value in values.items() if value != smallest}
    branches = " ".join(f"WHEN {weight} THEN {value}" for weight, value in large.items())
    group = f"FLOOR(({_group('st_n', left)} - {_divisor_group(b, right)} - 1) / 10000)"
    chosen = f"CASE {group} {branches} ELSE {smallest} END" if large else smallest
    a, b = typed(a.copy(), _type(left.scale)), typed(b.copy(), _type(right.scale))
    if a.find(exp.Query) or b.find(exp.Query):
        # Spark takes no subquery in a function with a lambda, and computes equal ones once.
        return from_template(re.sub(r"\bst_([nd])\b", r"_st_\1", chosen), st_n=a, st_d=b)
    template = f"ELEMENT_AT(ZIP_WITH(ARRAY(_a), ARRAY(_b), (st_n, st_d) -> {chosen}), 1)"
    return from_template(template, a=a, b=b)


def _note_quotient(
    node: exp.Expr, query: Query, left: Digits, right: Digits, result: Digits
) -> None:
    """Note a quotient whose smallest values have more digits in Postgres, unless they are rounded
    away."""
    least = min(_weights(left, right))
    more = left.varying or right.varying or 16 - 4 * least > result.scale
    if more and not _has_few_places(node):
        query.note(DIGITS)


def _has_few_places(node: exp.Expr) -> bool:
    """Whether nothing is left of the digits after the twelfth place."""
    around = outer_node(node, exp.Window, exp.Filter, exp.Neg)
    if isinstance(around, exp.Round):
        places = literal_int(around.args.get("decimals"))
        return around.args.get("decimals") is None or (places is not None and places <= 12)
    found = of_type(around.to) if isinstance(around, exp.Cast) else None
    return found is not None and found.scale <= 12


def _value(weight: int, left: Digits, right: Digits, result: Digits) -> str:
    known = [each.scale for each in (left, right) if not each.varying]
    places = min(max([16 - 4 * weight, 0, *known]), result.scale)
    kept = places if places >= 6 else 16
    width = MOST - kept + left.scale - right.scale
    type_ = _type(result.scale)
    if not max(left.scale, 1) <= width <= MOST:
        return f"CAST(ROUND(st_n / st_d, {places}) AS {type_})"
    whole = MOST if left.varying else min(left.whole + left.scale, MOST)
    if whole <= width:
        return f"CAST({_quotient_template('CAST', width, places, left)} AS {type_})"
    exact = f"CAST({_quotient_template('TRY_CAST', width, places, left)} AS {type_})"
    # 12345678901234.5 / 98765432109876.5 would have 20 digits after the point, and has 18.
    return f"COALESCE({exact}, CAST({_quotient_template('CAST', whole, places, left)} AS {type_}))"


def _quotient_template(cast: str, width: int, places: int, left: Digits) -> str:
    """The quotient, rounded once at `places`: the type of the dividend decides."""
    exact = f"{cast}(st_n AS DECIMAL({width}, {left.scale})) / st_d"
    return exact if places >= 6 else f"ROUND({exact}, {places})"


def _weights(left: Digits, right: Digits) -> list[int]:
    """The weights that a quotient may have, the largest first."""
    most = _groups(left.whole) - 1 + _groups(right.scale)
    least = -_groups(left.scale) - _groups(right.whole)
    return list(range(most, least - 1, -1))


def _groups(digits: int) -> int:
    return -(-digits // 4)


def _group(name: str, digits: Digits) -> str:
    """10000 * w + f, from the digits of a number that is made whole."""
    below = _groups(digits.scale)
    if below <= 2:
        return _group_at_scale(name, below)
    # A large number times a power of ten would have more than 38 digits.
    large = f"WHEN ABS({name}) >= 1 THEN {_group_at_scale(f'FLOOR(ABS({name}))', 0)}"
    return f"CASE {large} ELSE {_group_at_scale(name, below)} END"


def _group_at_scale(name: str, below: int) -> str:
    whole = f"ABS({name})" if not below else f"ABS({name}) * 1{'0' * 4 * below}"
    text = f"CAST(CAST({whole} AS DECIMAL({MOST}, 0)) AS STRING)"
    first = f"CAST(LEFT({text}, (LENGTH({text}) - 1) % 4 + 1) AS INT)"
    return f"(((LENGTH({text}) - 1) DIV 4 - {below}) * 10000 + {first})"


def _divisor_group(b: exp.Expr, digits: Digits) -> str:
    value = literal_int(b)
    if value is None or value == 0:
        return _group("st_d", digits)
    text = str(abs(value))
    first = (len(text) - 1) % 4 + 1
    return str((len(text) - 1) // 4 * 10000 + int(text[:first]))


def _type(scale: int) -> str:
    return f"DECIMAL({MOST}, {scale})"


def cut(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``trunc(x, n)``: less what remains below the last place."""
    places = node.args.get("decimals")
    kind = query.require(node, node.this, NUMBERS, "this needs a number", "cast it to a number")
    if places is None:
        return whole_part(node, query)
    exponent = literal_int(places)
    if exponent is None or kind in _FLOATS:
        raise query.refusal(
            node, "Spark truncates to whole numbers only", "write a constant number of places"
        )
    last = exp.Literal.number(format(Decimal(1).scaleb(-exponent), "f"))
    return from_template("_x - _x % _last", x=node.this, last=last)


def whole_part(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``ceil``, ``floor`` and ``trunc`` of a float are floats; Spark's are of 64 bits."""
    if query.kind(node.this) not in _FLOATS:
        return None
    # From 2^53 on, each float is whole; NaN is above them.
    template = (
        "CASE WHEN ABS(_x) < 9007199254740992 THEN CAST(_w AS DOUBLE) ELSE CAST(_x AS DOUBLE) END"
    )
    whole = typed(node.this.copy(), "BIGINT") if isinstance(node, exp.Trunc) else node.copy()
    return from_template(template, x=node.this, w=whole)


def _sign(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Of a decimal it is a decimal; in Spark a float, and so are expressions of it."""
    if query.kind(node.this) is not Kind.DECIMAL:
        return None
    return from_template("CAST(SIGN(_x) AS DECIMAL(1, 0))", x=node.this)


def product(node: exp.Expr, query: Query) -> None:
    """Products, sums and differences whose digits exceed Spark's are rounded there."""
    found = query.digits(node)
    if found is not None and not found.fits and query.kind(node) is Kind.DECIMAL:
        query.note(DIGITS)


def literal(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``1e3`` is a decimal; in Spark it is a float."""
    if isinstance(node, exp.Literal) and not node.is_string and "e" in node.name.lower():
        return exp.Literal.number(format(Decimal(node.name), "f"))
    return None


def statistic(node: exp.Expr, query: Query) -> None:
    """A deviation, a correlation or a regression: sums of floats, in another order."""
    query.note(LAST)


def _correlation(node: exp.Expr, query: Query) -> exp.Expr:
    """NULL if all values of one column are equal; Spark divides by zero."""
    query.note(LAST)
    return correlation(node, query, flat="NULL")


def _as_float(node: exp.Expr, query: Query, *values: exp.Expr) -> None:
    for value in values:
        query.require(node, value, NUMBERS, "this needs a number", "cast it to a number")
    query.note(FLOAT if any(query.kind(each) is Kind.DECIMAL for each in values) else LAST)


_POSITIVE = (
    "CASE WHEN _x <= 0 THEN CAST('cannot take logarithm of zero or less' AS DOUBLE) ELSE {} END"
)


def _function(node: exp.Expr, query: Query, *, template: str) -> exp.Expr:
    """A function of one number."""
    _as_float(node, query, node.this)
    return from_template(template, x=node.this)


def _in_domain(condition: str, error: str, value: str) -> str:
    """Outside the domain, Postgres raises an error, and Spark returns NULL or NaN."""
    return f"CASE WHEN {condition} THEN CAST('{error}' AS DOUBLE) ELSE {value} END"


_FUNCTIONS = {
    exp.Sqrt: _in_domain("_x < 0", "cannot take square root of a negative number", "SQRT(_x)"),
    exp.Ln: _POSITIVE.format("LN(_x)"),
    exp.Exp: _in_domain("_x > 709.782712893384", "value out of range", "EXP(_x)"),
    exp.Acos: _in_domain("ABS(_x) > 1", "input is out of range", "ACOS(_x)"),
    exp.Asin: _in_domain("ABS(_x) > 1", "input is out of range", "ASIN(_x)"),
    exp.Acosh: _in_domain("_x < 1", "input is out of range", "ACOSH(_x)"),
    **{each: f"{each.sql_name()}(_x)" for each in (
        exp.Cbrt, exp.Atan, exp.Sinh, exp.Cosh, exp.Tanh, exp.Asinh, exp.Atanh, exp.Cot, exp.Sin,
        exp.Cos, exp.Tan, exp.Degrees, exp.Radians)},
}  # fmt: skip


def _logarithm(node: exp.Expr, query: Query) -> exp.Expr:
    """``log(x)`` has base 10, and ``log(b, x)`` any; in Spark ``log(x)`` is the natural one."""
    if not node.expression:
        _as_float(node, query, node.this)
        return from_template(_POSITIVE.format("LOG10(_x)"), x=node.this)
    query.note(FLOAT)
    _as_float(node, query, node.this, node.expression)
    template = (
        "CASE WHEN _b <= 0 OR _x <= 0 THEN CAST('cannot take logarithm of zero or less' AS DOUBLE)"
        " WHEN _b = 1 THEN CAST('division by zero' AS DOUBLE) ELSE LOG(_b, _x) END"
    )
    return from_template(template, b=node.this, x=node.expression)


def _power(node: exp.Expr, query: Query) -> exp.Expr:
    _as_float(node, query, node.this, node.expression)
    exponent = literal_int(node.expression)
    if exponent is not None and exponent >= 0:
        return call("POWER", node.this.copy(), node.expression.copy())
    template = (
        "CASE WHEN _a = 0 AND _b < 0 OR _a < 0 AND _b <> FLOOR(_b) "
        "THEN CAST('a power that is undefined or complex' AS DOUBLE) ELSE POWER(_a, _b) END"
    )
    return from_template(template, a=node.this, b=node.expression)


_FACTORIAL = (
    "CASE WHEN _x < 0 OR _x > 20 THEN CAST('factorial out of range' AS BIGINT) "
    "ELSE FACTORIAL(CAST(_x AS INT)) END"
)
"""The factorial of 21 does not fit into 64 bits, and Spark's is NULL."""


def _scale(node: exp.Expr, query: Query) -> exp.Expr:
    found = query.digits(node.expressions[0])
    if found is None or found.varying:
        raise query.refusal(node, "Spark's decimals have a fixed scale", "write the number")
    return from_template("CASE WHEN _x IS NOT NULL THEN _n END", x=node.expressions[0],
                n=found.scale)  # fmt: skip


def _trim_scale(node: exp.Expr, query: Query) -> exp.Expr:
    query.note("numbers keep the trailing zeros of their column's type")
    return exp.paren(node.expressions[0].copy())


def cast(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A cast of a number: Postgres takes 15 digits of a float for a decimal, 6 of a ``real``."""
    target = node.args["to"]
    if isinstance(node.this, exp.IntDiv):  # div(), which sqlglot wraps in a cast
        return node.this.copy()
    kind = query.kind(node.this)
    if not target.is_type(exp.DataType.Type.DECIMAL) or (
        target.expressions and kind not in _FLOATS
    ):
        return function_rules.cast(node, query)
    text = _AS_TEXT.format(14 if kind is Kind.DOUBLE else 5) if kind in _FLOATS else "_x"
    if target.expressions:
        node.set("this", from_template(text, x=node.this))
        return None
    # NUMERIC without digits: those of a whole number, or else 20 before the point and 18 after.
    if kind in WHOLE:
        width = OF_KIND[kind].whole
        return from_template(f"CAST(_x AS DECIMAL({width}, 0))", x=node.this)
    if kind not in (Kind.STRING, *_FLOATS):
        return function_rules.cast(node, query)
    query.note("NUMERIC without digits is DECIMAL(38, 18)")
    return from_template(f"CAST({text} AS DECIMAL(38, 18))", x=node.this)


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


def _of_two(node: exp.Expr, query: Query, *, template: str) -> exp.Expr:
    a, b = node.expressions
    kinds = {query.require(node, each, WHOLE, "this needs whole numbers", "cast it to BIGINT")
             for each in (a, b)}  # fmt: skip
    found = from_template(template, a=a, b=b)
    return from_template("CAST(_x AS INT)", x=found) if kinds == {Kind.INT} else found


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


RULES: Rules = {
    exp.Div: divide, exp.Trunc: cut, exp.Round: function_rules.round_,
    exp.Ceil: whole_part, exp.Floor: whole_part,
    exp.Mul: product, exp.Sign: _sign, exp.Literal: literal, exp.Log: _logarithm, exp.Pow: _power,
    **{each: partial(_function, template=text) for each, text in _FUNCTIONS.items()},
    exp.Factorial: template_rule(_FACTORIAL),
    **dict.fromkeys(
        (exp.Atan2, exp.CovarPop, exp.CovarSamp, exp.Stddev, exp.StddevPop, exp.StddevSamp,
         exp.Variance, exp.VariancePop, exp.RegrAvgx, exp.RegrAvgy, exp.RegrIntercept, exp.RegrR2,
         exp.RegrSlope, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy), statistic,
    ),
    exp.Corr: _correlation,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "scale": _scale, "trim_scale": _trim_scale,
    "gcd": partial(_of_two, template=_DIVISOR), "lcm": partial(_of_two, template=_MULTIPLE),
    **dict.fromkeys(_DIGITS, _digits),
}  # fmt: skip
