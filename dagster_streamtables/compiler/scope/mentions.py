"""What a mention of a column means to a FROM clause, and to those of the queries around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from dagster_streamtables.compiler.scope.from_columns import (
    FromColumn,
    FromColumns,
    ambiguous,
    is_bound,
)
from dagster_streamtables.compiler.scope.scopes import Scopes
from dagster_streamtables.compiler.text.pipes import number_of
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.table_mentions import own_aliases

_QUERIES = (exp.Select, exp.SetOperation)


def mentions(part: exp.Expr | None, *until: type[exp.Expr]) -> list[exp.Column]:
    """The columns in a part of a SELECT, as they are written, without stars and resolved ones, and
    without those of queries and of some other nodes below it."""
    if not isinstance(part, exp.Expr):
        return []
    ends = (*_QUERIES, *until)
    found = part.walk(bfs=False, prune=lambda each: each is not part and isinstance(each, ends))
    columns = (each for each in found if isinstance(each, exp.Column) and not is_bound(each))
    return [each for each in columns if not isinstance(each.this, exp.Star)]


def among(columns: FromColumns, mention: exp.Column) -> exp.Expr | None:
    """The meaning among some columns; None without one. To mean several is refused."""
    number = number_of(mention)
    if number is not None:
        return copy_with_position(columns.at(number, mention).value, mention.this)
    first, *others = mention.parts
    if others:
        found = columns.find(others[0].name, first.name)
        if found:
            _require_one(found, mention)
            return with_fields(copy_with_position(found[0].value, others[0], first), others[1:])
        if first.name.lower() in (each.alias.lower() for each in columns.unknown):
            column = exp.Column(this=_quote(others[0]), table=_quote(first))
            return with_fields(column, others[1:])
    found = columns.find(first.name)
    if found:
        _require_one(found, mention)
        return with_fields(copy_with_position(found[0].value, first), others)
    if others and (found := columns.find_hidden_columns(others[0].name, first.name)):
        # Spark looks for them last: a.k is the field k of a column a before it is such a column.
        return with_fields(copy_with_position(found[0].value, others[0], first), others[1:])
    if len(columns.unknown) == 1:
        table = exp.to_identifier(columns.unknown[0].alias, quoted=True)
        return with_fields(exp.Column(this=_quote(first), table=table), others)
    return None


def _require_one(found: Sequence[FromColumn], mention: exp.Column) -> None:
    if len(found) > 1:
        raise ambiguous(mention, [each.table or "the query" for each in found])


def copy_with_position(value: exp.Expr, name: exp.Expr, table: exp.Expr | None = None) -> exp.Expr:
    """A copy with the position of the author's words for it."""
    copy = value.copy()
    for identifier in copy.find_all(exp.Identifier):
        word = table if identifier.arg_key == "table" else name
        if word is not None:
            identifier.meta.update(word.meta)
    return copy


def _quote(name: exp.Expr) -> exp.Expr:
    copy = name.copy()
    copy.set("quoted", True)
    return copy


def with_fields(value: exp.Expr, fields: Sequence[exp.Expr]) -> exp.Expr:
    """``value.x.y``"""
    for field in fields:
        value = exp.Dot(this=value, expression=field.copy())
    return value


def of_queries_around(mention: exp.Column, select: exp.Select, scopes: Scopes) -> exp.Expr | None:
    """The meaning in the nearest query around a SELECT in which the mention has one.

    Raises:
        Refusal: It means several, or a table in between has the alias of the one that is meant.
    """
    hiding = {each.lower() for each in own_aliases(select)}
    for around, columns in levels_around(select, scopes):
        found = among(columns, mention)
        if found is not None:
            tables = {each.table.lower() for each in found.find_all(exp.Column)}
            for table in tables & hiding:
                raise Refusal(
                    mention,
                    f'two tables are called "{table}", one of them in a subquery',
                    why=f'"{mention.name}" is a column of the outer one, which the inner one hides',
                    fix="give one of them another alias",
                )
            return found
        hiding |= {each.lower() for each in own_aliases(around)}
    return None


def levels_around(select: exp.Select, scopes: Scopes) -> Iterator[tuple[exp.Select, FromColumns]]:
    """The queries around a SELECT whose rows it sees, from the inside out, and their columns."""
    here: exp.Expr = select
    path = list[exp.Expr]()
    while here.parent is not None:
        path.append(here)
        here = here.parent
        if isinstance(here, exp.Select):
            columns = _visible_columns(path, here, scopes)
            path = []
            if columns is not None:
                yield here, columns


def _visible_columns(
    path: list[exp.Expr], around: exp.Select, scopes: Scopes
) -> FromColumns | None:
    """The columns of a query around that a path from one inside it sees; None if it sees none."""
    for node, inside in zip(path[1:], path[:-1], strict=True):
        if isinstance(node, exp.Lateral):
            join = node.parent if isinstance(node.parent, exp.Join) else node
            return scopes.visible_to(join)
        if isinstance(node, exp.Join) and inside.arg_key == "on":
            return scopes.visible_to(node, both=True)
    if path[-1].arg_key in ("with_", "from_", "joins"):
        return None
    return scopes.columns(around)
