"""Who is to blame when Spark fails: the rows that a query was asked of, or anything else.

A query fails on its rows where a number overflows, a cast has no value, or a scalar subquery has
two rows. SQL has classes for these (ISO/IEC 9075-2, table "SQLSTATE class and
subclass codes"): 21, cardinality violation, and 22, data exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dagster_streamtables.errors import FailedQuery

_CLASSES = ("21", "22")
_RAISED = "P0001"  # raise_error(), assert_true(): mode FULL takes them


@contextmanager
def rows_to_blame() -> Iterator[None]:
    """Tell the errors that rows cause from all others.

    Raises:
        FailedQuery: Spark failed on the rows; other errors pass as they are.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        state = error.getSqlState() or ""
        if state[:2] not in _CLASSES and state != _RAISED:
            raise
        raise FailedQuery(
            "the query fails on the rows that its sources hold",
            why=_first_line(str(error)),
            fix="correct the rows, or write a query that has an answer for them (try_cast, "
            "try_divide, CASE); the table stays as it was",
        ) from error


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), message)
