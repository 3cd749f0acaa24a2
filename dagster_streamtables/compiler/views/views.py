"""Views: named queries without a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from dagster_streamtables.compiler.dialect import checked_dialect, tables_of
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.setting import INTERNAL, Normalized, Range, Shown, normalize_fields


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
        tuple[str, ...] | None, Shown((("day", "amount"),), default="those of the query")
    ] = None
    """The names of its columns."""
    dialect: Annotated[str, Normalized(checked_dialect), Shown(("spark", "postgres", "duckdb"))] = (
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
    return error.changed(what=what).within(view.file or "", view.line)


def sources_through(query: str, dialect: str, views: Views) -> tuple[str, ...]:
    """The tables that a query reads, directly or through views: distinct, in order of appearance.

    Raises:
        InvalidDefinition: A text is not a query of its dialect, or views read one another in a
            cycle.
    """
    return tuple(dict.fromkeys(_sources(tables_of(query, dialect), views, ())))


def views_of(query: str, dialect: str, views: Views) -> tuple[View, ...]:
    """The views that a query reads, directly or through others.

    Raises:
        InvalidDefinition: As in `sources_through`.
    """
    found: dict[str, View] = {}
    list(_sources(tables_of(query, dialect), views, (), found))
    return tuple(found.values())


def refuse_cycle(name: str, path: tuple[str, ...]) -> None:
    """
    Args:
        name: A view that is read.
        path: The views through which it is read, the first one first.

    Raises:
        CircularViews: It reads itself through others.
    """
    if name in path:
        raise CircularViews(
            "the views read one another in a cycle",
            where=" reads ".join([*path[path.index(name) :], name]),
            why="views are replaced by their queries, which would never end here",
            fix="remove one of these views from one of these queries",
        )


def _sources(
    names: tuple[str, ...],
    views: Views,
    path: tuple[str, ...],
    found: dict[str, View] | None = None,
) -> Iterator[str]:
    for name in names:
        view = views.get(name)
        if view is None:
            yield name
            continue
        refuse_cycle(name, path)
        if found is not None:
            found[name] = view
        try:
            inner = tables_of(view.query, view.dialect)
        except InvalidDefinition as error:
            raise about_view(error, view) from None
        yield from _sources(inner, views, (*path, name), found)
