"""Errors of a Spark statement that are about its rows, or about the statement itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster_streamtables.errors import FailedQuery, RejectedQuery, RunawayRecursion
from dagster_streamtables.runtime.errors.foreign_words import first_line
from dagster_streamtables.runtime.errors.machine import STAYS

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_CLASSES = ("21", "22")
_OF_HISTORY = "DELTA_VERSION_NOT_FOUND"  # 22003, a number out of range
_RAISED = "P0001"  # raise_error(), assert_true(): mode FULL takes them


def row_problem(error: Exception) -> FailedQuery | None:
    """What is wrong with the rows that a statement read."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    state, message = error.getSqlState() or "", str(error)
    condition = error.getCondition() or ""
    if condition.startswith("RECURSION_"):
        # Spark's own recursion, which only a LIMIT ends; see `rounds`.
        return RunawayRecursion(
            "the recursion has not ended within the limits of Spark",
            why=first_line(message),
            fix="bound it in the query (WHERE depth < 50), or leave out the LIMIT, and the bounds "
            f"are max_recursion_levels and max_recursion_rows; {STAYS}",
        )
    if (state[:2] in _CLASSES and condition != _OF_HISTORY) or state == _RAISED:
        return FailedQuery(
            "the query fails on the rows that its sources hold",
            why=first_line(message),
            fix="correct the rows, or write a query that has an answer for them (try_cast, "
            f"try_divide, CASE); {STAYS}",
        )
    return None


def statement_problem(error: Exception) -> RejectedQuery | None:
    """What is wrong with a statement that Spark does not run, whatever the rows."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException) or not _is_about_the_statement(error):
        return None
    return RejectedQuery(
        "Spark does not run the query",
        why=first_line(str(error)),
        fix=f"correct the query, or the columns and functions that it names; {STAYS}",
    )


def _is_about_the_statement(error: PySparkException) -> bool:
    """Whether Spark broke off over a statement itself: not over rows, files, or the machine.

    SQLSTATE class 42, syntax error or access rule violation, 0A, feature not supported, or XX, an
    error inside Spark, which it may also tell with the trace of its planner only. Some errors of
    the analysis have another SQLSTATE or none; those of the client for a type that has no
    counterpart in Arrow have none either.
    """
    from pyspark.errors import AnalysisException

    state, condition = (error.getSqlState() or "")[:2], error.getCondition() or ""
    if isinstance(error, AnalysisException) or condition.startswith("UNSUPPORTED_"):
        return True
    return state in ("42", "0A", "XX") or (not state and "spark.sql.catalyst" in str(error))
