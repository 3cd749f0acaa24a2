"""Give each definition of WITH a name of its own.

    WITH a AS (q) SELECT … FROM (WITH a AS (r) SELECT … FROM a) JOIN a …
    → WITH a AS (q) SELECT … FROM (WITH a_2 AS (r) SELECT … FROM a_2 AS a) JOIN a …

A WITH inside of a query hides what is defined around it, and says nothing to the queries beside
it. The other steps know a definition by its name alone, wherever it is mentioned.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dagster_streamtables.compiler.text.edits import Edit
from dagster_streamtables.compiler.text.query_text import Text, exchanged
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.compiler.text.table_mentions import Definition


def without_repetitions(text: Text) -> Text:
    """The query in which no two definitions are called alike, whatever their case.

    Those of one WITH that are called alike stay so: Spark refuses them.
    """
    renamed = _renamed(text)
    return text.with_edits(_edits(text, renamed)) if renamed else text


def repeated_in_one_with(tree: exp.Query) -> Iterator[exp.CTE]:
    """The definitions that are called like one before them in the same WITH."""
    for clause in tree.find_all(exp.With):
        seen: set[str] = set()
        for cte in clause.expressions:
            if cte.alias.lower() in seen:
                yield cte
            seen.add(cte.alias.lower())


def _renamed(text: Text) -> dict[Definition, str]:
    """The definitions that are called like one before them, with a name that nothing has."""
    if len({each.name.lower() for each in text.definitions}) == len(text.definitions):
        return {}
    if any(repeated_in_one_with(text.tree)):
        return {}
    taken = {token.text.lower() for token in text.tokens}
    seen: set[str] = set()
    renamed: dict[Definition, str] = {}
    for each in text.definitions:
        if each.name.lower() in seen:
            renamed[each] = _free(each.name, taken)
        seen.add(each.name.lower())
    return renamed


def _free(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}_{number}".lower() in taken:
        number += 1
    taken.add(f"{name}_{number}".lower())
    return f"{name}_{number}"


def _edits(text: Text, renamed: dict[Definition, str]) -> Iterator[Edit]:
    quoted = {
        each: exp.to_identifier(name, quoted=True).sql(DIALECT) for each, name in renamed.items()
    }
    for each, name in quoted.items():
        yield each.start, each.stop, name
    for mention in text.names[0]:
        if mention.definition in quoted:
            yield from exchanged(mention, quoted[mention.definition])
