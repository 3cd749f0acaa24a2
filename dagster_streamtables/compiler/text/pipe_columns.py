"""Steps of a pipe that need the names of the columns before them.

|> SET b = e                        SELECT a, e AS b, c FROM …, in the order that there was
|> AGGREGATE … GROUP BY 2           GROUP BY b, the second column before the step
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.errors import InvalidDefinition, Place, UnsupportedQuery

SPARK_ONLY = "the query must be Spark SQL, in mode FULL too"
_OF_SETS = {"CUBE", "ROLLUP", "GROUPING", "ALL"}
_SEVERAL_SETS = ({"WITH", "ROLLUP"}, {"WITH", "CUBE"}, {"GROUPING", "SETS"})

ColumnsOf = Callable[[str], Sequence[str]]
"""A query without pipe syntax → the names of its columns.

Raises InvalidDefinition if they are not known.
"""


def with_value(names: Sequence[str], column: str, value: str, where: Place | str) -> str:
    """The SELECT list of all columns, one of which has a new value.

    Args:
        names: The columns before the step.
        column: That column, as written.
        value: An expression over the columns before the step.
        where: The place of the assignment.

    Raises:
        InvalidDefinition: There is no such column, or there are two.
        UnsupportedQuery: Two of the others have the same name.
    """
    wanted = exp.to_identifier(column.strip("`")).name.lower()
    found = [name for name in names if name.lower() == wanted]
    if not found:
        raise InvalidDefinition(
            f"SET of {column}, which is no column", where=where,
            why="SET changes a column that is there",
            fix=f"write EXTEND, or one of {', '.join(names)}",
        )  # fmt: skip
    _require_one(names, where, "SET")
    listed = (f"{value} AS {column}" if name in found else quoted(name) for name in names)
    return ", ".join(listed)


def at_number(names: Sequence[str], number: int, where: Place | str) -> str:
    """The column at a position, counted from 1.

    Raises:
        InvalidDefinition: There is none.
        UnsupportedQuery: Another column has its name.
    """
    if not 0 < number <= len(names):
        raise InvalidDefinition(
            f"there is no column {number} before AGGREGATE", where=where,
            why=f"in GROUP BY of AGGREGATE, a number counts the {len(names)} columns before it",
            fix="name the column",
        )  # fmt: skip
    _require_one(names, where, "a number in GROUP BY")
    return quoted(names[number - 1])


def require_key(words: Sequence[str], where: Place | str) -> None:
    """
    Args:
        words: A key of AGGREGATE in upper case, without what its parentheses hold.
        where: Its place.

    Raises:
        InvalidDefinition: Spark has no such key.
        UnsupportedQuery: It is a constant, which GROUP BY of a SELECT would take for a column.
    """
    if words[0] in _OF_SETS or any(each <= set(words) for each in _SEVERAL_SETS):
        raise InvalidDefinition(
            "Spark has no grouping sets in AGGREGATE, nor GROUP BY ALL",
            where=where, why=SPARK_ONLY,
            fix="write SELECT … GROUP BY … instead of this step and those before it",
        )  # fmt: skip
    if words[0].isdigit() and words[1:2] == ["AS"]:
        raise UnsupportedQuery(
            "a number with a name as the key of AGGREGATE", where=where,
            why="in GROUP BY of a SELECT, a number means a column",
            fix="leave it out, and add the column by EXTEND after the step",
        )  # fmt: skip


def _require_one(names: Sequence[str], where: Place | str, called: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise UnsupportedQuery(
                f"{called} after two columns that are called {name}", where=where,
                why="it lists the columns before it by their names",
                fix="choose the columns before it, |> SELECT …, and give each its own name",
            )  # fmt: skip
        seen.add(name.lower())


def quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(DIALECT)
