"""Why functions of Postgres are refused, in words of what they do.

`POSTGRES`: constructs with the same result there (18) and on Spark (4.2), on the same rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
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
    json_builders as json_built,
    json_changes,
    json_changes as json_stripped,
    json_paths,
    json_rows,
    json_text as json,
    json_text as json_compared,
)
from dagster_streamtables.compiler.dialect.postgres.preparation import type_texts
from dagster_streamtables.compiler.dialect.rules import (
    aggregation,
    array_rules as shared_arrays,
    datetimes,
    instants,
    orders,
    rows,
)
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON, Reason
from dagster_streamtables.compiler.dialect.rules.rule import (
    Columns,
    Query,
    from_template,
    literal_text,
    string,
)


class Why(NamedTuple):
    names: str
    why: str
    fix: str


_ANEW = Why(
    "clock_timestamp nextval random random_normal timeofday txid_current uuidv4 uuidv7 "
    "statement_timestamp pg_sleep array_sample array_shuffle currval lastval setseed",
    "it gives another value each time, and a table would never be equal to its query",
    "store the value in a source, and select that column",
)
_WHYS = (
    _ANEW,
    Why("erf erfc gamma lgamma sind cosd tand cotd asind acosd atand atan2d min_scale",
        "Spark has no such function",
        "compute it where the source is written"),
    Why("array_fill", "the index of its elements is not kept", "use array[…]"),
    Why("json_scalar", "the type of its argument decides about its result", "write to_jsonb(x)"),
    Why("json_serialize", "PostgreSQL shows JSON as a text in this way, too", "write j::text"),
    Why("row_to_json jsonb_populate_record json_object json_table",
        "the columns of a row, or the keys of an object, decide about its result",
        "name each key: jsonb_build_object('a', a), or j ->> 'a'"),
    Why("jsonb_pretty", "its text has the keys in PostgreSQL's order, and Spark keeps another",
        "lay the JSON out where it is shown"),
    Why("jsonb_path_match jsonb_path_query", "Spark has paths of keys and indexes only",
        "compare jsonb_path_query_first(j, '$.a'), and take rows by jsonb_array_elements()"),
    Why("json_objectagg jsonb_objectagg",
        "of equal keys the last one would win, and a group has no order",
        "aggregate jsonb_build_object('key', k, 'value', v) by jsonb_agg()"),
    Why("parse_ident pg_client_encoding pg_typeof "
        "to_ascii unistr normalize unicode_assigned casefold",
        "it serves text that is read by PostgreSQL, or depends on its tables of characters",
        "compute it where the source is written"),
    Why("get_bit set_bit get_byte set_byte bit_count crc32 crc32c",
        "Spark has no such function for bytes", "compute it where the source is written"),
    Why("range_agg",
        "a Delta table has no ranges", "compare both ends: a >= lower AND a < upper"),
    Why("make_time", "Spark has no such function", "write make_timestamp(…)::time"),
    Why("to_number", "its format words differ in Spark", "cast to NUMERIC(…)"),
    Why("row", "Spark compares NULLs inside a row differently", "write (a, b) without ROW"),
    Why("json_array json_arrayagg", "it omits NULLs, which the other constructors keep",
        "write json_build_array(…)"),
    Why("xmlagg", "a Delta table has no XML", "use string_agg()"),
    Why("array_dims array_ndims", "Spark's arrays have one dimension", "use cardinality()"),
)  # fmt: skip
WHYS: dict[str, Why] = {name: each for each in _WHYS for name in each.names.split()}
"""By the name of the function."""
REFUSED: dict[type[exp.Expr], Reason] = {
    **dict.fromkeys((exp.Rand, exp.Uuid), Reason(_ANEW.why, _ANEW.fix)),
    exp.Parameter: Reason("a parameter has no value when a refresh runs", "write abs(x) for @ x"),
    exp.BitString: Reason("a Delta table has no bit strings", "use whole numbers, and & | # ~"),
    **dict.fromkeys(
        (exp.CurrentTime, exp.Localtime, exp.TimeFromParts),
        Reason("a Delta table has no times of day", "use a timestamp"),
    ),
    exp.Normalize: Reason("Spark has no such function", "normalize where the source is written"),
    exp.Getbit: Reason("Spark has no such function for bytes",
                       "compute it where the source is written"),
    exp.JSONArray: Reason("it omits NULLs, which the other constructors keep",
                          "write json_build_array(…)"),
    exp.MatchAgainst: Reason("a condition in a path, and the search in texts, are not translated",
                             "compare j ->> 'a', or use LIKE"),
    exp.JSONTable: Reason("Spark cannot make columns of JSON", "name each: j ->> 'a'"),
    exp.JSONObjectAgg: Reason(WHYS["json_objectagg"].why, WHYS["json_objectagg"].fix),
    exp.JSON: Reason("Spark has no such test", "leave it out, or use IS NULL"),
}  # fmt: skip
"""Of what sqlglot parses into a class of its own."""


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
    return found or query_clauses.rewrite_in(node, query)


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
    return query_clauses.between(found or node, query) or found


def _compare(node: exp.Expr, query: Query) -> exp.Expr | None:
    found = times_of_day.compare_times_of_day(node, query)
    if found is not None:
        return found
    json_compared.compare_json(node, query)
    if query.kind(node.this) is Kind.ARRAY:
        raise query.refusal(node, "Spark orders NULLs inside of arrays first",
                            "compare elements")  # fmt: skip
    rows = times.compare_times(node, query) or query_clauses.compare_rows(node, query)
    return rows or arrays.ordered_quantifier(node, query)


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
        text = time_differences.text_of(value.unnest(), query)
        if text is not None:
            return text
    found = numbers.cast(node, query)
    if query.kind(node) is Kind.INSTANT and instants.needs_choice(node.this, query.kind(value)):
        return instants.later(found or node)
    return found


def _one_of(node: exp.Expr, query: Query) -> None:
    casts.beside(node, query)
    instants.one_of(node, query)


def _average(node: exp.Expr, query: Query) -> exp.Expr | None:
    return time_differences.total_differences(node, query) or numbers.average(node, query)


def _prepare(tree: exp.Query, columns: Columns) -> None:
    json_rows.declare_records(tree)
    json.name_keys(tree)
    table_expressions.name_columns(tree)
    identifiers.name_outputs(tree)
    query_clauses.name_functions(tree)
    query_clauses.complete_windows(tree)
    orders.normalize_orders(tree, columns)
    aggregation.total_over_no_rows(tree)
    preparation.aggregate_subqueries(tree)
    preparation.expand_row_references(tree, columns)
    preparation.keep_order(tree)
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
        **numbers.RULES, **strings.RULES, **strings.REGEX_RULES, **times.RULES, **times.ZONE_RULES,
        **arrays.RULES, **json.RULES, **aggregates.RULES,
        **table_expressions.RULES, **query_clauses.RULES, **arrays.CONTAINMENT_RULES,
        exp.Cast: _cast, exp.Any: _any_or_all, exp.All: _any_or_all, exp.Anonymous: _unknown,
        exp.Is: _rewrite_is, exp.Collate: _drop_collation, exp.Localtimestamp: _local_now,
        exp.Array: _array, exp.ArrayToString: casts.check_array_to_string,
        exp.Trim: _no_bytes,
        exp.Ordered: query_clauses.rewrite_order_item, exp.WidthBucket: numbers.bucket,
        exp.In: _in,
        exp.Kwarg: lambda node, query: None, exp.DataType: casts.type_,
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
    _CALLS,
    {
        "transaction_timestamp": lambda node, query: exp.CurrentTimestamp(),
        **numbers.CALLS, **numbers.WHOLE_NUMBER_CALLS, **strings.CALLS, **strings.REGEX_CALLS,
        **times.CALLS, **times.ZONE_CALLS,
        **format_patterns.CALLS, **arrays.CALLS, **json.CALLS, **json_built.CALLS, **json_changes.CALLS,
        **ranges.CALLS, **json_paths.CALLS, **json_rows.CALLS, **json_stripped.STRIP_CALLS,
        **identifiers.CALLS,
        **aggregates.CALLS, **table_expressions.CALLS,
    },
),
    prepare=_prepare,
    check=times_of_day.require_place,
)  # fmt: skip
