"""Postgres: constructs run there (15) and on Spark (4.2) with the same result on the same rows."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect import arrays, datetimes, functions
from dagster_streamtables.compiler.dialect.functions import EXACT_AS_DOUBLE, NUMBERS
from dagster_streamtables.compiler.dialect.inferred_types import MOMENTS, WHOLE, Kind
from dagster_streamtables.compiler.dialect.query import Query, call, literal_int
from dagster_streamtables.compiler.dialect.rules import COMMON, Reason

_PLAIN = (
    exp.Array, exp.ArrayAppend, exp.ArrayConcat, exp.ArrayRemove, exp.ArrayToString, exp.Ascii,
    exp.Atan2, exp.BitLength, exp.BitwiseAnd, exp.BitwiseLeftShift, exp.BitwiseNot, exp.BitwiseOr,
    exp.BitwiseRightShift, exp.BitwiseXor, exp.ByteString, exp.Cbrt, exp.Ceil, exp.Chr, exp.Corr,
    exp.CovarPop, exp.CovarSamp, exp.Degrees, exp.Escape, exp.Factorial, exp.Floor, exp.Greatest,
    exp.ILike, exp.Least, exp.Length, exp.Like, exp.LogicalAnd, exp.LogicalOr, exp.MD5,
    exp.Overlay, exp.Pad, exp.Pi, exp.Pow, exp.Radians, exp.RawString, exp.Repeat, exp.Reverse,
    exp.Sign, exp.Sin, exp.Cos, exp.Tan, exp.SplitPart, exp.StartsWith, exp.Stddev, exp.StddevPop,
    exp.StddevSamp, exp.StrPosition, exp.Translate, exp.Trim, exp.UnixToTime, exp.Variance,
    exp.VariancePop, exp.WidthBucket, exp.FirstValue, exp.LastValue, exp.NthValue, exp.GroupConcat,
    exp.WithinGroup, exp.RegrAvgx, exp.RegrAvgy, exp.RegrCount, exp.RegrIntercept, exp.RegrR2,
    exp.RegrSlope, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy, exp.AnyValue, exp.BitwiseAndAgg,
    exp.BitwiseOrAgg, exp.BitwiseXorAgg, exp.Mode,
)  # fmt: skip
_CALLS = "cardinality make_date octet_length"
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_PARTS = (*_UNITS, "DOY", "DOW", "ISODOW")
_JSON = Reason(
    "Postgres keeps JSON as it was written, and Spark reformats it",
    "write it as a view in Spark SQL, by get_json_object",
)


def _divided(node: exp.Expr, query: Query) -> exp.Expr | None:
    """The quotient of whole numbers is whole; that of decimals has sixteen digits or more."""
    left, right = query.kind(node.this), query.kind(node.expression)
    if {left, right} <= WHOLE:
        return exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())
    floats = {Kind.DOUBLE, Kind.MEAN}
    if (left in floats and right in NUMBERS) or (right in floats and left in NUMBERS):
        return None
    known = (*WHOLE, Kind.DOUBLE)
    unknown = node.this if left not in known or right in known else node.expression
    query.require(
        node, unknown, known,
        "a quotient of whole numbers is whole, and one of decimals has other digits in Spark",
        "write CAST(a AS DOUBLE PRECISION) / b for a fraction, DIV(a, b) for a whole number",
    )  # fmt: skip
    raise query.refusal(node, "the operands differ in type", "cast both to DOUBLE PRECISION")


def _whole_part(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``div(a, b)``, which sqlglot wraps in a cast to a decimal without precision."""
    if isinstance(node.this, exp.IntDiv):
        return node.this.copy()
    return functions.cast(node, query)


def _average(node: exp.Expr, query: Query) -> None:
    """For decimals and long numbers Postgres returns all digits, where a double has 1e17 as the
    average of 100000000000000000.01 and .03. The number of decimals depends on the value, so none
    of Spark's decimal types fits. For integers of 32 bits, a double is precise enough."""
    query.require(
        node, node.this, EXACT_AS_DOUBLE,
        "Postgres returns an average with as many digits as it needs, Spark returns a float",
        "write AVG(CAST(x AS DOUBLE PRECISION)) if a float will do, or SUM() and COUNT() beside "
        "each other",
    )  # fmt: skip


def _logarithm(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``log(x)`` has base 10; in Spark it is the natural logarithm."""
    return None if node.expression else call("LOG10", node.this.copy())


def _cut(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``trunc(x)``; sqlglot casts to BIGINT, which fails for larger numbers."""
    if node.args.get("decimals") is not None:
        raise query.refusal(
            node, "Spark truncates to whole numbers only", "write FLOOR(x * 100) / 100, with a sign"
        )
    query.require(node, node.this, NUMBERS, "this needs a number", "cast it to a number")
    return None


def _length(node: exp.Expr, query: Query) -> exp.Expr:
    if literal_int(node.expression) not in (None, 1):
        raise query.refusal(node, "Spark's arrays have one dimension", "use dimension 1")
    return exp.Nullif(this=call("CARDINALITY", node.this.copy()), expression=exp.Literal.number(0))


def _place(node: exp.Expr, query: Query) -> exp.Expr:
    found = call("ARRAY_POSITION", node.this.copy(), node.expression.copy())
    return exp.Nullif(this=found, expression=exp.Literal.number(0))


def _joined(node: exp.Expr, query: Query) -> exp.Expr | None:
    if Kind.ARRAY in (query.kind(node.this), query.kind(node.expression)):
        raise query.refusal(node, "NULL makes Spark's result NULL", "use array_cat()")
    return functions.joined(node, query)


def _listed(node: exp.Expr, query: Query) -> exp.Expr | None:
    separator = node.args.get("separator")
    if separator is None or not separator.is_string:
        raise query.refusal(node, "Spark needs a constant separator", "write a constant")
    value = node.this.this if isinstance(node.this, exp.Order) else node.this
    value = value.expressions[0] if isinstance(value, exp.Distinct) else value
    query.require(node, value, (Kind.STRING,), "Spark may write it differently", "cast it to TEXT")
    return None


POSTGRES = COMMON.extended(
    _PLAIN,
    {
        exp.Div: _divided, exp.Cast: _whole_part, exp.IntDiv: lambda node, query: None,
        exp.Add: datetimes.moved, exp.Sub: datetimes.moved, exp.Interval: datetimes.interval,
        exp.Round: functions.round_, exp.Trunc: _cut, exp.Log: _logarithm, exp.Avg: _average,
        exp.Substring: functions.substring, exp.Left: functions.first_characters,
        exp.Right: functions.first_characters, exp.DPipe: _joined, exp.Concat: functions.concat,
        exp.ConcatWs: functions.concat, exp.RegexpLike: functions.matches(posix=True),
        exp.RegexpILike: functions.matches(posix=True, ignore_case=True),
        exp.RegexpReplace: functions.replaced(posix=True), exp.SimilarTo: functions.similar,
        exp.TimestampTrunc: datetimes.truncated(_UNITS), exp.Extract: datetimes.extracted(_PARTS),
        exp.TimeToStr: datetimes.formatted("DATE_FORMAT", kinds=(Kind.DATE, *MOMENTS)),
        exp.StrToDate: datetimes.formatted("TO_DATE"),
        exp.StrToTime: datetimes.formatted("TO_TIMESTAMP"),
        exp.PercentileCont: functions.ordered_set("PERCENTILE_CONT"),
        exp.PercentileDisc: functions.ordered_set("PERCENTILE_DISC"),
        exp.Bracket: arrays.element, exp.EQ: arrays.quantified(of_columns=True),
        exp.NEQ: arrays.quantified(of_columns=True), exp.Any: arrays.any_or_all,
        exp.Unnest: arrays.rows_of, exp.Lateral: arrays.lateral_rows,
        exp.Explode: arrays.exploded, exp.ExplodingGenerateSeries: arrays.series,
        exp.ArraySize: _length, exp.Anonymous: arrays.all_of_array,
        exp.ArrayPosition: _place,
        exp.GroupConcat: _listed,
    },
    {
        exp.ArrayAgg: Reason(
            "it keeps NULLs and is NULL for no rows; Spark's does neither",
            "use string_agg(), or write it as a view in Spark SQL",
        ),
        exp.AtTimeZone: Reason(
            "it converts from or to a zone, depending on the type of its operand",
            "write it as a view in Spark SQL, by from_utc_timestamp or to_utc_timestamp",
        ),
        exp.JSONExtract: _JSON, exp.JSONExtractScalar: _JSON,
    },
    _CALLS,
)  # fmt: skip
