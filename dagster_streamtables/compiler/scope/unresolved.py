"""The error for a name that is not found, or is found in several tables."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from sqlglot import exp

from dagster_streamtables.compiler.scope.columns_in_from import (
    Columns,
    columns_in_from,
    selects_around,
)
from dagster_streamtables.compiler.text.places import place, place_of_word
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.errors import InvalidDefinition

_FEW = 12
_HIDDEN = "columns whose names begin with __st_ are the state of a stream table: no query sees them"


class UnresolvedName(Exception):
    """A name that means no column, or several; `unresolved` tells it to the author."""

    def __init__(self, name: exp.Expr, why: str) -> None:
        """
        Args:
            name: A node of the query's tree that has a name.
            why: What its author does not know.
        """
        super().__init__(why)
        self.name, self.why = name, why


def unresolved(
    text: Text, error: UnresolvedName, sources: Mapping[str, Columns]
) -> InvalidDefinition:
    """What is wrong with a name, with its position and the nearest names.

    Args:
        text: The query.
        error: What is not resolved in its tree.
        sources: The columns of each table that the query reads.
    """
    name = error.name.name
    written = _written(text, error.name)
    if written is None:
        where = place_of_word(name, text) or text.shown()
        fix = _near(exp.column(name), sources)
        return InvalidDefinition(
            f'column "{name}" does not exist', where=where, why=error.why, fix=fix
        )
    if _is_output(written):
        return InvalidDefinition(
            f'column "{name}" does not exist',
            where=place(written, text),
            why=f"'{name}' is an output of SELECT, which WHERE comes before",
            fix="repeat its expression in WHERE, or filter around: SELECT * FROM (…) WHERE …",
        )
    return _of_column(written, error.why, text, sources)


def _is_output(mention: exp.Column) -> bool:
    """Whether it stands in WHERE, and names an output of the same SELECT."""
    where = mention.find_ancestor(exp.Where, exp.Select)
    select = where.parent if isinstance(where, exp.Where) else None
    if mention.table or not isinstance(select, exp.Select):
        return False
    return mention.name.lower() in (each.alias.lower() for each in select.expressions)


def _of_column(
    column: exp.Column, message: str, text: Text, sources: Mapping[str, Columns]
) -> InvalidDefinition:
    where, name = place(column, text), column.name
    holders = [] if column.table else _holders(column, sources)
    if len(holders) > 1:
        return InvalidDefinition(
            f'column "{name}" is ambiguous',
            where=where,
            why=f"{' and '.join(holders)} have a column of this name",
            fix=f"qualify it, for example {holders[0]}.{name}",
        )
    return InvalidDefinition(
        f'column "{column.sql(DIALECT)}" does not exist',
        where=where,
        why=_HIDDEN if name.lower().startswith("__st_") else message,
        fix="write GROUP BY ALL without another key"
        if name.lower() == "all" and isinstance(column.parent, exp.Group)
        else _near(column, sources),
    )


def _near(column: exp.Column, sources: Mapping[str, Columns]) -> str:
    """The columns with the nearest names, of the tables that the column may belong to."""
    seen = _visible(column, sources)
    known = {each.lower(): table for table, columns in seen.items() for each in columns}
    near = difflib.get_close_matches(column.name.lower(), sorted(known), n=3)
    if near:
        meant = (f"{known[each]}.{each}" if column.table else each for each in near)
        return f"did you mean {' or '.join(meant)}?"
    few = 0 < len(known) <= _FEW
    return f"use one of {', '.join(known)}" if few else "use a column of the tables in FROM"


def _visible(column: exp.Column, sources: Mapping[str, Columns]) -> dict[str, list[str]]:
    """The columns of each table in FROM, and in that of the queries around; of all sources if the
    column stands in no query."""
    found: dict[str, list[str]] = {}
    for select in selects_around(column):
        found = {**dict(columns_in_from(select, sources)), **found}
    return found or {name: list(columns) for name, columns in sources.items()}


def _written(text: Text, name: exp.Expr) -> exp.Column | None:
    """The column as the author wrote it: of several with its name the one that is meant."""
    named = [e for e in text.tree.find_all(exp.Column) if e.name.lower() == name.name.lower()]
    word = name.parts[-1] if isinstance(name, exp.Column) else name
    same = [each for each in named if each.this.meta.get("start") == word.meta.get("start")]
    return next(iter(same or named), None)


def _holders(column: exp.Column, sources: Mapping[str, Columns]) -> list[str]:
    """The tables that have the column, of the nearest FROM around it in which any has it."""
    name = column.name.lower()
    found = (
        [table for table, columns in columns_in_from(select, sources) if name in _lower(columns)]
        for select in selects_around(column)
    )
    return next(filter(None, found), [])


def _lower(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}
