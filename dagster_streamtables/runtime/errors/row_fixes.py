"""Error conditions of Spark → what to do about the rows, or to write instead.

The first that fits holds. Spark's own advice is no fix here if it names a setting of the session:
the query of a stream table must mean the same in every session.
"""

from __future__ import annotations

import re

_FIXES = (
    (
        r"SCALAR_SUBQUERY_TOO_MANY_ROWS",
        "let the subquery return one row for each row around it: compare all of the key in its "
        "WHERE, or aggregate its value (max, any_value, array_agg); or delete the rows that repeat "
        "the key",
    ),
    (
        r"CAST_|NUMERIC_VALUE_OUT_OF_RANGE|INVALID_VARIANT_CAST",
        "correct the rows, or write try_cast (try_variant_get for a VARIANT), which gives NULL for "
        "such a value",
    ),
    (
        r"(DIVIDE|REMAINDER|INTERVAL_DIVIDED)_BY_ZERO",
        "correct the rows, or write try_divide (try_mod for a remainder) or a / nullif(b, 0), "
        "which give NULL",
    ),
    (
        r"\w*ARITHMETIC_OVERFLOW",
        "correct the rows, cast the operands to a wider type (BIGINT, DECIMAL), or write try_add, "
        "try_subtract, try_multiply, try_sum or try_avg, which give NULL",
    ),
    (r"INVALID_INDEX_OF_ZERO", "count from 1 in element_at and the like; array[n] counts from 0"),
    (
        r"INVALID_ARRAY_INDEX",
        "correct the rows, or write get(array, n), which counts from 0, or "
        "try_element_at(array, n), which counts from 1: both give NULL for a missing element",
    ),
    (
        r"CANNOT_PARSE_(TIMESTAMP|TIME|DATE)|INVALID_DATETIME_PATTERN|FAILED_TO_PARSE",
        "correct the rows or the pattern, or write try_to_timestamp or try_to_date, which give "
        "NULL for such a text",
    ),
    (
        r"DATETIME_FIELD_OUT_OF_BOUNDS",
        "correct the rows, or test the parts of the date first, in a CASE",
    ),
    (
        r"DUPLICATED_MAP_KEY",
        "correct the rows, or make the keys distinct before the map is built: GROUP BY the key, "
        "and max_by the value",
    ),
    (r"NULL_MAP_KEY", "correct the rows, or leave out those without a key: WHERE key IS NOT NULL"),
    (
        r"USER_RAISED_EXCEPTION",
        "correct the rows, or the condition under which the query calls raise_error or assert_true",
    ),
    (
        r"MALFORMED_RECORD_IN_PARSING",
        "correct the rows, or write try_parse_json, or from_json in the mode PERMISSIVE, which "
        "give NULL for such a text",
    ),
    (r"INVALID_FORMAT", "correct the rows or the format, or write try_to_number, which gives NULL"),
    (r"INVALID_URL", "correct the rows, or write try_parse_url, which gives NULL"),
    (
        r"INVALID_UTF8_STRING",
        "correct the rows, or write make_valid_utf8, or try_validate_utf8, which gives NULL",
    ),
)
_ANY = "correct the rows, or write an expression that has a value for them, such as a CASE"
_ADVICE = re.compile(
    r' (If necessary|If you want to [^,"]+, you can) set "spark\.[^"]+" to "[^"]*"[^.]*\.'
)


def row_fix(condition: str) -> str:
    """What to do about rows on which a query fails.

    >>> row_fix("NULL_MAP_KEY")
    'correct the rows, or leave out those without a key: WHERE key IS NOT NULL'
    """
    return next((fix for pattern, fix in _FIXES if re.match(pattern, condition)), _ANY)


def without_settings(message: str) -> str:
    """A message of Spark without its advice to change a setting.

    >>> without_settings('overflow. If necessary set "spark.x" to "false" to bypass this error.')
    'overflow.'
    """
    return _ADVICE.sub("", message)
