"""`POSTGRES`: constructs with the same result in PostgreSQL 18 and Spark 4.2, on the same rows.

Functions without an exact translation are refused, each with its reason.
"""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.kinds.origins import Columns
from dagster_streamtables.compiler.dialect.postgres import (
    aggregates,
    arrays,
    casts,
    format_patterns,
    identifiers,
    numbers,
    preparation,
    query_clauses,
    ranges,
    strings,
    table_expressions,
    time_differences,
    times,
    times_of_day,
)
from dagster_streamtables.compiler.dialect.postgres.json import (
    json_builders,
    json_changes,
    json_paths,
    json_rows,
    json_text,
)
from dagster_streamtables.compiler.dialect.rules import (
    aggregation,
    array_rules,
    datetimes,
    function_rules,
    instants,
    orders,
)
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON, Reason, equal_rows
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    from_template,
    literal_text,
    outer_node,
    refuse_if,
)
from dagster_streamtables.compiler.dialect.rules.values_columns import name_columns

_ANEW = Reason(
    "it gives another value each time, and a table would never be equal to its query",
    "store the value in a source, and select that column",
)
_BY_NAMES = {
    "clock_timestamp nextval random random_normal timeofday txid_current uuidv4 uuidv7 "
    "statement_timestamp pg_sleep array_sample array_shuffle currval lastval setseed": _ANEW,
    "erf erfc gamma lgamma sind cosd tand cotd asind acosd atand atan2d min_scale": Reason(
        "Spark has no such function", "compute it where the source is written"),
    "array_fill": Reason("the index of its elements is not kept", "use array[…]"),
    "json_scalar": Reason("the type of its argument decides about its result", "write to_jsonb(x)"),
    "json_serialize": Reason("PostgreSQL shows JSON as a text in this way, too", "write j::text"),
    "row_to_json jsonb_populate_record json_object json_table": Reason(
        "the columns of a row, or the keys of an object, decide about its result",
        "name each key: jsonb_build_object('a', a), or j ->> 'a'"),
    "jsonb_pretty": Reason(
        "its text has the keys in PostgreSQL's order, and Spark keeps another",
        "lay the JSON out where it is shown"),
    "jsonb_path_match jsonb_path_query": Reason(
        "Spark has paths of keys and indexes only",
        "compare jsonb_path_query_first(j, '$.a'), and take rows by jsonb_array_elements()"),
    "json_objectagg jsonb_objectagg": Reason(
        "of equal keys the last one would win, and a group has no order",
        "aggregate jsonb_build_object('key', k, 'value', v) by jsonb_agg()"),
    "parse_ident pg_client_encoding pg_typeof "
    "to_ascii unistr normalize unicode_assigned casefold": Reason(
        "it serves text that is read by PostgreSQL, or depends on its tables of characters",
        "compute it where the source is written"),
    "get_bit set_bit get_byte set_byte bit_count crc32 crc32c": Reason(
        "Spark has no such function for bytes", "compute it where the source is written"),
    "range_agg": Reason(
        "a Delta table has no ranges", "compare both ends: a >= lower AND a < upper"),
    "make_time": Reason("Spark has no such function", "write make_timestamp(…)::time"),
    "to_number": Reason("its format words differ in Spark", "cast to NUMERIC(…)"),
    "row": Reason("Spark compares NULLs inside a row differently", "write (a, b) without ROW"),
    "json_array json_arrayagg": Reason(
        "it omits NULLs, which the other constructors keep", "write json_build_array(…)"),
    "xmlagg": Reason("a Delta table has no XML", "use string_agg()"),
    "array_dims array_ndims": Reason("Spark's arrays have one dimension", "use cardinality()"),
}  # fmt: skip
_REASONS = {name: reason for names, reason in _BY_NAMES.items() for name in names.split()}
"""By the name of the function."""
REFUSED: dict[type[exp.Expr], Reason] = {
    **dict.fromkeys((exp.Rand, exp.Uuid), _ANEW),
    exp.Parameter: Reason("a parameter has no value when a refresh runs", "write abs(x) for @ x"),
    exp.BitString: Reason("a Delta table has no bit strings", "use whole numbers, and & | # ~"),
    **dict.fromkeys(
        (exp.CurrentTime, exp.Localtime, exp.TimeFromParts),
        Reason("a Delta table has no times of day", "use a timestamp"),
    ),
    exp.Normalize: Reason("Spark has no such function", "normalize where the source is written"),
    exp.Getbit: _REASONS["get_bit"], exp.JSONArray: _REASONS["json_array"],
    exp.JSONObjectAgg: _REASONS["json_objectagg"],
    exp.MatchAgainst: Reason("a condition in a path, and the search in texts, are not translated",
                             "compare j ->> 'a', or use LIKE"),
    exp.JSONTable: Reason("Spark cannot make columns of JSON", "name each: j ->> 'a'"),
    exp.JSON: Reason("Spark has no such test", "leave it out, or use IS NULL"),
}  # fmt: skip
"""By the class into which sqlglot parses a call."""
_PLAIN = (
    exp.AnyValue, exp.Ascii, exp.BitLength, exp.BitwiseAnd, exp.BitwiseAndAgg, exp.BitwiseLeftShift,
    exp.BitwiseNot, exp.BitwiseOr, exp.BitwiseOrAgg, exp.BitwiseRightShift, exp.BitwiseXor,
    exp.BitwiseXorAgg, exp.ByteString, exp.Escape, exp.FirstValue, exp.Greatest, exp.GroupConcat,
    exp.IntDiv, exp.JSONPath, exp.JSONPathKey, exp.JSONPathRoot, exp.JSONPathSubscript, exp.Kwarg,
    exp.LastValue, exp.Least, exp.Length, exp.LogicalAnd, exp.LogicalOr, exp.MD5, exp.Mode,
    exp.NthValue, exp.Overlay, exp.Pad, exp.Pi, exp.RawString, exp.RegrCount, exp.Repeat,
    exp.Reverse, exp.Slice, exp.SplitPart, exp.StartsWith, exp.StrPosition, exp.Translate,
)  # fmt: skip
_T = exp.DataType.Type
_TEXTS = (_T.TEXT, _T.VARCHAR)
_JSON = (_T.JSON, _T.JSONB)
_ORDERED = exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Like | exp.ILike
_MOMENTS = (_T.TIMESTAMP, _T.TIMESTAMPTZ)


def _check_string_agg(node: exp.Expr, query: Query) -> None:
    separator = node.args.get("separator")
    if separator is None or not separator.is_string:
        raise query.refusal(node, "Spark needs a constant separator", "write a constant")
    function_rules.check_string_agg(node, query, "cast it to TEXT")


def _unknown(node: exp.Expr, query: Query) -> None:
    """A function that no rule covers; ``ALL (array)`` is rewritten by the comparison around it."""
    known = _REASONS.get(node.name.lower())
    if known is not None:
        raise query.refusal(node, known.why, known.fix)
    compares = isinstance(node.parent, exp.NEQ | _ORDERED)
    if node.name.upper() != "ALL" or not compares:
        raise query.no_rule_error(node)


def _rewrite_is(node: exp.Expr, query: Query) -> exp.Expr | None:
    """IS NULL, IS TRUE and their like; IS NORMALIZED and IS JSON are parsed as columns."""
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise query.refusal(node, "Spark has no such test", "leave it out, or use IS NULL")
    return COMMON.rewrites[exp.Is](node, query)


def _drop_collation(node: exp.Expr, query: Query) -> exp.Expr:
    if node.expression.name.upper() not in ("C", "POSIX", "UCS_BASIC"):
        raise query.refusal(node, "strings are compared by their characters' codes in Spark",
                            'write COLLATE "C", or lower() of both sides')  # fmt: skip
    return node.this.copy()


def _any_or_all(node: exp.Expr, query: Query) -> None:
    if not isinstance(node.parent, exp.EQ | _ORDERED):
        array_rules.any_or_all(node, query)


def _equal(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``=``, ``<>``, and the comparisons in which NULLs are equal."""
    found = times.compare_times(node, query)
    if found is None and not isinstance(node.expression, exp.Any | exp.All | exp.Anonymous):
        found = json_text.compare_json(node, query)
    if found is not None:
        return found
    if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
        return equal_rows(node, query)
    return arrays.rewrite_quantifier(node, query)


def _in(node: exp.Expr, query: Query) -> exp.Expr | None:
    found = times.compare_times(node, query)
    if found is None and node.expressions:
        found = json_text.compare_json(node, query)
    return found or query_clauses.rewrite_in(node, query)


def _less(node: exp.Expr, query: Query) -> exp.Expr | None:
    return json_changes.less(node, query) or times.shift_time(node, query)


def _concat(node: exp.Expr, query: Query) -> exp.Expr | None:
    around = outer_node(node)
    if isinstance(around, exp.Cast) and around.to.is_type(_T.INTERVAL):
        return None  # the cast reads a number and a unit
    return json_changes.merge_json(node, query) or arrays.rewrite_concat(node, query)


def _between(node: exp.Expr, query: Query) -> exp.Expr | None:
    if query.kind(node.this) is Kind.JSON:
        raise json_text.order_error(node, query)
    found = times.compare_times(node, query)
    return query_clauses.between(found or node, query) or found


def _compare(node: exp.Expr, query: Query) -> exp.Expr | None:
    json_text.compare_json(node, query)
    if query.kind(node.this) is Kind.ARRAY:
        raise query.refusal(node, "Spark orders NULLs inside of arrays first", "compare elements")
    return (
        times.compare_times(node, query)
        or query_clauses.compare_rows(node, query)
        or arrays.ordered_quantifier(node, query)
    )


def _cast(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A cast: of a text to an interval, and of an instant to a text, with the zone's offset."""
    target, value = node.args["to"], node.this
    if target.is_type(_T.ARRAY):
        return casts.cast_array(node, query, _cast)
    time = times_of_day.cast(node, query)
    if time is not None:
        return time
    if target.is_type(exp.DataType.Type.INTERVAL):
        if isinstance(value.unnest(), exp.DPipe):
            return times.interval_of_count(node, value.unnest(), query)
        if literal_text(value) is None:
            raise query.refusal(node, "Spark's intervals are constants",
                                "multiply INTERVAL '1 day' by the number")  # fmt: skip
        return times.interval(node, query)
    if target.this in _JSON:
        return json_text.cast(node, query)
    if query.kind(value) is Kind.JSON:
        return json_text.cast_from(node, query)
    if target.this is _T.VARBINARY:
        return casts.TO_BYTES(node, query)
    if target.this is _T.UUID:
        return casts.TO_UUID(node, query)
    if target.this in _MOMENTS:
        node.set("this", times.moment_literal(value))
    if query.kind(value) is Kind.INSTANT and target.this in _TEXTS:
        template = "CONCAT(CAST(_x AS STRING), REGEXP_REPLACE(DATE_FORMAT(_x, 'xxxxx'), _p, ''))"
        return from_template(template, x=value, p=":00$")
    if target.this in _TEXTS and query.kind(value) is Kind.INTERVAL:
        text = time_differences.text_of(value.unnest(), query)
        if text is not None:
            return text
    found = numbers.cast(node, query)
    if query.kind(node) is Kind.INSTANT and instants.needs_choice(node.this, query.kind(value)):
        return instants.later(found or node)
    return found


def _one_of(node: exp.Expr, query: Query) -> None:
    casts.read_empty_arrays(node, query)
    instants.one_of(node, query)


def _average(node: exp.Expr, query: Query) -> exp.Expr | None:
    return time_differences.total_differences(node, query) or numbers.average(node, query)


def _prepare(tree: exp.Query, columns: Columns) -> None:
    json_rows.declare_records(tree)
    json_text.name_keys(tree)
    name_columns(tree, "column", 1)
    identifiers.name_outputs(tree)
    query_clauses.name_functions(tree)
    query_clauses.complete_windows(tree)
    orders.normalize_orders(tree, columns)
    aggregation.total_over_no_rows(tree)
    preparation.aggregate_subqueries(tree)
    preparation.expand_row_references(tree, columns)
    preparation.keep_order(tree)
    preparation.type_texts(tree, columns)
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name.upper() == "ROW":
            node.replace(exp.Tuple(expressions=[each.copy() for each in node.expressions]))


POSTGRES = COMMON.extend(
    _PLAIN,
    {
        exp.StrToDate: partial(datetimes.format_conversion, name="TO_DATE"),
        exp.Explode: array_rules.require_alone,
        exp.GroupConcat: _check_string_agg,
        **numbers.RULES, **strings.RULES, **times.RULES, **arrays.RULES, **json_text.RULES,
        **aggregates.RULES, **table_expressions.RULES, **query_clauses.RULES,
        exp.Cast: _cast, exp.Any: _any_or_all, exp.All: _any_or_all, exp.Anonymous: _unknown,
        exp.Is: _rewrite_is, exp.Collate: _drop_collation,
        exp.Localtimestamp: lambda node, query: exp.cast(
            exp.CurrentTimestamp(), "TIMESTAMP_NTZ", dialect="spark"),
        # `aggregate_subqueries` has rewritten each ARRAY(SELECT …) that has one order.
        exp.Array: refuse_if(
            lambda node, _: any(isinstance(each.unnest(), exp.Query) for each in node.expressions),
            "Spark makes no array of a query's rows", "write (SELECT array_agg(x) FROM …)"),
        exp.ArrayToString: casts.check_array_to_string,
        exp.Trim: refuse_if(lambda node, query: query.kind(node.this) is Kind.BINARY,
                            "Spark trims texts only", "encode() the bytes first"),
        exp.Ordered: query_clauses.rewrite_order_item, exp.WidthBucket: numbers.bucket,
        exp.In: _in, exp.DataType: casts.type_,
        **dict.fromkeys((exp.LT, exp.LTE, exp.GT, exp.GTE), _compare),
        **dict.fromkeys((exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ), _equal),
        **dict.fromkeys((exp.Case, exp.Coalesce, exp.Greatest, exp.Least), _one_of),
        exp.WindowSpec: query_clauses.frame, exp.Max: time_differences.extreme,
        exp.Min: time_differences.extreme, exp.Sum: time_differences.total_differences,
        exp.Avg: _average,
        exp.Sub: _less, exp.DPipe: _concat, exp.Between: _between, **json_changes.RULES,
        **ranges.RULES, **json_paths.RULES,
    },
    REFUSED,
    calls={
        **dict.fromkeys(("cardinality", "make_date", "octet_length")),
        "transaction_timestamp": lambda node, query: exp.CurrentTimestamp(),
        **numbers.CALLS, **strings.CALLS, **times.CALLS, **format_patterns.CALLS, **arrays.CALLS,
        **json_text.CALLS, **json_builders.CALLS, **json_changes.CALLS, **ranges.CALLS,
        **json_paths.CALLS, **json_rows.CALLS, **identifiers.CALLS, **aggregates.CALLS,
        **table_expressions.CALLS,
    },
    prepare=_prepare,
    check=times_of_day.require_place,
)  # fmt: skip
