"""Postgres: constructs run there (15) and on Spark (4.2) with the same result on the same rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dagster_streamtables.compiler.dialect import (
    arrays,
    datetimes,
    postgres_aggregates,
    postgres_arrays,
    postgres_clauses,
    postgres_formats,
    postgres_intervals,
    postgres_json,
    postgres_numbers,
    postgres_series,
    postgres_strings,
    postgres_times,
)
from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.made import made, string
from dagster_streamtables.compiler.dialect.query import Query, call, literal_int, literal_text
from dagster_streamtables.compiler.dialect.rules import COMMON, Reason

_PLAIN = (
    exp.Array, exp.ArrayRemove, exp.ArrayToString, exp.Ascii,
    exp.Atan2, exp.BitLength, exp.BitwiseAnd, exp.BitwiseLeftShift, exp.BitwiseNot, exp.BitwiseOr,
    exp.BitwiseRightShift, exp.BitwiseXor, exp.ByteString, exp.Ceil, exp.Corr,
    exp.CovarPop, exp.CovarSamp, exp.Degrees, exp.Escape, exp.Floor, exp.Greatest,
    exp.Least, exp.Length, exp.LogicalAnd, exp.LogicalOr, exp.MD5,
    exp.Overlay, exp.Pad, exp.Pi, exp.Radians, exp.RawString, exp.Repeat, exp.Reverse,
    exp.Sign, exp.Sin, exp.Cos, exp.Tan, exp.SplitPart, exp.StartsWith, exp.Stddev, exp.StddevPop,
    exp.StddevSamp, exp.StrPosition, exp.Translate, exp.Trim, exp.Variance,
    exp.VariancePop, exp.WidthBucket, exp.FirstValue, exp.LastValue, exp.NthValue, exp.GroupConcat,
    exp.RegrAvgx, exp.RegrAvgy, exp.RegrCount, exp.RegrIntercept, exp.RegrR2,
    exp.RegrSlope, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy, exp.AnyValue, exp.BitwiseAndAgg,
    exp.BitwiseOrAgg, exp.BitwiseXorAgg, exp.Mode,
)  # fmt: skip
_CALLS = "cardinality make_date octet_length"
_ANEW_CALLS = frozenset(
    ["clock_timestamp", "nextval", "random_normal", "timeofday", "txid_current", "uuidv4", "uuidv7"]
)
_T = exp.DataType.Type
_TEXTS = (_T.TEXT, _T.VARCHAR)
_JSON = (_T.JSON, _T.JSONB)
_ORDERED = exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Like | exp.ILike
_MOMENTS = (_T.TIMESTAMP, _T.TIMESTAMPTZ)


def _length(node: exp.Expr, query: Query) -> exp.Expr:
    if literal_int(node.expression) not in (None, 1):
        raise query.refusal(node, "Spark's arrays have one dimension", "use dimension 1")
    return exp.Nullif(this=call("CARDINALITY", node.this.copy()), expression=exp.Literal.number(0))


def _place(node: exp.Expr, query: Query) -> exp.Expr:
    found = call("ARRAY_POSITION", node.this.copy(), node.expression.copy())
    return exp.Nullif(this=found, expression=exp.Literal.number(0))


def _listed(node: exp.Expr, query: Query) -> exp.Expr | None:
    separator = node.args.get("separator")
    if separator is None or not separator.is_string:
        raise query.refusal(node, "Spark needs a constant separator", "write a constant")
    value = node.this.this if isinstance(node.this, exp.Order) else node.this
    value = value.expressions[0] if isinstance(value, exp.Distinct) else value
    query.require(node, value, (Kind.STRING,), "Spark may write it differently", "cast it to TEXT")
    return None


_ANEW = "it gives another value each time, and a table would never be equal to its query"
_STORED = "store the value in a source, and select that column"
_NEW_EACH_TIME = Reason(_ANEW, _STORED)


def _all_of_array(node: exp.Expr, query: Query) -> None:
    """``ALL (array)`` is rewritten by the comparison around it."""
    around = node.parent
    if node.name.lower() in _ANEW_CALLS:
        raise query.refusal(node, _ANEW, _STORED)
    compares = isinstance(around, exp.NEQ | _ORDERED)
    if node.name.upper() != "ALL" or not compares:
        raise query.unlisted(node)


def _any_or_all(node: exp.Expr, query: Query) -> None:
    if not isinstance(node.parent, exp.EQ | _ORDERED):
        arrays.any_or_all(node, query)


def _compared(node: exp.Expr, query: Query) -> exp.Expr | None:
    rows = postgres_clauses.compared_rows(node, query)
    return rows or postgres_arrays.ordered_quantifier(node, query)


def _cast(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A cast: of a text to an interval, and of an instant to a text, with the zone's offset."""
    target, value = node.args["to"], node.this
    if target.is_type(exp.DataType.Type.INTERVAL):
        if literal_text(value) is None:
            raise query.refusal(node, "Spark's intervals are constants",
                                "multiply INTERVAL '1 day' by the number")  # fmt: skip
        return postgres_intervals.interval(node, query)
    if target.this in _JSON:
        return postgres_json.cast(node, query)
    if target.this in _MOMENTS:
        node.set("this", postgres_times.moment_literal(value))
    if query.kind(value) is Kind.INSTANT and target.this in _TEXTS:
        template = "CONCAT(CAST(_x AS STRING), REGEXP_REPLACE(DATE_FORMAT(_x, 'xxxxx'), _p, ''))"
        return made(template, x=value, p=string(":00$"))
    return postgres_numbers.cast(node, query)


def _interval_type(node: exp.Expr, query: Query) -> None:
    if node.args["this"] is _T.INTERVAL and isinstance(node.parent, exp.Cast):
        return
    if node.args["this"] in _JSON and isinstance(node.parent, exp.Cast):
        return
    COMMON.mended[exp.DataType](node, query)


POSTGRES = replace(
    COMMON.extended(
    _PLAIN,
    {
        exp.StrToDate: datetimes.formatted("TO_DATE"), exp.NEQ: arrays.quantified(of_columns=True),
        exp.Unnest: arrays.rows_of, exp.Lateral: arrays.lateral_rows,
        exp.Explode: arrays.exploded, exp.ArraySize: _length, exp.ArrayPosition: _place,
        exp.GroupConcat: _listed,
        **postgres_numbers.RULES, **postgres_strings.RULES, **postgres_times.RULES,
        **postgres_arrays.RULES, **postgres_json.RULES, **postgres_aggregates.RULES,
        **postgres_series.RULES, **postgres_clauses.RULES,
        exp.Cast: _cast, exp.Any: _any_or_all, exp.All: _any_or_all, exp.Anonymous: _all_of_array,
        exp.Kwarg: lambda node, query: None, exp.DataType: _interval_type,
        **dict.fromkeys((exp.LT, exp.LTE, exp.GT, exp.GTE), _compared),
    },
    dict.fromkeys((exp.Rand, exp.Uuid), _NEW_EACH_TIME),
    _CALLS,
    {
        **postgres_numbers.CALLS, **postgres_strings.CALLS, **postgres_times.CALLS,
        **postgres_formats.CALLS, **postgres_arrays.CALLS, **postgres_json.CALLS,
        **postgres_aggregates.CALLS, **postgres_series.CALLS,
    },
),
    prepare=postgres_clauses.named,
)  # fmt: skip
