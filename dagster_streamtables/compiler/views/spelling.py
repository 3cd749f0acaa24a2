"""Names of tables in a query, spelled as their tables are: Spark finds them ignoring case."""

from __future__ import annotations

from collections.abc import Mapping

from dagster_streamtables.compiler.text.query_text import as_written


def respelled(query: str, names: Mapping[str, str]) -> str:
    """A query in Spark SQL with other letter case in the names of its tables.

    The text keeps its length, so that errors show the same places.

    Args:
        query: The text.
        names: Names as the query spells them → the names that differ from these in case only.

    >>> respelled("SELECT T2.id FROM Sales . `T2` AS t, T2", {"Sales.T2": "sales.t2"})
    'SELECT T2.id FROM sales . `t2` AS t, T2'

    Raises:
        InvalidDefinition: The text is not one query.
    """
    text = as_written(query)
    edits = [
        (each.start, each.stop, _in_case(text.sql[each.start : each.stop], names[each.name]))
        for each in text.named
        if each.name in names
    ]
    return text.with_edits(edits).sql


def _in_case(written: str, name: str) -> str:
    """The characters of a mention, its quotes and blanks included, in the case of a name."""
    letters = iter(name)
    following = next(letters, "")
    made: list[str] = []
    for each in written:
        if each.lower() == following.lower():
            made.append(following)
            following = next(letters, "")
        else:
            made.append(each)
    return "".join(made)


def same_but_case(one: str, other: str) -> bool:
    """Whether Spark takes two names of tables for one."""
    return one.lower() == other.lower() and len(one) == len(other)
