"""The error for a name that the qualifier does not find, or finds in several tables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from sqlglot import exp

from dagster_streamtables.compiler.scope.columns_in_from import (
    Columns,
    columns_in_from,
    selects_around,
)
from dagster_streamtables.compiler.scope.outer_columns import TOO_EARLY
from dagster_streamtables.compiler.text.places import place, place_of_word
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.errors import InvalidDefinition

_FEW = 12
_HIDDEN = "columns whose names begin with __st_ are the state of a stream table: no query sees them"


def unresolved(text: Text, said: str, sources: Mapping[str, Columns]) -> InvalidDefinition:
    """What is wrong with a name, with its position and the nearest names.

    Args:
        text: The query.
        said: What the qualifier said, with the line and the column where it knows them.
        sources: The columns of each table that the query reads.
    """
    message = said.split(". Line")[0]
    quoted = re.search(r"'([^']+)'|: (\S+)$", message)
    name = (quoted[1] or quoted[2]).lower() if quoted else ""
    if "Alias" in message:
        what, fix = f'two tables are called "{name}"', "give one of them another alias"
    elif TOO_EARLY in message:
        what = f'column "{name}" does not exist'
        fix = "repeat its expression in WHERE, or filter around: SELECT * FROM (…) WHERE …"
    elif "output column" in message:
        what, fix = (
            f"there is no output column {name}",
            "write the number of a column of the SELECT list, or its name",
        )
    else:
        written = _written(text, said, name)
        if written is not None:
            return _of_column(written, message, text, sources)
        what, fix = f'column "{name}" does not exist', _near(exp.column(name), sources)
    meant = _written(text, said, name) if TOO_EARLY in message else None
    where = place(meant, text) if meant else place_of_word(name, text) or text.shown()
    return InvalidDefinition(what, where=where, why=message, fix=fix)


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


def _written(text: Text, said: str, name: str) -> exp.Column | None:
    """The column as the author wrote it: of several with its name the one that is meant."""
    named = [each for each in text.tree.find_all(exp.Column) if each.name.lower() == name]
    at = re.search(r"Line: (\d+), Col: (\d+)", said)
    meant = [int(at[1]), int(at[2])] if at else []
    same = [each for each in named if [each.this.meta.get(k) for k in ("line", "col")] == meant]
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
