"""The error for a name that the qualifier does not find, or finds in several tables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from sqlglot import exp

from dagster_streamtables.compiler.scope.outer_columns import TOO_EARLY
from dagster_streamtables.compiler.text.aliases import is_group
from dagster_streamtables.compiler.text.places import place, place_of_word
from dagster_streamtables.compiler.text.query_text import Text, table_name
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.errors import InvalidDefinition

Columns = Mapping[str, str]
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
        what, fix = f"there is no output column {name}", "count the columns of the SELECT list"
    else:
        written = _written(text, said, name)
        if written is not None:
            return _of_column(written, message, text, sources)
        what, fix = f'column "{name}" does not exist', _near(name, sources)
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
        fix=_near(name.lower(), sources),
    )


def _near(name: str, sources: Mapping[str, Columns]) -> str:
    known = {each for columns in sources.values() for each in columns}
    near = difflib.get_close_matches(name, sorted(known), n=3)
    return f"did you mean {' or '.join(near)}?" if near else "use a column of the tables"


def _written(text: Text, said: str, name: str) -> exp.Column | None:
    """The column as the author wrote it: of several with its name the one that is meant."""
    named = [each for each in text.tree.find_all(exp.Column) if each.name.lower() == name]
    at = re.search(r"Line: (\d+), Col: (\d+)", said)
    meant = [int(at[1]), int(at[2])] if at else []
    same = [each for each in named if [each.this.meta.get(k) for k in ("line", "col")] == meant]
    return next(iter(same or named), None)


def _holders(column: exp.Column, sources: Mapping[str, Columns]) -> list[str]:
    """The tables that have the column, of the nearest FROM around it in which any has it."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        name = column.name.lower()
        found = [
            relation.alias_or_name
            for relation in _relations(select)
            if name in map(str.lower, _columns(relation, sources))
        ]
        if found:
            return found
        select = select.find_ancestor(exp.Select)
    return []


def _relations(select: exp.Select) -> Iterator[exp.Expr]:
    clause = select.args.get("from_")
    if clause is not None:
        yield from _within(clause.this)
    for join in select.args.get("joins") or []:
        yield from _within(join.this)


def _within(relation: exp.Expr) -> Iterator[exp.Expr]:
    if is_group(relation):
        yield from _within(relation.this)
    else:
        yield relation
    for join in relation.args.get("joins") or []:
        yield from _within(join.this)


def _columns(relation: exp.Expr, sources: Mapping[str, Columns]) -> list[str]:
    if relation.alias_column_names:
        return relation.alias_column_names
    if isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Query):
        return relation.this.named_selects
    if not isinstance(relation, exp.Table):
        return []
    name = table_name(relation).lower()
    for cte in relation.root().find_all(exp.CTE):
        if cte.alias.lower() == name:
            return cte.alias_column_names or cte.this.named_selects
    return next((list(columns) for each, columns in sources.items() if each.lower() == name), [])
