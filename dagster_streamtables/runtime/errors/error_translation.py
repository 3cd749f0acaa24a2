"""Errors of libraries as errors of this package: what one means for a refresh, and who must act.

They are told apart by their SQLSTATE, their class, and, if neither is enough, their words:

the rows of the query     a number overflows, a cast has no value, a scalar subquery has two rows:
                          SQLSTATE class 21, cardinality violation, or 22, data exception (ISO/IEC
                          9075-2)
the machine               a full disk, a missing permission, too little memory, a Spark that ended
text that is not UTF-8    only Spark reads it
lost history              a file or a version that the log names was deleted or cannot be read
a lost race               Delta found that another commit was first
the statement itself      Spark cannot analyse or plan it: only the change of a query has
                          something else to try
anything else             is unknown here, and is raised as it is

The first that fits holds: Spark wraps the words of a full disk in an error about its statement.

Only an error that is known to pass is tried again: a defect of this package, tried again for ever,
would never be seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    SchemaMismatchError,
)

from dagster_streamtables.errors import (
    ConflictingCommit,
    DamagedTable,
    FailedQuery,
    InvalidDefinition,
    LostSpark,
    LostStore,
    QueryPosition,
    RefusedFullRefresh,
    RejectedQuery,
    SourceProblem,
    StreamTablesError,
)
from dagster_streamtables.runtime.errors.environment_errors import (
    file_problem,
    machine_problem,
    store_problem,
)
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.errors.spark_errors import row_problem, statement_problem
from dagster_streamtables.runtime.errors.table_errors import (
    NOT_UTF8,
    LostHistory,
    NotInCatalog,
    lost_file,
    lost_race,
    no_utf8,
    unreadable_log,
    unreadable_partition,
    unreadable_root,
)

_UNREAD = "Failed to parse value '"
"""The words of delta-rs about a text in the log that is no value to it."""

_GONE = re.compile(
    r"\[(FAILED_READ_FILE\.\w+|CANNOT_READ_FILE_FOOTER|PATH_NOT_FOUND|DELTA_FILE_NOT_FOUND\w*|"
    r"DELTA_VERSION_NOT_FOUND|DELTA_LOG_FILE_NOT_FOUND\w*|DELTA_TRUNCATED_TRANSACTION_LOG|"
    r"DELTA_CHANGE_DATA_FILE_NOT_FOUND)|"
    r"Object at location \S+ not found|[Pp]arquet magic bytes|[Ii]nvalid Parquet|Parquet error"
)
_RACES = re.compile(
    r"\[(DELTA_CONCURRENT_\w+|DELTA_PROTOCOL_CHANGED\w*|DELTA_METADATA_CHANGED\w*)|"
    r"(Concurrent\w+|ProtocolChanged|MetadataChanged)Exception"
)
_FOREIGN = ("pyspark", "grpc", "pyarrow", "_internal", "deltalake", "py4j")


@contextmanager
def translate_errors(
    place_of: Callable[[Exception], QueryPosition | str] = lambda _: "",
) -> Iterator[None]:
    """Tell the errors of Spark, of delta-rs and of the machine apart; `place_of` returns the place
    of an error of Spark in the author's query.

    Raises:
        FailedQuery: Spark failed on the rows.
        RejectedQuery: Spark does not run the statement.
        LostHistory: A file or a version was deleted, or cannot be read.
        ConflictingCommit: Another writer committed first.
        EnvironmentProblem: The disk is full, a permission or memory is missing, or Spark ended.
    """
    try:
        yield
    except Exception as error:
        meaning = meaning_of(error)
        if meaning is None:
            raise
        if isinstance(meaning, FailedQuery | RejectedQuery):
            meaning = meaning.with_parts(where=place_of(error))
        raise meaning from error


@contextmanager
def translate_final_errors() -> Iterator[None]:
    """As `translate_errors`, if nothing else can be tried: lost history is a DamagedTable."""
    try:
        with translate_errors():
            yield
    except LostHistory as error:
        raise lost_file(error) from error


@contextmanager
def translate_commit_errors(*, made: bool = False) -> Iterator[None]:
    """Turn the errors of delta-rs for a lost race into ConflictingCommit, and no others.

    `made`: the commit creates the table, so that an existing table was first.
    """
    try:
        yield
    except (CommitFailedError, FileExistsError) as error:
        raise lost_race(str(error)) from error
    except DeltaError as error:
        if made and "already exists" in str(error):
            raise lost_race(str(error)) from error
        raise


@contextmanager
def translate_log_errors(location: str) -> Iterator[None]:
    """Turn the errors of opening a table into DamagedTable or EnvironmentProblem."""
    try:
        yield
    except (DeltaError, OSError) as error:
        words = first_line(str(error))
        unread = unreadable_partition if _UNREAD in words else unreadable_log
        file = file_problem(location)
        problem = file.with_parts(DamagedTable) if file is not None else machine_problem(error)
        raise (problem or unread(location, words)) from error


@contextmanager
def translate_root_errors(root: str) -> Iterator[None]:
    """Turn the errors of reading a root into EnvironmentProblem."""
    try:
        yield
    except (OSError, DeltaError) as error:
        raise store_problem(error) or unreadable_root(root, error) from error


def meaning_of(error: Exception) -> Exception | None:
    """The meaning of an error of a library; None if unknown, or of another origin."""
    if not is_foreign(error):
        return None
    return next(filter(None, (look(error) for look in _MEANINGS)), None)


def _not_utf8(error: Exception) -> StreamTablesError | None:
    return no_utf8("") if NOT_UTF8 in str(error) else None


def _lost_history(error: Exception) -> LostHistory | None:
    """A missing file; if Spark was writing, only the cause of its error names it."""
    message = str(error)
    found = _GONE.search(message)
    if found is None:
        return None
    return LostHistory(message[found.start() :] if found[1] else message)


def _lost_race(error: Exception) -> ConflictingCommit | None:
    return lost_race(first_line(str(error))) if _RACES.search(str(error)) else None


_MEANINGS: tuple[Callable[[Exception], Exception | None], ...] = (
    row_problem,
    machine_problem,
    _not_utf8,
    _lost_history,
    _lost_race,
    statement_problem,
)


def is_foreign(error: Exception) -> bool:
    """Whether an error comes from a library or from the operating system."""
    if isinstance(error, StreamTablesError | LostHistory):
        return False
    known = isinstance(error, OSError | MemoryError | DeltaError)
    return known or type(error).__module__.partition(".")[0] in _FOREIGN


_PASSING = (ConflictingCommit, LostSpark, LostStore)
_LASTING = (FailedQuery, InvalidDefinition, RefusedFullRefresh, SourceProblem)
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
"""Errors that come back if the same is tried again, from any library."""


def may_pass(error: Exception) -> bool:
    """Whether another attempt may be enough: a lost race, or a store or Spark that was away."""
    if isinstance(error, StreamTablesError):
        return isinstance(error, _PASSING)
    return is_foreign(error) and not isinstance(error, _DETERMINED)


def is_lasting(error: Exception) -> bool:
    """Whether it recurs until a person fixes it. What the machine lacks is neither lasting nor
    passing: the table is not to blame."""
    if isinstance(error, StreamTablesError):
        return isinstance(error, _LASTING) and not isinstance(error, NotInCatalog)
    return not may_pass(error)
