"""Errors of a Spark statement that are about its rows, or about the statement itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dagster_streamtables.errors import FailedQuery, RejectedQuery, RunawayRecursion
from dagster_streamtables.runtime.errors.foreign_words import condition_of, first_line, sqlstate_of
from dagster_streamtables.runtime.errors.machine import STAYS
from dagster_streamtables.runtime.errors.row_fixes import row_fix, without_settings

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

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
        # Spark's own recursion, which only a LIMIT ends; see `rounds`.
        return RunawayRecursion(
            "the recursion has not ended within the limits of Spark",
            why=first_line(message),
            fix="bound it in the query (WHERE depth < 50), or leave out the LIMIT, and the bounds "
            f"are max_recursion_levels and max_recursion_rows; {STAYS}",
        )
    if (state[:2] in _CLASSES and condition != _OF_HISTORY) or condition in _OF_ROWS:
        return _failed(first_line(message), condition)
    return None


def statement_problem(error: Exception) -> FailedQuery | RejectedQuery | None:
    """What is wrong with a statement that Spark does not run, whatever the rows; or with rows, in
    an error without a condition, such as that of a regular expression."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException) or not _is_about_the_statement(error):
        return None
    task = None if condition_of(error) else _TASK.search(str(error))
    if task is not None:
        return _failed(task[1])
    return RejectedQuery(
        "Spark does not run the query",
        why=first_line(str(error)),
        fix=f"correct the query, or the columns and functions that it names; {STAYS}",
    )


def _failed(why: str, condition: str = "") -> FailedQuery:
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
