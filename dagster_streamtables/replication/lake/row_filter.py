"""Row filters: which rows of a table a publication shows."""

from __future__ import annotations

from collections.abc import Iterable

from dagster_streamtables.compiler import compile_query, flaw_of, type_text
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.definition import visible


def require_row_filter(table: str, where: str) -> None:
    """
    Raises:
        InvalidDefinition: It is no condition on one row, or may have another answer later.
    """
    flaw = flaw_of(where)
    if flaw:
        raise InvalidDefinition(
            f'the row filter of the published table "{table}" cannot be used: {flaw}',
            where=where,
            why="a row that is deleted must be recognized as the row that was published",
            fix="write a condition with the row's columns, constants and Spark's built-in "
            "functions that are deterministic; no subquery",
        )


def columns_of(table: str, where: str, log: TableLog) -> frozenset[str]:
    """The columns that a filter looks at, in lower case.

    Raises:
        PublisherProblem: It names a column that the table does not have, or is no boolean.
    """
    try:
        columns = {"t": visible(log.columns)}
        plan = compile_query(f"SELECT (\n{where}\n) AS chosen FROM t AS __row", columns)
    except InvalidDefinition as error:
        raise PublisherProblem(
            f'the row filter of the published table "{table}" does not fit it: {error.what}',
            where=where,
            why=error.why,
            fix="correct the filter, or give the table that column again",
        ) from error
    found = type_text(plan.schema["chosen"])
    if found.lower() not in ("boolean", "unknown"):
        raise PublisherProblem(
            f'the row filter of the published table "{table}" is no condition',
            where=where,
            why=f"it is {found}, and only true, false and NULL choose rows",
            fix="write a comparison",
        )
    return frozenset(plan.columns_of("t"))


def any_of(filters: Iterable[str]) -> str:
    """A filter for the rows that one of them chooses; empty, which is all rows, if one is empty.

    >>> any_of(["a > 1", "b = 2", "a > 1"])
    '(a > 1\\n) OR (b = 2\\n)'
    """
    found = list(dict.fromkeys(filters))
    if "" in found or len(found) < 2:
        return "" if "" in found else "".join(found)
    return " OR ".join(f"({each}\n)" for each in found)  # a comment may end one of them
