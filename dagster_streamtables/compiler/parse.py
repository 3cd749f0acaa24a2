"""Text and the columns of its sources → normalized syntax tree.

After this module every column says which table it belongs to, every star is spelled out, every
expression has the type that could be told, and nothing is left in the tree that the operators
cannot maintain: `refuse` has said no.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import OptimizeError, SchemaError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from dagster_streamtables.compiler.refuse import refuse
from dagster_streamtables.compiler.text import DIALECT, Text, span, table_name
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery, underline

Columns = Mapping[str, str]
"""Column name → type, as Spark writes it (``bigint``, ``decimal(10,2)``)."""


@dataclass(frozen=True)
class Parsed:
    """A normalized query."""

    tree: exp.Query
    names: tuple[str, ...]
    """The output columns, in the case in which the user wrote them."""
    scans: Mapping[str, str]
    """The name that a source has in `tree` → the name that it has in the text."""


def parse(text: Text, sources: Mapping[str, Columns]) -> Parsed:
    """Normalize a query.

    Args:
        text: The query as written.
        sources: For each name in `text.sources`, its columns in order.

    Raises:
        UnsupportedQuery: It holds something that cannot be maintained.
        InvalidDefinition: A column does not exist or is ambiguous, or an output has no name.
    """
    refuse(text)
    names = _output_names(text, sources)
    tree = text.tree.copy()
    scans = _flatten_table_names(tree, text)
    schema = {flat: dict(sources[name]) for flat, name in scans.items()}
    try:
        tree = qualify(tree, schema=schema, dialect=DIALECT, quote_identifiers=False)
        tree = annotate_types(tree, schema=schema, dialect=DIALECT)
    except (OptimizeError, SchemaError) as error:
        raise _unresolved(text, error, sources) from None
    except SqlglotError as error:
        raise InvalidDefinition("the query cannot be analyzed", why=str(error)) from None
    assert isinstance(tree, exp.Query)
    found = tuple(tree.named_selects)
    if len(names) != len(found):
        names = found
    return Parsed(tree, _distinct(names, text), scans)


def _flatten_table_names(tree: exp.Query, text: Text) -> dict[str, str]:
    """Give each source one plain name, so that names of one, two and three parts can meet."""
    flat = {name: f"source_{i}" for i, name in enumerate(text.sources)}
    for table in Text(text.sql, tree).tables():
        name = table_name(table)
        alias = table.alias or table.name
        table.replace(exp.alias_(exp.to_table(flat[name]), alias, table=True, quoted=True))
    return {f: name for name, f in flat.items()}


def _output_names(text: Text, sources: Mapping[str, Columns]) -> tuple[str, ...]:
    """The names of the outputs as written; the tree itself ignores case, as Spark does."""
    select = text.tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    cased = {name.lower(): name for columns in sources.values() for name in columns}
    names: list[str] = []
    for output in select.selects:
        if output.is_star:
            return _names_of_star(text, sources, cased)
        if not isinstance(output, exp.Alias | exp.Column | exp.Dot):
            raise _unnamed(text, output)
        names.append(output.alias_or_name)
    return tuple(names)


def _names_of_star(
    text: Text, sources: Mapping[str, Columns], cased: Mapping[str, str]
) -> tuple[str, ...]:
    tree = text.tree.copy()
    scans = _flatten_table_names(tree, text)
    schema = {flat: dict(sources[name]) for flat, name in scans.items()}
    try:
        tree = qualify(tree, schema=schema, dialect=DIALECT, quote_identifiers=False)
    except SqlglotError:
        return ()
    assert isinstance(tree, exp.Query)
    return tuple(cased.get(name, name) for name in tree.named_selects)


def _unnamed(text: Text, output: exp.Expr) -> InvalidDefinition:
    where = span(output)
    return InvalidDefinition(
        f"an output column has no name: {output.sql(DIALECT)}",
        where=underline(text.sql, *where) if where else "",
        why="the name that Spark would make up cannot be a column of a Delta table",
        fix="give it one with AS",
    )


def _distinct(names: tuple[str, ...], text: Text) -> tuple[str, ...]:
    lowered = [name.lower() for name in names]
    for name in names:
        if lowered.count(name.lower()) > 1:
            raise InvalidDefinition(
                f'two output columns are called "{name}"',
                why="the columns of a table have different names, in whatever case",
                fix="give each its own name with AS",
            )
        if name.lower().startswith("__st_") or name.lower() == "__weight":
            raise UnsupportedQuery(
                f'an output column is called "{name}"',
                why="names that begin so hold the table's own state",
                fix="give it another name with AS",
            )
    return names


def _unresolved(
    text: Text, error: SqlglotError, sources: Mapping[str, Columns]
) -> InvalidDefinition:
    """The error of an unknown or ambiguous column, with its place and the nearest names."""
    message = str(error)
    for column in text.tree.find_all(exp.Column):
        if f"'{column.name}'".lower() in message.lower():
            known = [name for columns in sources.values() for name in columns]
            near = difflib.get_close_matches(column.name, known, n=3)
            where = span(column)
            return InvalidDefinition(
                f'column "{column.sql(DIALECT)}" '
                + ("is ambiguous" if "mbiguous" in message else "does not exist"),
                where=underline(text.sql, *where) if where else "",
                why=message.split(". Line")[0],
                fix=f"did you mean {' or '.join(near)}?" if near else "name a column of the tables",
            )
    return InvalidDefinition("the query cannot be resolved", why=message)
