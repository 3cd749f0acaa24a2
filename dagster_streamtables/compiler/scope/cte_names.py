"""Give each definition of WITH a name of its own.

    WITH a AS (q) SELECT … FROM (WITH a AS (r) SELECT … FROM a) JOIN a …
    → WITH a AS (q) SELECT … FROM (WITH a_2 AS (r) SELECT … FROM a_2 AS a) JOIN a …

A WITH inside of a query hides what is defined around it, and says nothing to the queries beside
it. The other steps know a definition by its name alone, wherever it is mentioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TypeVar

from sqlglot import exp

from dagster_streamtables.compiler.text.query_text import Text, replace_mention
from dagster_streamtables.compiler.text.sqlglot_dialects import quote
from dagster_streamtables.compiler.text.table_mentions import Definition, definition_of
from dagster_streamtables.compiler.text.token_edits import Edit

_Named = TypeVar("_Named")


def definitions_with_column_aliases(tree: exp.Expr) -> Iterator[exp.Table]:
    """The mentions of definitions whose columns have other names: ``FROM t AS u (a, b)``."""
    for table in tree.find_all(exp.Table):
        if table.alias_column_names and definition_of(table) is not None:
            yield table


def without_repetitions(text: Text) -> Text:
    """The query in which no two definitions are called alike, whatever their case.

    Those of one WITH that are called alike stay so: Spark refuses them.
    """
    renamed = _new_names(text)
    return text.with_edits(_edits(text, renamed)) if renamed else text


def duplicate_definitions(tree: exp.Query) -> Iterator[exp.CTE]:
    """The definitions that are called like one before them in the same WITH."""
    for clause in tree.find_all(exp.With):
        yield from _find_duplicates(clause.expressions, lambda cte: cte.alias)


def _new_names(text: Text) -> dict[Definition, str]:
    """The definitions that are called like one before them, with a name that nothing has."""
    repeated = list(_find_duplicates(text.definitions, lambda definition: definition.name))
    if not repeated or any(duplicate_definitions(text.tree)):
        return {}
    taken = {token.text.lower() for token in text.tokens}
    return {each: _free(each.name, taken) for each in repeated}


def _find_duplicates(
    definitions: Iterable[_Named], name: Callable[[_Named], str]
) -> Iterator[_Named]:
    """Those that are called like one before them."""
    seen: set[str] = set()
    for each in definitions:
        if name(each).lower() in seen:
            yield each
        seen.add(name(each).lower())


def _free(name: str, taken: set[str]) -> str:
    """A name that is not taken, and is from now on."""
    free = next(n for i in count(2) if (n := f"{name}_{i}").lower() not in taken)
    taken.add(free.lower())
    return free


def _edits(text: Text, renamed: dict[Definition, str]) -> Iterator[Edit]:
    quoted = {each: quote(name) for each, name in renamed.items()}
    for each, name in quoted.items():
        yield each.start, each.stop, name
    for mention in text.names[0]:
        if mention.definition in quoted:
            yield from replace_mention(mention, quoted[mention.definition])
