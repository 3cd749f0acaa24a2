"""A query → one text in Spark SQL: translated, with its views inlined.

The name of a view is replaced by the view's text in parentheses, where the parser found it; the
rest stays as written. Common table expressions are renamed where inlining would change their
meaning: those of a view, because the query may have one of the same name, and those of the query
that are named like a table that a view reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from dagster_streamtables.compiler.dialect import tables_of, translation
from dagster_streamtables.compiler.plan.compile import compile_query
from dagster_streamtables.compiler.text.edits import Edit
from dagster_streamtables.compiler.text.query_text import Text, replace_mention, tokenize_query
from dagster_streamtables.compiler.text.table_mentions import Mention
from dagster_streamtables.compiler.text.types import type_text
from dagster_streamtables.compiler.views.views import (
    View,
    Views,
    about_view,
    refuse_cycle,
    sources_through,
    views_of,
)
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError

Columns = Mapping[str, Mapping[str, str]]
_READ_AS_IT_IS = {"VERSION", "TIMESTAMP", "FOR", "TABLESAMPLE", "PIVOT", "UNPIVOT", "WITH"}


def text_of(
    query: str, dialect: str, views: Views | None = None, columns: Columns | None = None
) -> Text:
    """A query as one text in Spark SQL.

    Args:
        query: As written.
        dialect: The dialect of the query.
        views: The views that it may name.
        columns: For each table that it reads, directly or through views, its columns and their
            types in Spark; needed only if the meaning of another dialect depends on types.

    Raises:
        InvalidDefinition: A text is not a query of its dialect or has no exact translation, or
            views read one another in a cycle.
    """
    inliner = _Inliner(views or {}, columns or {})
    text = inliner.inline_views(inliner.translate_query(query, dialect), ())
    return replace(text, notes=tuple(inliner.notes)) if inliner.notes else text


def inline(text: Text, views: Views) -> Text:
    """The text with each view's name replaced by its query.

    >>> from dagster_streamtables.compiler.text.query_text import read
    >>> print(inline(read("SELECT a FROM v"), {"v": View("v", "SELECT a FROM t")}).sql)
    SELECT a FROM (SELECT a FROM t
    ) AS `v`

    Raises:
        InvalidDefinition: As in `text_of`.
    """
    return _Inliner(views, {}).inline_views(text, ())


def blame_view(error: InvalidDefinition, views: Views, columns: Columns) -> StreamTablesError:
    """The error, naming the view that fails for the same reason, if any.

    Args:
        error: The error of a query that reads the views.
        views: The views that the query may name.
        columns: The columns of the tables that it reads.
    """
    failing: dict[str, InvalidDefinition] = {}
    for view in views.values():
        try:
            compile_query(text_of(view.query, view.dialect, views, columns), columns)
        except InvalidDefinition as inner:
            failing |= {view.name: inner} if inner.what == error.what else {}
    for name, inner in failing.items():
        view = views[name]
        # A view that reads a failing one fails with it.
        if not any(each.name in failing for each in views_of(view.query, view.dialect, views)):
            return about_view(inner, view)
    return error


class _Inliner:
    """Inlines the views of one query, and numbers the names that it generates."""

    def __init__(self, views: Views, columns: Columns) -> None:
        self.views = views
        self.columns = columns
        self.numbers = itertools.count(1)
        self.notes: dict[str, None] = {}

    def translate_query(self, query: str, dialect: str, path: tuple[str, ...] = ()) -> Text:
        if dialect == "spark":
            return tokenize_query(query)
        columns = dict(self.columns)
        for name in tables_of(query, dialect):
            if name in self.views:
                refuse_cycle(name, path)
                columns[name] = self._columns(self.views[name], path)
        sql, notes = translation(query, dialect, columns, stored=not path)
        self.notes |= dict.fromkeys(notes)
        return Text(query, dialect).with_sql(sql)

    def inline_views(self, text: Text, path: tuple[str, ...]) -> Text:
        mentions = [each for each in text.source_mentions if each.name in self.views]
        edits = [edit for table in mentions for edit in self._mention(table, text, path)]
        captured = {name.lower() for table in mentions for name in self._sources(table)}
        edits += self._rename_definitions(text, None if path else captured)
        return text.with_edits(edits)

    def _mention(self, table: Mention, text: Text, path: tuple[str, ...]) -> Iterator[Edit]:
        view = self.views[table.name]
        refuse_cycle(view.name, path)
        if table.before in _READ_AS_IT_IS:
            raise InvalidDefinition(
                f'{table.before} after the view "{view.name}"',
                where=text.locate(table.start, table.stop - 1),
                why="its name is replaced by its query",
                fix=f"remove {table.before}, or apply it to (SELECT * FROM {view.name})",
            )
        return replace_mention(table, self._in_parentheses(view, path))

    def _in_parentheses(self, view: View, path: tuple[str, ...]) -> str:
        # The line break ends a trailing comment of the view's text.
        sql = f"{self._text(view, path).sql}\n"
        if view.columns is None:
            return f"({sql})"
        names = ", ".join(f"`{name}`" for name in view.columns)
        return f"(SELECT * FROM ({sql}) AS `{view.name.rpartition('.')[2]}`({names}))"

    def _text(self, view: View, path: tuple[str, ...]) -> Text:
        within = (*path, view.name)
        try:
            return self.inline_views(self.translate_query(view.query, view.dialect, within), within)
        except InvalidDefinition as error:
            raise about_view(error, view) from None

    def _columns(self, view: View, path: tuple[str, ...]) -> Mapping[str, str]:
        """The columns of a view; empty if it cannot be compiled."""
        try:
            schema = compile_query(self._text(view, path), self.columns).schema
        except StreamTablesError:
            return {}
        types = [type_text(type_) for type_ in schema.values()]
        return dict(zip(view.columns or schema, types, strict=False))

    def _sources(self, table: Mention) -> tuple[str, ...]:
        view = self.views[table.name]
        return sources_through(view.query, view.dialect, self.views)

    def _rename_definitions(self, text: Text, names: set[str] | None) -> Iterator[Edit]:
        """Edits that rename the common table expressions in `names`, or all."""
        mentions, definitions = text.names
        new = {
            each: f"`{each.name}__{next(self.numbers)}`"
            for each in definitions
            if names is None or each.name.lower() in names
        }
        yield from ((each.start, each.stop, name) for each, name in new.items())
        for mention in mentions:
            if mention.definition in new:
                yield from replace_mention(mention, new[mention.definition])
