"""`POSTGRES`: constructs with the same result there (18) and on Spark (4.2), on the same rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.constant_texts import type_texts
from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.postgres import (
    aggregates,
    array_casts,
    arrays,
    casts,
    clauses,
    constant_rows,
    containment,
    first_rows,
    formats,
    gathered,
    identifiers,
    interval_outputs,
    intervals,
    numbers,
    ranges,
    regexes,
    series,
    strings,
    times,
    times_of_day,
    whole_numbers,
    whole_rows,
    zoned,
)
from dagster_streamtables.compiler.dialect.postgres.json import (
    built as json_built,
    changes as json_changes,
    compared as json_compared,
    keys as json,
    paths as json_paths,
    rows as json_rows,
    stripped as json_stripped,
)
from dagster_streamtables.compiler.dialect.postgres.unknown import REFUSED, WHYS
from dagster_streamtables.compiler.dialect.rules import (
    arrays as shared_arrays,
    datetimes,
    grand_totals,
    instants,
    orders,
    rows,
)
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON
from dagster_streamtables.compiler.dialect.rules.made import from_template, string
from dagster_streamtables.compiler.dialect.rules.query import (
    Columns,
    Query,
    literal_text,
)

_PLAIN = (
    exp.Ascii,
    exp.BitLength, exp.BitwiseAnd, exp.BitwiseLeftShift, exp.BitwiseNot, exp.BitwiseOr,
    exp.BitwiseRightShift, exp.BitwiseXor, exp.ByteString,
    exp.Escape, exp.Greatest,
    exp.Least, exp.Length, exp.LogicalAnd, exp.LogicalOr, exp.MD5,
    exp.Overlay, exp.Pad, exp.Pi, exp.RawString, exp.Repeat, exp.Reverse,
    exp.SplitPart, exp.StartsWith,
    exp.StrPosition, exp.Translate,
    exp.FirstValue, exp.LastValue, exp.NthValue, exp.GroupConcat,
    exp.RegrCount,
    exp.AnyValue, exp.BitwiseAndAgg,
    exp.BitwiseOrAgg, exp.BitwiseXorAgg, exp.Mode,
)  # fmt: skip
_CALLS = "cardinality make_date octet_length"
_T = exp.DataType.Type
_TEXTS = (_T.TEXT, _T.VARCHAR)
_JSON = (_T.JSON, _T.JSONB)
_ORDERED = exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Like | exp.ILike
_MOMENTS = (_T.TIMESTAMP, _T.TIMESTAMPTZ)


def _check_string_agg(node: exp.Expr, query: Query) -> exp.Expr | None:
    separator = node.args.get("separator")
    if separator is None or not separator.is_string:
        raise query.refusal(node, "Spark needs a constant separator", "write a constant")
    value = node.this.this if isinstance(node.this, exp.Order) else node.this
    value = value.expressions[0] if isinstance(value, exp.Distinct) else value
    query.require(node, value, (Kind.STRING,), "Spark may write it differently", "cast it to TEXT")
    return None


def _unknown(node: exp.Expr, query: Query) -> None:
    """A function that no rule covers; ``ALL (array)`` is rewritten by the comparison around it."""
    known = WHYS.get(node.name.lower())
    if known is not None:
        raise query.refusal(node, known.why, known.fix)
    compares = isinstance(node.parent, exp.NEQ | _ORDERED)
    if node.name.upper() != "ALL" or not compares:
        raise query.no_rule_error(node)


def _rewrite_is(node: exp.Expr, query: Query) -> exp.Expr | None:
    """IS NULL, IS TRUE and their like; IS NORMALIZED and IS JSON are parsed as columns."""
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise query.refusal(node, "Spark has no such test", "leave it out, or use IS NULL")
    return COMMON.mended[exp.Is](node, query)


def _drop_collation(node: exp.Expr, query: Query) -> exp.Expr:
    if node.expression.name.upper() not in ("C", "POSIX", "UCS_BASIC"):
        raise query.refusal(node, "strings are compared by their characters' codes in Spark",
                            'write COLLATE "C", or lower() of both sides')  # fmt: skip
    return node.this.copy()


def _local_now(node: exp.Expr, query: Query) -> exp.Expr:
    return exp.cast(exp.CurrentTimestamp(), "TIMESTAMP_NTZ", dialect="spark")


def _no_bytes(node: exp.Expr, query: Query) -> None:
    if query.kind(node.this) is Kind.BINARY:
        raise query.refusal(node, "Spark trims texts only", "encode() the bytes first")


def _array(node: exp.Expr, query: Query) -> None:
    """ARRAY[…]; `gathered` makes an aggregate of ARRAY(SELECT …) where that has one order."""
    if any(isinstance(each.unnest(), exp.Query) for each in node.expressions):
        raise query.refusal(node, "Spark makes no array of a query's rows",
                            "write (SELECT array_agg(x) FROM …)")  # fmt: skip


def _any_or_all(node: exp.Expr, query: Query) -> None:
    if not isinstance(node.parent, exp.EQ | _ORDERED):
        shared_arrays.any_or_all(node, query)


def _equal(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``=``, ``<>``, and their like in which NULLs are equal."""
    found = times_of_day.compare_times_of_day(node, query) or times.compare_times(node, query)
    if found is not None:
        return found
    if not isinstance(node.expression, exp.Any | exp.All | exp.Anonymous):
        found = json_compared.compare_json(node, query)
        if found is not None:
            return found
    if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
        return rows.equal_rows(node, query)
    return arrays.rewrite_quantifier(node, query)


def _in(node: exp.Expr, query: Query) -> exp.Expr | None:
    found = times_of_day.compare_times_of_day(node, query) or times.compare_times(node, query)
    if found is None and node.expressions:
        found = json_compared.compare_json(node, query)
    return found or clauses.rewrite_in(node, query)


def _less(node: exp.Expr, query: Query) -> exp.Expr | None:
    return json_changes.less(node, query) or times.shift_time(node, query)


def _concat(node: exp.Expr, query: Query) -> exp.Expr | None:
    around = node.parent.parent if isinstance(node.parent, exp.Paren) else node.parent
    if isinstance(around, exp.Cast) and around.to.is_type(_T.INTERVAL):
        return None  # the cast reads a number and a unit
    return json_changes.merge_json(node, query) or arrays.rewrite_concat(node, query)


def _between(node: exp.Expr, query: Query) -> exp.Expr | None:
    if query.kind(node.this) is Kind.JSON:
        raise json_compared.order_error(node, query)
    found = times_of_day.compare_times_of_day(node, query) or times.compare_times(node, query)
    return clauses.between(found or node, query) or found


def _compare(node: exp.Expr, query: Query) -> exp.Expr | None:
    found = times_of_day.compare_times_of_day(node, query)
    if found is not None:
        return found
    json_compared.compare_json(node, query)
    if query.kind(node.this) is Kind.ARRAY:
        raise query.refusal(node, "Spark orders NULLs inside of arrays first",
                            "compare elements")  # fmt: skip
    rows = times.compare_times(node, query) or clauses.compare_rows(node, query)
    return rows or arrays.ordered_quantifier(node, query)


def _cast(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A cast: of a text to an interval, and of an instant to a text, with the zone's offset."""
    target, value = node.args["to"], node.this
    if target.is_type(_T.ARRAY):
        return array_casts.cast_array(node, query, _cast)
    time = times_of_day.cast(node, query)
    if time is not None:
        return time
    if target.is_type(exp.DataType.Type.INTERVAL):
        if isinstance(value.unnest(), exp.DPipe):
            return times.interval_of_count(node, value.unnest(), query)
        if literal_text(value) is None:
            raise query.refusal(node, "Spark's intervals are constants",
                                "multiply INTERVAL '1 day' by the number")  # fmt: skip
        return intervals.interval(node, query)
    if target.this in _JSON:
        return json_compared.cast(node, query)
    if query.kind(value) is Kind.JSON:
        return json_compared.cast_from(node, query)
    if target.this is _T.VARBINARY:
        return casts.bytes_of(node, query)
    if target.this is _T.UUID:
        return casts.uuid(node, query)
    if target.this in _MOMENTS:
        node.set("this", times.moment_literal(value))
    if query.kind(value) is Kind.INSTANT and target.this in _TEXTS:
        template = "CONCAT(CAST(_x AS STRING), REGEXP_REPLACE(DATE_FORMAT(_x, 'xxxxx'), _p, ''))"
        return from_template(template, x=value, p=string(":00$"))
    if target.this in _TEXTS and query.kind(value) is Kind.INTERVAL:
        text = interval_outputs.text_of(value.unnest(), query)
        if text is not None:
            return text
    found = numbers.cast(node, query)
    if query.kind(node) is Kind.INSTANT and instants.needs_choice(node.this, query.kind(value)):
        return instants.later(found or node)
    return found


def _one_of(node: exp.Expr, query: Query) -> None:
    array_casts.beside(node, query)
    instants.one_of(node, query)


def _average(node: exp.Expr, query: Query) -> exp.Expr | None:
    return interval_outputs.total_differences(node, query) or numbers.average(node, query)


def _prepare(tree: exp.Query, columns: Columns) -> None:
    json_rows.declare_records(tree)
    json.name_keys(tree)
    constant_rows.name_columns(tree)
    identifiers.name_outputs(tree)
    clauses.name_functions(tree)
    clauses.complete_windows(tree)
    orders.normalize_orders(tree, columns)
    grand_totals.total_over_no_rows(tree)
    gathered.aggregate_subqueries(tree)
    whole_rows.expand_row_references(tree, columns)
    gathered.keep_order(tree)
    type_texts(tree, columns)
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name.upper() == "ROW":
            node.replace(exp.Tuple(expressions=[each.copy() for each in node.expressions]))


POSTGRES = replace(
    COMMON.extend(
    _PLAIN,
    {
        exp.StrToDate: datetimes.format_conversion("TO_DATE"),
        exp.Explode: shared_arrays.check_explode,
        exp.GroupConcat: _check_string_agg,
        **numbers.RULES, **strings.RULES, **regexes.REGEX_RULES, **times.RULES, **zoned.ZONE_RULES,
        **arrays.RULES, **json.RULES, **aggregates.RULES,
        **series.RULES, **clauses.RULES, **containment.CONTAINMENT_RULES,
        exp.Cast: _cast, exp.Any: _any_or_all, exp.All: _any_or_all, exp.Anonymous: _unknown,
        exp.Is: _rewrite_is, exp.Collate: _drop_collation, exp.Localtimestamp: _local_now,
        exp.Array: _array, exp.ArrayToString: array_casts.check_array_to_string,
        exp.Trim: _no_bytes,
        exp.Ordered: first_rows.rewrite_order_item, exp.WidthBucket: whole_numbers.bucket,
        exp.In: _in,
        exp.Kwarg: lambda node, query: None, exp.DataType: casts.type_,
        **dict.fromkeys((exp.LT, exp.LTE, exp.GT, exp.GTE), _compare),
        **dict.fromkeys((exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ), _equal),
        **dict.fromkeys((exp.Case, exp.Coalesce, exp.Greatest, exp.Least), _one_of),
        exp.WindowSpec: clauses.frame, exp.Max: interval_outputs.extreme,
        exp.Min: interval_outputs.extreme, exp.Sum: interval_outputs.total_differences,
        exp.Avg: _average,
        exp.Sub: _less, exp.DPipe: _concat, exp.Between: _between, **json_changes.RULES,
        **ranges.RULES, **json_paths.RULES,
    },
    REFUSED,
    _CALLS,
    {
        "transaction_timestamp": lambda node, query: exp.CurrentTimestamp(),
        **numbers.CALLS, **whole_numbers.WHOLE_NUMBER_CALLS, **strings.CALLS, **regexes.REGEX_CALLS,
        **times.CALLS, **zoned.ZONE_CALLS,
        **formats.CALLS, **arrays.CALLS, **json.CALLS, **json_built.CALLS, **json_changes.CALLS,
        **ranges.CALLS, **json_paths.CALLS, **json_rows.CALLS, **json_stripped.STRIP_CALLS,
        **identifiers.CALLS,
        **aggregates.CALLS, **series.CALLS,
    },
),
    prepare=_prepare,
    check=times_of_day.require_place,
)  # fmt: skip
