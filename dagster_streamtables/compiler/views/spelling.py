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


def over_another(query: str, table: str, other: str) -> str:
    """A query in Spark SQL that names another table instead of one, with the same meaning over it.

    Unchanged if a column may be qualified by the last part of either name, or if WITH defines the
    other name: then the text over the other table can mean something else.

    Args:
        query: The text.
        table: A name, as the query spells it.
        other: The name to write instead.

    >>> over_another("SELECT t.id FROM mart.a AS t", "mart.a", "mart.b")
    'SELECT t.id FROM mart.b AS t'
    >>> over_another("SELECT a.id FROM mart.a", "mart.a", "mart.b")
    'SELECT a.id FROM mart.a'

    Raises:
        InvalidDefinition: The text is not one query.
    """
    text = as_written(query)
    found = [each for each in text.named if each.name == table]
    edits = [(each.start, each.stop, other) for each in found]
    lasts = {name.rpartition(".")[2].lower() for name in (table, other)}
    within = [(each.start, each.stop) for each in found]
    elsewhere = {
        token.text.lower()
        for token in text.tokens
        if not any(start <= token.start < stop for start, stop in within)
    }
    bare = any(each.alias_at is not None for each in found) and len(lasts) > 1
    if bare and lasts & elsewhere:
        return text.sql
    made = text.with_edits(edits)
    meant = [other if each.name == table else each.name for each in text.named]
    return made.sql if [each.name for each in made.named] == meant else text.sql


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
