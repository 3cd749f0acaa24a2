"""Why functions of Postgres are refused, in words of what they do."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from dagster_streamtables.compiler.dialect.rules.dialect import Reason


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
