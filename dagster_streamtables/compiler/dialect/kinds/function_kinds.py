"""Kinds of values, and which kind a function returns."""

from __future__ import annotations

import enum

from sqlglot import exp


class Kind(enum.Enum):
    """A class of types; UNKNOWN if it cannot be inferred from the text and the columns."""

    INT = "a whole number"
    BIGINT = "a whole number of 64 bits"
    DECIMAL = "a decimal"
    FLOAT = "a float of 32 bits"
    DOUBLE = "a float"
    STRING = "a string"
    BYTES = "a string that is compared by its bytes"
    BOOL = "a boolean"
    DATE = "a date"
    INSTANT = "a timestamp with a zone"
    LOCAL = "a timestamp without a zone"
    ARRAY = "an array"
    OTHER = "of another type"
    UNKNOWN = "of a type that is not known here"
    JSON = "JSON"
    INTERVAL = "an interval"
    BINARY = "bytes"
    TIME = "a time of day"


WHOLE = frozenset({Kind.INT, Kind.BIGINT})
MOMENTS = frozenset({Kind.INSTANT, Kind.LOCAL})
DATES = frozenset({Kind.DATE, *MOMENTS})

ARRAYS_OF_TEXTS = frozenset(
    {"string_to_array", "regexp_match", "regexp_matches", "regexp_split_to_array"}
)
RECORDS = frozenset(
    {"json_to_recordset", "jsonb_to_recordset", "json_to_record", "jsonb_to_record"}
)
"""Functions of Postgres whose columns are declared with the call, each with its type."""

BY_CLASS: tuple[tuple[tuple[type[exp.Expr], ...], Kind], ...] = (
    ((exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Pad, exp.Replace,
      exp.RegexpReplace, exp.SplitPart, exp.Concat, exp.ConcatWs, exp.GroupConcat, exp.TimeToStr,
      exp.Translate, exp.Repeat, exp.Reverse, exp.Chr, exp.MD5, exp.Overlay, exp.ArrayToString),
     Kind.STRING),
    ((exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile,
      exp.ApproxDistinct), Kind.BIGINT),
    ((exp.Length, exp.StrPosition, exp.Ascii, exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute,
      exp.Second, exp.Quarter, exp.DateDiff, exp.ArraySize), Kind.INT),
    ((exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Log, exp.Sin, exp.Cos, exp.Tan, exp.Atan2,
      exp.Degrees, exp.Radians, exp.Pi, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
      exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp), Kind.DOUBLE),
    ((exp.Collate,), Kind.BYTES),
    ((exp.CurrentDate,), Kind.DATE),
    ((exp.CurrentTimestamp,), Kind.INSTANT),
    ((exp.ArrayAppend, exp.ArrayConcat, exp.ArrayRemove), Kind.ARRAY),
    ((exp.Interval,), Kind.INTERVAL),
    ((exp.JSONExtract, exp.JSONBExtract, exp.JSONBDeleteAtPath), Kind.JSON),
    ((exp.JSONExtractScalar, exp.JSONBExtractScalar, exp.JSONValue), Kind.STRING),
)  # fmt: skip
BY_CALL: dict[str, Kind] = {
    name: kind
    for kind, names in {
        Kind.STRING: "to_char initcap format encode regexp_substr quote_literal to_hex string_agg "
        "quote_ident json_typeof jsonb_typeof json_extract_path_text jsonb_extract_path_text "
        "casefold unistr "
        "convert_from jsonb_array_elements_text json_array_elements_text jsonb_each_text "
        "json_each_text jsonb_object_keys json_object_keys string_to_table regexp_split_to_table",
        Kind.INT: "num_nulls num_nonnulls jsonb_array_length json_array_length regexp_count "
        "regexp_instr generate_subscripts array_upper array_lower scale min_scale bit_count crc32 "
        "get_byte octet_length"
        " array_ndims",
        Kind.DOUBLE: "date_part erf erfc sind cosd tand asind acosd atand",
        Kind.DECIMAL: "to_number trim_scale factorial",
        Kind.DATE: "make_date to_date",
        Kind.INSTANT: "to_timestamp make_timestamptz transaction_timestamp date_add date_subtract",
        Kind.LOCAL: "make_timestamp",
        Kind.BOOL: "every bool_and bool_or jsonb_exists isfinite overlaps regexp_like starts_with "
        "array_contains jsonb_path_exists json_exists",
        Kind.ARRAY: "array_agg string_to_array regexp_split_to_array regexp_match regexp_matches "
        "array_replace array_prepend array_positions array_reverse array_sort trim_array "
        "array_fill",
        Kind.JSON: "json_build_object jsonb_build_object json_build_array jsonb_build_array to_json"
        " to_jsonb json_agg jsonb_agg json_object_agg jsonb_object_agg jsonb_strip_nulls "
        "json_strip_nulls array_to_json jsonb_insert "
        "json_extract_path jsonb_extract_path jsonb_set jsonb_array_elements json_array_elements "
        "jsonb_each json_each row_to_json jsonb_path_query_first jsonb_path_query_array "
        "json_query",
        Kind.INTERVAL: "age make_interval justify_days justify_hours justify_interval",
        Kind.BINARY: "convert_to decode sha224 sha256 sha384 sha512",
    }.items()
    for name in names.split()
}
"""Functions of Postgres that sqlglot does not know."""
