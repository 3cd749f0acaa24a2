"""Numbers of Postgres: quotients, averages, roundings, and the functions that raise errors."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.digits import Digits
from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.rules import functions, numeric
from dagster_streamtables.compiler.dialect.rules.aggregated import (
    correlation,
    mark_aggregate,
    mark_composite,
)
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.functions import NUMBERS, typed
from dagster_streamtables.compiler.dialect.rules.made import from_template, number
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule, call, literal_int

LAST = "functions and statistics of floats may differ in the last digit or two"
FLOAT = "numeric functions are computed as floats, which have 15 to 17 digits"
_EXACT = (*WHOLE, Kind.DECIMAL)
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_COUNT = Digits(19, 0)
_AS_TEXT = "CASE WHEN _x IS NOT NULL THEN FORMAT_STRING('%.{}e', _x) END"


def divide(node: exp.Expr, query: Query) -> exp.Expr | None:
    """The quotient of whole numbers is whole; that of decimals has sixteen digits or more."""
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
    sizes = [query.digits(node.args[name]) for name in ("this", "expression")]
    left, right = sizes
    if left is None or right is None:
        raise query.refusal(
            node, "the digits of a quotient depend on those of its operands, which are not known",
            "cast both to NUMERIC with digits, for example NUMERIC(20, 6)",
        )  # fmt: skip
    at_least_one = isinstance(node.expression, exp.Literal) and Decimal(node.expression.name) >= 1
    result = left.over(right._replace(scale=0) if at_least_one else right)
    numeric.note_quotient(node, query, left, right, result)
    return numeric.quotient(node.this, node.expression, left, right, result)


def average(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``avg``: the sum divided by the count, as a decimal; of floats, a float."""
    distinct = node.this if isinstance(node.this, exp.Distinct) else None
    value = distinct.expressions[0] if distinct is not None else node.this
    if query.kind(value) is Kind.INTERVAL and isinstance(node.parent, exp.Extract):
        return None  # the EXTRACT around it takes the mean of microseconds
    kind = query.require(
        node, value, (*_EXACT, *_FLOATS), "the digits of an average depend on those of its values",
        "cast it to NUMERIC with digits, or to DOUBLE PRECISION",
    )  # fmt: skip
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
    numeric.note_quotient(node, query, wide, _COUNT, of.over(_COUNT))
    a, b = (
        mark_aggregate(exp.Sum(this=summed)),
        mark_aggregate(exp.Count(this=argument, big_int=True)),
    )
    return mark_composite(numeric.quotient(a, b, wide, _COUNT, of.over(_COUNT)))


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
    """Of a decimal, it is one, too: in Spark a float, and so is what is computed from it."""
    if query.kind(node.this) is not Kind.DECIMAL:
        return None
    return from_template("CAST(SIGN(_x) AS DECIMAL(1, 0))", x=node.this)


def product(node: exp.Expr, query: Query) -> None:
    """Products, sums and differences whose digits exceed Spark's are rounded there."""
    found = query.digits(node)
    if found is not None and query.kind(node) is Kind.DECIMAL:
        numeric.note_overflow(query, found)


def literal(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``1e3`` is a decimal; in Spark it is a float."""
    if isinstance(node, exp.Literal) and not node.is_string and "e" in node.name.lower():
        return exp.Literal.number(format(Decimal(node.name), "f"))
    return None


def statistic(node: exp.Expr, query: Query) -> None:
    """A deviation, a correlation or a regression: sums of floats, in another order."""
    query.note(LAST)


def _correlation(node: exp.Expr, query: Query) -> exp.Expr:
    """NULL where all of one column are equal; Spark divides by zero."""
    query.note(LAST)
    return correlation("NULL")(node, query) or node


def _as_float(node: exp.Expr, query: Query, *values: exp.Expr) -> None:
    for value in values:
        query.require(node, value, NUMBERS, "this needs a number", "cast it to a number")
    if any(query.kind(each) is Kind.DECIMAL for each in values):
        query.note(FLOAT)
    else:
        query.note(LAST)


_POSITIVE = (
    "CASE WHEN _x <= 0 THEN CAST('cannot take logarithm of zero or less' AS DOUBLE) ELSE {} END"
)


def _function(template: str) -> Rule:
    """A function of one number, whose domain the template checks."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        _as_float(node, query, node.this)
        return from_template(template, x=node.this)

    return rule


def _function_in_domain(condition: str, error: str, value: str) -> Rule:
    """Where Postgres raises an error, Spark returns NULL or NaN; a cast of a text raises it."""
    return _function(f"CASE WHEN {condition} THEN CAST('{error}' AS DOUBLE) ELSE {value} END")


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


def _factorial(node: exp.Expr, query: Query) -> exp.Expr:
    """Of up to 20: the next one does not fit into 64 bits, and Spark's is NULL."""
    template = (
        "CASE WHEN _x < 0 OR _x > 20 THEN CAST('factorial out of range' AS BIGINT) "
        "ELSE FACTORIAL(CAST(_x AS INT)) END"
    )
    return from_template(template, x=node.this)


def _scale(node: exp.Expr, query: Query) -> exp.Expr:
    found = query.digits(node.expressions[0])
    if found is None or found.varying:
        raise query.refusal(node, "Spark's decimals have a fixed scale", "write the number")
    return from_template("CASE WHEN _x IS NOT NULL THEN _n END", x=node.expressions[0],
                n=number(found.scale))  # fmt: skip


def _trim_scale(node: exp.Expr, query: Query) -> exp.Expr:
    query.note("numbers keep the trailing zeros of their column's type")
    return exp.paren(node.expressions[0].copy())


def cast(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A cast of a number: Postgres takes 15 digits of a float for a decimal, 6 of a ``real``."""
    target = node.args["to"]
    if isinstance(node.this, exp.IntDiv):  # div(), which sqlglot wraps in a cast
        return node.this.copy()
    kind = query.kind(node.this)
    if target.is_type(exp.DataType.Type.DECIMAL) and target.expressions and kind in _FLOATS:
        digits = 14 if kind is Kind.DOUBLE else 5
        new = node.copy()
        new.set("this", from_template(_AS_TEXT.format(digits), x=node.this))
        return new
    if target.is_type(exp.DataType.Type.DECIMAL) and not target.expressions:
        return _cast_to_plain_numeric(node, kind, query)
    return functions.cast(node, query)


def _cast_to_plain_numeric(node: exp.Expr, kind: Kind, query: Query) -> exp.Expr | None:
    """NUMERIC without digits: those of a whole number, or else 20 before the point and 18 after."""
    if kind in WHOLE:
        return from_template(
            f"CAST(_x AS DECIMAL({10 if kind is Kind.INT else 19}, 0))", x=node.this
        )
    if kind not in (Kind.STRING, *_FLOATS):
        return functions.cast(node, query)
    query.note("NUMERIC without digits is DECIMAL(38, 18)")
    if kind is Kind.STRING:
        return from_template("CAST(_x AS DECIMAL(38, 18))", x=node.this)
    digits = 14 if kind is Kind.DOUBLE else 5
    return from_template(f"CAST({_AS_TEXT.format(digits)} AS DECIMAL(38, 18))", x=node.this)


RULES: Rules = {
    exp.Div: divide, exp.Avg: average, exp.Trunc: cut, exp.Round: functions.round_,
    exp.Ceil: whole_part, exp.Floor: whole_part,
    exp.Mul: product, exp.Sign: _sign, exp.Literal: literal, exp.Log: _logarithm, exp.Pow: _power,
    exp.Sqrt: _function_in_domain(
        "_x < 0", "cannot take square root of a negative number", "SQRT(_x)"),
    exp.Ln: _function(_POSITIVE.format("LN(_x)")),
    exp.Exp: _function_in_domain("_x > 709.782712893384", "value out of range", "EXP(_x)"),
    exp.Cbrt: _function("CBRT(_x)"), exp.Factorial: _factorial,
    exp.IntDiv: lambda node, query: None,
    exp.Acos: _function_in_domain("ABS(_x) > 1", "input is out of range", "ACOS(_x)"),
    exp.Asin: _function_in_domain("ABS(_x) > 1", "input is out of range", "ASIN(_x)"),
    exp.Atan: _function("ATAN(_x)"), exp.Sinh: _function("SINH(_x)"),
    exp.Cosh: _function("COSH(_x)"), exp.Tanh: _function("TANH(_x)"),
    exp.Asinh: _function("ASINH(_x)"), exp.Atanh: _function("ATANH(_x)"),
    exp.Cot: _function("COT(_x)"), exp.Sin: _function("SIN(_x)"), exp.Cos: _function("COS(_x)"),
    exp.Tan: _function("TAN(_x)"), exp.Degrees: _function("DEGREES(_x)"),
    exp.Radians: _function("RADIANS(_x)"), exp.Atan2: statistic,
    **dict.fromkeys(
        (exp.CovarPop, exp.CovarSamp, exp.Stddev, exp.StddevPop, exp.StddevSamp,
         exp.Variance, exp.VariancePop, exp.RegrAvgx, exp.RegrAvgy, exp.RegrIntercept, exp.RegrR2,
         exp.RegrSlope, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy), statistic,
    ),
    exp.Corr: _correlation,
    exp.Acosh: _function_in_domain("_x < 1", "input is out of range", "ACOSH(_x)"),
}  # fmt: skip
CALLS: dict[str, Rule] = {"scale": _scale, "trim_scale": _trim_scale}
