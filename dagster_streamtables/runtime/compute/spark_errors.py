"""What an error means for the refresh that met it, and whether trying again may help.

The errors from below are told apart by their SQLSTATE, their class, and, where neither says enough,
their words:

the rows of the query     a number overflows, a cast has no value, a scalar subquery has two rows:
                          SQLSTATE class 21, cardinality violation, or 22, data exception (ISO/IEC
                          9075-2)
history that is gone      a file, or a version, that the log named: a vacuum took it, or it is there
                          and cannot be read
a lost race               Delta found that another commit came first
the machine               a full disk, a missing permission, too little memory, a Spark that ended
the statement itself      Spark cannot analyse or plan it: only the change of a query has
                          something else to try
anything else             is not known here, and goes on as it is

Who is to act on an error, `may_pass` and `is_lasting` say, for all of the package. An error that is
not known to pass does not: one of our own defects, tried again for ever, is one that nobody sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError, DeltaProtocolError, SchemaMismatchError

from dagster_streamtables.errors import (
    ConflictingCommit,
    DamagedTable,
    FailedQuery,
    InvalidDefinition,
    LostSpark,
    RejectedQuery,
    RunawayRecursion,
    SourceProblem,
    StreamTablesError,
)
from dagster_streamtables.runtime.delta.environment_errors import (
    STAYS,
    first_line,
    machine_problem,
    place_in,
)
from dagster_streamtables.runtime.delta.errors import lost_race

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_CLASSES = ("21", "22")
_RAISED = "P0001"  # raise_error(), assert_true(): mode FULL takes them
_GONE = re.compile(
    r"\[(FAILED_READ_FILE\.\w+|CANNOT_READ_FILE_FOOTER|DELTA_FILE_NOT_FOUND\w*|"
    r"DELTA_VERSION_NOT_FOUND|DELTA_LOG_FILE_NOT_FOUND\w*|DELTA_TRUNCATED_TRANSACTION_LOG|"
    r"DELTA_CHANGE_DATA_FILE_NOT_FOUND)|"
    r"Object at location \S+ not found|[Pp]arquet magic bytes|[Ii]nvalid Parquet|Parquet error"
)
_RACES = re.compile(
    r"\[(DELTA_CONCURRENT_\w+|DELTA_PROTOCOL_CHANGED\w*|DELTA_METADATA_CHANGED\w*)|"
    r"(Concurrent\w+|ProtocolChanged|MetadataChanged)Exception"
)
_PASSING = (ConflictingCommit, LostSpark)
_LASTING = (FailedQuery, InvalidDefinition, SourceProblem)
_DETERMINED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    DeltaProtocolError,
    LookupError,
    NotImplementedError,
    SchemaMismatchError,
    TypeError,
    ValueError,
)
"""Errors that come back where the same is tried again, whoever raised them."""
_FOREIGN = ("pyspark", "grpc", "pyarrow", "_internal", "deltalake", "py4j")


class LostHistory(Exception):
    """A file or a version that the refresh needed is no longer there, or cannot be read."""


@contextmanager
def explained() -> Iterator[None]:
    """Tell the errors of Spark, of delta-rs and of the machine apart.

    Raises:
        FailedQuery: Spark failed on the rows.
        RejectedQuery: Spark does not run the statement.
        LostHistory: A file or a version is gone, or cannot be read.
        ConflictingCommit: Another writer committed first.
        EnvironmentProblem: The disk is full, a permission or memory is missing, or Spark ended.
    """
    try:
        yield
    except Exception as error:
        meaning = _meaning(error) if _is_foreign(error) else None
        if meaning is None:
            raise
        raise meaning from error


@contextmanager
def last_word() -> Iterator[None]:
    """The same where nothing else can be tried.

    Raises:
        DamagedTable: A file or a version is gone, or cannot be read.
        StreamTablesError: As `explained`.
    """
    try:
        with explained():
            yield
    except LostHistory as error:
        raise DamagedTable(
            "a file of a table is not there, or cannot be read",
            where=place_in(str(error)),
            why=first_line(str(error)),
            fix="restore the file, or repair its table (FSCK REPAIR TABLE, RESTORE)",
        ) from error


def may_pass(error: Exception) -> bool:
    """Whether trying again may be enough: a lost race, or a bad moment of what is below."""
    if isinstance(error, StreamTablesError):
        return isinstance(error, _PASSING)
    return _is_foreign(error) and not isinstance(error, _DETERMINED)


def is_lasting(error: Exception) -> bool:
    """Whether only a person can mend it, so that it comes back until somebody does.

    What the machine lacks is neither: it does not pass in a moment, and the table is not to blame.
    """
    if isinstance(error, StreamTablesError):
        return isinstance(error, _LASTING)
    return not may_pass(error)


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


def _is_foreign(error: Exception) -> bool:
    if isinstance(error, StreamTablesError | LostHistory):
        return False
    known = isinstance(error, OSError | MemoryError | DeltaError)
    return known or type(error).__module__.partition(".")[0] in _FOREIGN


def _meaning(error: Exception) -> Exception | None:
    from pyspark.errors import PySparkException

    message = str(error)
    of_spark = isinstance(error, PySparkException)
    if of_spark and (found := _about_rows(error)) is not None:
        return found
    problem = machine_problem(error)
    if problem is not None:
        return problem
    if _GONE.search(message):
        return LostHistory(message)
    if _RACES.search(message):
        return lost_race(first_line(message))
    if of_spark and _is_about_the_statement(error):
        return RejectedQuery(
            "Spark does not run the query",
            why=first_line(message),
            fix=f"correct the query, or the columns and functions that it names; {STAYS}",
        )
    return None


def _about_rows(error: PySparkException) -> FailedQuery | None:
    state, message = error.getSqlState() or "", str(error)
    if (error.getCondition() or "").startswith("RECURSION_"):
        # Spark's own recursion, which only a LIMIT ends; see `rounds`.
        return RunawayRecursion(
            "the recursion has not ended within the limits of Spark",
            why=first_line(message),
            fix="bound it in the query (WHERE depth < 50), or leave out the LIMIT, and the bounds "
            f"are max_recursion_levels and max_recursion_rows; {STAYS}",
        )
    if state[:2] in _CLASSES or state == _RAISED:
        return FailedQuery(
            "the query fails on the rows that its sources hold",
            why=first_line(message),
            fix="correct the rows, or write a query that has an answer for them (try_cast, "
            f"try_divide, CASE); {STAYS}",
        )
    return None
