"""What an error of Spark means for the refresh that met it.

the rows of the query     a number overflows, a cast has no value, a scalar subquery has two rows:
                          SQLSTATE class 21, cardinality violation, or 22, data exception (ISO/IEC
                          9075-2)
history that is gone      a file, or a version, that the log named and that a vacuum took
a lost race               Delta found that another commit came first
anything else             is not known here, and passes as it is
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from dagster_streamtables.errors import FailedQuery
from dagster_streamtables.runtime.storage import lost_race

_CLASSES = ("21", "22")
_RAISED = "P0001"  # raise_error(), assert_true(): mode FULL takes them
_GONE = re.compile(
    r"\[(FAILED_READ_FILE\.FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND\w*|DELTA_VERSION_NOT_FOUND|"
    r"DELTA_LOG_FILE_NOT_FOUND\w*|DELTA_TRUNCATED_TRANSACTION_LOG|DELTA_CHANGE_DATA_FILE_NOT_FOUND)"
)
_RACES = re.compile(
    r"\[(DELTA_CONCURRENT_\w+|DELTA_PROTOCOL_CHANGED\w*|DELTA_METADATA_CHANGED\w*)|"
    r"(Concurrent\w+|ProtocolChanged|MetadataChanged)Exception"
)


class LostHistory(Exception):
    """A file or a version that the refresh needed is no longer there."""


@contextmanager
def explained() -> Iterator[None]:
    """Tell the errors of Spark apart.

    Raises:
        FailedQuery: Spark failed on the rows.
        LostHistory: A file or a version is gone.
        ConflictingCommit: Another writer committed first.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        state, message = error.getSqlState() or "", str(error)
        if _GONE.search(message):
            raise LostHistory(message) from error
        if _RACES.search(message):
            raise lost_race(_first_line(message)) from error
        if state[:2] in _CLASSES or state == _RAISED:
            raise FailedQuery(
                "the query fails on the rows that its sources hold",
                why=_first_line(message),
                fix="correct the rows, or write a query that has an answer for them (try_cast, "
                "try_divide, CASE); the table stays as it was",
            ) from error
        raise


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), message)
