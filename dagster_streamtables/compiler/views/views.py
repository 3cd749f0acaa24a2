"""Views: named queries without a table, inlined into the query that reads them.

The name of a view is replaced by the view's text in parentheses, where the parser found it; the
rest stays as written. Common table expressions are renamed where inlining would change their
meaning: those of a view, because the query may have one of the same name, and those of the query
that are named like a table that a view reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from dagster_streamtables.compiler.dialect import check_dialect, tables_of, translation
from dagster_streamtables.compiler.plan.compile import compile_query
from dagster_streamtables.compiler.text.query_text import (
    Text,
    rename_definitions,
    replace_mention,
    tokenize_query,
)
from dagster_streamtables.compiler.text.sqlglot_dialects import type_text
from dagster_streamtables.compiler.text.table_mentions import Mention
from dagster_streamtables.compiler.text.token_edits import Edit
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.setting import INTERNAL, Display, Normalizer, Range, normalize_fields


@dataclass(frozen=True)
class View:
    """A named query: queries that read the name read its result.

    Nothing is stored under the name. Changing the query changes every stream table that reads the
    view, directly or through other views.

    Raises:
        InvalidDefinition: The query is empty, or there is no such dialect.
    """

    name: str
    """As queries say it."""
    query: str
    """One SELECT."""
    columns: Annotated[
        tuple[str, ...] | None, Display((("day", "amount"),), default="those of the query")
    ] = None
    """The names of its columns."""
    dialect: Annotated[str, Normalizer(check_dialect), Display(("spark", "postgres", "duckdb"))] = (
        "spark"
    )
    """The SQL dialect of the query."""
    description: str = ""
    """Shown with the tables that read the view."""
    file: Annotated[str | None, INTERNAL] = None
    """The file that the view was read from."""
    line: Annotated[int, Range(1), INTERNAL] = 1
    """The line of `file` in which the query begins."""

    def __post_init__(self) -> None:
        try:
            normalize_fields(self)
        except InvalidDefinition as error:
            raise about_view(error, self) from None
        if not self.query.strip().rstrip(";").strip():
            raise about_view(InvalidDefinition("the query is empty", fix="write one SELECT"), self)


Views = Mapping[str, View]
"""Name in queries → view."""


class CircularViews(InvalidDefinition):
    """Views read one another in a cycle."""


def about_view(error: StreamTablesError, view: View) -> StreamTablesError:
    """The error, naming the view that contains it."""
    if isinstance(error, CircularViews) or error.what.startswith('view "'):
        return error
    what = f'view "{view.name}": {error.what}'
    return error.with_parts(what=what).within(view.file or "", view.line)


def sources_through(query: str, dialect: str, views: Views) -> tuple[str, ...]:
    """The tables that a query reads, directly or through views: distinct, in order of appearance.

    Raises:
        InvalidDefinition: A text is not a query of its dialect, or views read one another in a
            cycle.
    """
    reads = _reads(tables_of(query, dialect), views, ())
    return tuple(dict.fromkeys(name for name, view in reads if view is None))


def views_of(query: str, dialect: str, views: Views) -> tuple[View, ...]:
    """The views that a query reads, directly or through others.

    Raises:
        InvalidDefinition: As in `sources_through`.
    """
    reads = _reads(tables_of(query, dialect), views, ())
    return tuple({name: view for name, view in reads if view is not None}.values())


def refuse_cycle(name: str, path: tuple[str, ...]) -> None:
    """Require that a view is not among those through which it is read, the first one first."""
    if name in path:
        raise CircularViews(
            "the views read one another in a cycle",
            where=" reads ".join([*path[path.index(name) :], name]),
            why="views are replaced by their queries, which would never end here",
            fix="remove one of these views from one of these queries",
        )


def _reads(
    names: tuple[str, ...], views: Views, path: tuple[str, ...]
) -> Iterator[tuple[str, View | None]]:
    """The tables and views that a query reads, directly or through views."""
    for name in names:
        yield name, (view := views.get(name))
        if view is None:
            continue
        refuse_cycle(name, path)
        try:
            inner = tables_of(view.query, view.dialect)
        except InvalidDefinition as error:
            raise about_view(error, view) from None
        yield from _reads(inner, views, (*path, name))


Columns = Mapping[str, Mapping[str, str]]
_READ_AS_IT_IS = {"VERSION", "TIMESTAMP", "FOR", "TABLESAMPLE", "PIVOT", "UNPIVOT", "WITH"}


def text_of(
    query: str, dialect: str, views: Views | None = None, columns: Columns | None = None
) -> Text:
    """A query as one text in Spark SQL, with the queries of views for their names.

    >>> print(text_of("SELECT a FROM v", "spark", {"v": View("v", "SELECT a FROM t")}).sql)
    SELECT a FROM (SELECT a FROM t
    ) AS `v`

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


def blame_view(error: InvalidDefinition, views: Views, columns: Columns) -> StreamTablesError:
    """The error of a query, naming the view that fails for the same reason, if any."""
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
        edits, captured = list[Edit](), set[str]()
        for table in text.source_mentions:
            if (view := self.views.get(table.name)) is not None:
                edits += self._mention(table, view, text, path)
                sources = sources_through(view.query, view.dialect, self.views)
                captured |= {name.lower() for name in sources}
        # All definitions of a view, since the query may have one of the same name.
        renamed = [e for e in text.definitions if path or e.name.lower() in captured]
        names = {each: f"`{each.name}__{next(self.numbers)}`" for each in renamed}
        return text.with_edits([*edits, *rename_definitions(text, names)])

    def _mention(
        self, table: Mention, view: View, text: Text, path: tuple[str, ...]
    ) -> Iterator[Edit]:
        refuse_cycle(view.name, path)
        if table.before in _READ_AS_IT_IS:
            raise InvalidDefinition(
                f'{table.before} after the view "{view.name}"',
                where=text.locate(table.start, table.stop - 1),
                why="its name is replaced by its query",
                fix=f"remove {table.before}, or apply it to (SELECT * FROM {view.name})",
            )
        # The line break ends a trailing comment of the view's text.
        sql = f"({self._text(view, path).sql}\n)"
        if view.columns is not None:
            names = ", ".join(f"`{name}`" for name in view.columns)
            sql = f"(SELECT * FROM {sql} AS `{table.last}`({names}))"
        return replace_mention(table, sql)

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


def respell_tables(query: str, names: Mapping[str, str]) -> str:
    """A query in Spark SQL with other letter case in the names of its tables.

    The text keeps its length, so that errors show the same places.

    >>> respell_tables("SELECT T2.id FROM Sales . `T2` AS t, T2", {"Sales.T2": "sales.t2"})
    'SELECT T2.id FROM sales . `t2` AS t, T2'

    Raises:
        InvalidDefinition: The text is not one query.
    """
    text = tokenize_query(query)
    edits = [
        (each.start, each.stop, _in_case(text.sql[each.start : each.stop], names[each.name]))
        for each in text.source_mentions
        if each.name in names
    ]
    return text.with_edits(edits).sql


def over_another(query: str, table: str, other: str) -> str:
    """A query in Spark SQL that names another table instead of one, with the same meaning over it.

    Unchanged if a column may be qualified by the last part of either name, or if WITH defines the
    other name: then the text over the other table can mean something else.

    >>> over_another("SELECT t.id FROM mart.a AS t", "mart.a", "mart.b")
    'SELECT t.id FROM mart.b AS t'
    >>> over_another("SELECT a.id FROM mart.a", "mart.a", "mart.b")
    'SELECT a.id FROM mart.a'

    Raises:
        InvalidDefinition: The text is not one query.
    """
    text = tokenize_query(query)
    found = [each for each in text.source_mentions if each.name == table]
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
    meant = [other if each.name == table else each.name for each in text.source_mentions]
    return made.sql if [each.name for each in made.source_mentions] == meant else text.sql


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
