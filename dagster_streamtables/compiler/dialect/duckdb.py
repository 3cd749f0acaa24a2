"""DuckDB: constructs run there (2.0) and on Spark (4.2) with the same result on the same rows."""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import DATES, MOMENTS, WHOLE, Kind
from dagster_streamtables.compiler.dialect.kinds.origins import Columns
from dagster_streamtables.compiler.dialect.rules import (
    aggregation,
    array_rules,
    datetimes,
    function_rules,
    instants,
    orders,
    patterns,
)
from dagster_streamtables.compiler.dialect.rules.aggregation import (
    correlation,
    of_squares,
    spread_over_aggregates,
)
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON, Reason, row
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    call,
    from_template,
    literal_text,
    outer_node,
    refuse_if,
    template_rule,
)
from dagster_streamtables.compiler.dialect.rules.values_columns import name_columns

_T = exp.DataType.Type
_PLAIN = (
    exp.AnyValue, exp.ApproxDistinct, exp.ArgMax, exp.ArgMin, exp.Array, exp.ArrayAppend,
    exp.ArraySize, exp.ArraySort, exp.ArrayToString, exp.Ascii, exp.Atan2, exp.BitLength,
    exp.BitwiseAnd, exp.BitwiseNot, exp.BitwiseOr, exp.BitwiseRightShift, exp.BitwiseXor, exp.Cbrt,
    exp.Ceil, exp.Chr, exp.Contains, exp.CountIf, exp.CovarPop, exp.CovarSamp,
    exp.DateFromParts, exp.Day, exp.DayOfYear, exp.Degrees, exp.Dot, exp.EndsWith, exp.Escape,
    exp.Factorial, exp.FirstValue, exp.Floor, exp.Greatest, exp.Hour, exp.ILike, exp.LastDay,
    exp.LastValue, exp.Least, exp.LogicalAnd, exp.LogicalOr, exp.MD5, exp.Median, exp.Minute,
    exp.Mode, exp.Month, exp.NthValue, exp.Pad, exp.Pi, exp.Pow, exp.PropertyEQ, exp.Quarter,
    exp.Radians,
    exp.RegrR2, exp.Repeat, exp.Reverse, exp.Round, exp.Second, exp.Sign, exp.Sin,
    exp.Cos, exp.Tan, exp.Split, exp.SplitPart, exp.StartsWith, exp.Stddev, exp.StddevPop,
    exp.StddevSamp, exp.StrPosition, exp.Struct, exp.Translate, exp.Trim,
    exp.Variance, exp.VariancePop, exp.WeekOfYear, exp.WithinGroup, exp.Year,
)  # fmt: skip
_PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "DOY", "DOW", "ISODOW")


def _cast(node: exp.Expr, query: Query) -> exp.Expr | None:
    found = function_rules.cast(node, query)
    kind = query.kind(node.this)
    if query.kind(node) is Kind.INSTANT and instants.needs_choice(node.this, kind):
        return instants.later(found or node)
    return found


def _truncate(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``date_trunc``; of an hour that a clock shows twice, it is the second one."""
    found = datetimes.truncation(node, query)
    if query.kind(node.this) is Kind.INSTANT and node.args["unit"].name.upper() == "HOUR":
        return instants.later(found or node)
    return found


def _less(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Of two instants: whole days of the clock, and then hours as they pass; in Spark, clocks."""
    kinds = [query.kind(each) for each in (node.this, node.expression)]
    if Kind.INSTANT not in kinds or not set(kinds) <= set(MOMENTS):
        return datetimes.shift_date(node, query)
    a, b = (instants.as_instant(each, query) for each in (node.this, node.expression))
    ends = {
        "s": from_template("LEAST(_a, _b)", a=a, b=b),
        "e": from_template("GREATEST(_a, _b)", a=a, b=b),
    }
    days = from_template("DATEDIFF(CAST(_e AS DATE), CAST(_s AS DATE))", **ends)
    whole = from_template(
        "_d - CASE WHEN _s + MAKE_DT_INTERVAL(_d) > _e THEN 1 ELSE 0 END", d=days, **ends
    )
    rest = from_template(
        "UNIX_MICROS(_e) - UNIX_MICROS(_s + MAKE_DT_INTERVAL(_w))", w=whole, **ends
    )
    seconds = from_template("CAST(_w * 86400 + _r * 0.000001 AS DECIMAL(18, 6))", w=whole, r=rest)
    template = (
        f"{instants.DIFFERENCE}(0, 0, 0, CASE WHEN _a < _b THEN -_n WHEN _a >= _b THEN _n END)"
    )
    return from_template(template, a=a, b=b, n=seconds)


def _rewrite_in(node: exp.Expr, query: Query) -> exp.Expr | None:
    found = instants.compare_instants(node, query)
    return COMMON.rewrites[exp.In](found or node, query) or found


def _equal(node: exp.Expr, query: Query) -> exp.Expr | None:
    return instants.compare_instants(node, query) or array_rules.quantifier(
        node, query, of_columns=False
    )


def _divide(node: exp.Expr, query: Query) -> exp.Expr:
    """``/`` always divides floats."""
    known = (*WHOLE, Kind.DECIMAL, Kind.DOUBLE)
    for part in (node.this, node.expression):
        query.require(node, part, known, "DuckDB's quotient of floats of 32 bits has fewer digits",
                      "cast it to DOUBLE")  # fmt: skip
    # Precedence is in the tree, so printing adds any parentheses that are needed.
    left = function_rules.typed(node.this.unnest().copy(), _T.DOUBLE)
    return exp.Div(this=left, expression=node.expression.copy())


def _whole_quotient(node: exp.Expr, query: Query) -> None:
    """``//`` keeps the fraction of decimals and floats."""
    for part in (node.this, node.expression):
        query.require(node, part, WHOLE, "DuckDB keeps the fraction then", "use / for such numbers")


def _average(node: exp.Expr, query: Query) -> None:
    known = (*WHOLE, Kind.DOUBLE, Kind.FLOAT)
    query.require(
        node, node.this.unnest(), (*known, Kind.DECIMAL), "AVG needs a number", "cast it to DOUBLE"
    )
    if query.kind(node.this) is Kind.DECIMAL:
        node.set("this", function_rules.typed(node.this.copy(), _T.DOUBLE))


_BOUNDARIES = {
    "DAY": "DATEDIFF(_a, _b)",
    "MONTH": "(YEAR(_a) - YEAR(_b)) * 12 + (MONTH(_a) - MONTH(_b))",
    "YEAR": "YEAR(_a) - YEAR(_b)",
}


def _count_boundaries(node: exp.Expr, query: Query) -> exp.Expr:
    """``date_diff`` counts the unit boundaries between two times; Spark counts whole units."""
    unit, later, earlier = node.args.get("unit"), node.this, node.expression
    for part in (later, earlier):
        query.require(node, part, DATES, "this needs a date", "cast it to DATE")
    template = _BOUNDARIES.get("" if unit is None else unit.name.upper())
    if template is None:
        raise query.refusal(node, "Spark counts whole units, not the boundaries between them",
                            "count days, months or years")  # fmt: skip
    return from_template(template, a=later, b=earlier)


def _logarithm(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``log(x)`` has base 10; in Spark it is the natural logarithm."""
    return None if node.expression else call("LOG10", node.this.copy())


def _length(node: exp.Expr, query: Query) -> exp.Expr | None:
    kind = query.require(node, node.this, (Kind.STRING, Kind.ARRAY),
                         "this needs a string or an array", "cast it to VARCHAR")  # fmt: skip
    return call("CARDINALITY", node.this.copy()) if kind is Kind.ARRAY else None


def _regexp_extract(node: exp.Expr, query: Query) -> exp.Expr:
    pattern = function_rules.java(node, query, posix=False)
    group = node.args.get("group") or exp.Literal.number(0)
    return call("REGEXP_EXTRACT", node.this.copy(), pattern, group.copy())


def _regexp_replace(node: exp.Expr, query: Query) -> exp.Expr:
    """``regexp_replace``, which replaces every match in Spark."""
    if literal_text(node.args.get("modifiers")) != "g":
        raise query.refusal(
            node, "without the flag 'g' it replaces the first match, but Spark replaces all",
            "add 'g' to replace all",
        )  # fmt: skip
    pattern = function_rules.java(node, query, posix=False)
    text = literal_text(node.args.get("replacement"))
    new = None if text is None else patterns.java_replacement(text, whole="0")
    if new is None:
        raise query.refusal(node, "the replacement must be known", "write a constant")
    return call("REGEXP_REPLACE", node.this.copy(), pattern, new)


def _element(node: exp.Expr, query: Query) -> exp.Expr:
    query.require(node, node.this, (Kind.ARRAY,), "this needs a list", "use substring() or a field")
    return array_rules.element(node, query)


def _row(node: exp.Expr, query: Query) -> None:
    """DuckDB's rows are structs, in which NULLs are equal."""
    parent = outer_node(node)
    listed = isinstance(parent, exp.In) and parent.expressions
    if isinstance(parent, exp.EQ | exp.NEQ) or listed:
        raise query.refusal(node, "DuckDB compares NULLs inside a row differently",
                            "compare column by column", called="a row of values")  # fmt: skip
    row(node, query)


def _check_string_agg(node: exp.Expr, query: Query) -> None:
    function_rules.check_string_agg(node, query, "cast it to VARCHAR")


_NAN = "DOUBLE('NaN')"
_ARRAY_NULLS = Reason("with NULLs Spark's result differs", "write it as a view in Spark SQL")


def _select(node: exp.Expr, query: Query) -> exp.Expr | None:
    assert isinstance(node, exp.Select)
    orders.require_clear_orders(node, query)
    return COMMON.rewrites[exp.Select](node, query)


def _prepare(tree: exp.Query, columns: Columns) -> None:
    name_columns(tree, "col", 0)
    orders.normalize_orders(tree, columns)
    aggregation.total_over_no_rows(tree)


DUCKDB = COMMON.extend(
    _PLAIN,
    {
        exp.Div: _divide, exp.IntDiv: _whole_quotient, exp.Avg: _average,
        exp.Cast: _cast, exp.TryCast: function_rules.cast, exp.Add: datetimes.shift_date,
        exp.Sub: _less, exp.Interval: datetimes.check_interval,
        exp.Trunc: refuse_if(lambda node, _: node.args.get("decimals") is not None,
                             "Spark truncates to whole numbers only", "use FLOOR or CEIL"),
        exp.Log: _logarithm, exp.Substring: function_rules.check_substring,
        exp.Left: function_rules.check_end, exp.Right: function_rules.check_end,
        exp.DPipe: function_rules.check_concat,
        exp.Concat: function_rules.concat, exp.ConcatWs: function_rules.concat,
        exp.Like: partial(function_rules.like, escaped=False),
        exp.RegexpLike: partial(function_rules.matches, posix=False),
        exp.RegexpReplace: _regexp_replace,
        exp.RegexpExtract: _regexp_extract,
        exp.Filter: spread_over_aggregates, exp.Window: spread_over_aggregates,
        exp.Corr: partial(correlation, flat=_NAN),
        exp.RegrSlope: partial(
            of_squares, template=f"CASE WHEN _xx = 0 THEN {_NAN} ELSE _xy / _xx END"),
        exp.TimestampTrunc: _truncate, exp.Extract: partial(datetimes.extraction, parts=_PARTS),
        exp.DateTrunc: _truncate, exp.DateDiff: _count_boundaries, exp.In: _rewrite_in,
        exp.DayOfWeek: template_rule(datetimes.DAYS_OF_WEEK["DOW"]),
        exp.DayOfWeekIso: template_rule(datetimes.DAYS_OF_WEEK["ISODOW"]),
        exp.Week: template_rule("WEEKOFYEAR(_x)"),
        exp.TimeToStr: partial(datetimes.format_conversion, name="DATE_FORMAT", kinds=DATES),
        exp.StrToTime: partial(datetimes.format_conversion, name="TO_TIMESTAMP_NTZ"),
        exp.PercentileCont: partial(function_rules.ordered_set, name="PERCENTILE_CONT"),
        exp.PercentileDisc: partial(function_rules.ordered_set, name="PERCENTILE_DISC"),
        exp.Bracket: _element, exp.EQ: _equal, exp.NEQ: _equal,
        **dict.fromkeys(
            (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between), instants.compare_instants
        ),
        **dict.fromkeys((exp.Case, exp.Coalesce, exp.Greatest, exp.Least), instants.one_of),
        exp.Any: array_rules.any_or_all,
        exp.Anonymous: array_rules.all_of_array, exp.Unnest: array_rules.rows_of,
        exp.Lateral: array_rules.lateral_rows, exp.Explode: array_rules.require_alone,
        exp.Length: _length, exp.GroupConcat: _check_string_agg,
        exp.ArrayPosition: template_rule("NULLIF(ARRAY_POSITION(_a, _x), 0)", "ax"),
        exp.Tuple: _row, exp.Select: _select,
    },
    {
        exp.ArrayAgg: Reason(
            "it keeps NULLs and is NULL for no rows; Spark's does neither",
            "use string_agg(), or write it as a view in Spark SQL",
        ),
        exp.ArrayContains: _ARRAY_NULLS, exp.ArrayConcat: _ARRAY_NULLS,
        exp.ArrayDistinct: _ARRAY_NULLS,
        exp.IsNan: Reason("for NULL it is NULL, but FALSE in Spark", "write x = 'NaN'::DOUBLE"),
    },
    calls=dict.fromkeys(("cardinality", "now")),
    prepare=_prepare,
)  # fmt: skip
