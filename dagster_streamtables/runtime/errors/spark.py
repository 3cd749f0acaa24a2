"""Errors of a Spark statement that are about its rows, or about the statement itself.

Spark's own advice is no fix if it names a setting of the session: the query of a stream table must
mean the same in every session.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dagster_streamtables.errors import FailedQuery, RejectedQuery, RunawayRecursion
from dagster_streamtables.runtime.errors.foreign_words import condition_of, first_line, sqlstate_of
from dagster_streamtables.runtime.errors.machine import STAYS

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

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


_CLASSES = ("21", "22")
_OF_HISTORY = "DELTA_VERSION_NOT_FOUND"  # 22003, a number out of range
_OF_ROWS = ("USER_RAISED_EXCEPTION", "DUPLICATED_MAP_KEY", "INVALID_FORMAT.MISMATCH_INPUT")
"""Conditions of other classes."""
_TASK = re.compile(r"Job aborted due to stage failure: .*\([^()]*executor [^()]*\): (.*)")


def row_problem(error: Exception) -> FailedQuery | None:
    """What is wrong with the rows that a statement read."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    state, condition, message = sqlstate_of(error), condition_of(error), str(error)
    if condition.startswith("RECURSION_"):
        # Spark's own recursion, which only a LIMIT ends; see `Rounds`.
        return RunawayRecursion(
            "the recursion has not ended within the limits of Spark",
            why=first_line(message),
            fix="bound it in the query (WHERE depth < 50), or leave out the LIMIT, and the bounds "
            f"are max_recursion_levels and max_recursion_rows; {STAYS}",
        )
    if (state[:2] in _CLASSES and condition != _OF_HISTORY) or condition in _OF_ROWS:
        return _row_failure(first_line(message), condition)
    return None


def statement_problem(error: Exception) -> FailedQuery | RejectedQuery | None:
    """What is wrong with a statement that Spark does not run, whatever the rows; or with rows, in
    an error without a condition, such as that of a regular expression."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException) or not _is_about_the_statement(error):
        return None
    task = None if condition_of(error) else _TASK.search(str(error))
    if task is not None:
        return _row_failure(task[1])
    return RejectedQuery(
        "Spark does not run the query",
        why=first_line(str(error)),
        fix=f"correct the query, or the columns and functions that it names; {STAYS}",
    )


def _row_failure(why: str, condition: str = "") -> FailedQuery:
    return FailedQuery(
        "the query fails on the rows that its sources hold",
        why=without_settings(why),
        fix=f"{row_fix(condition)}; {STAYS}",
    )


def _is_about_the_statement(error: PySparkException) -> bool:
    """Whether Spark broke off over a statement itself: not over rows, files, or the machine.

    SQLSTATE class 42, syntax error or access rule violation, 0A, feature not supported, or XX, an
    error inside Spark, which it may also tell with the trace of its planner only. Some errors of
    the analysis have another SQLSTATE or none; those of the client for a type that has no
    counterpart in Arrow have none either.
    """
    from pyspark.errors import AnalysisException

    state, condition = sqlstate_of(error)[:2], condition_of(error)
    if isinstance(error, AnalysisException) or condition.startswith("UNSUPPORTED_"):
        return True
    return state in ("42", "0A", "XX") or (not state and "spark.sql.catalyst" in str(error))
