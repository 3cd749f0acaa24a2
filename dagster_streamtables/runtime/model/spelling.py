"""Stream tables whose queries spell the names of tables in another case than the tables."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from dagster_streamtables.compiler import View, over_another, respelled, same_but_case
from dagster_streamtables.runtime.errors.tables import several_tables
from dagster_streamtables.runtime.model.stream_table import StreamTable


def as_spelled(table: StreamTable, spelled: Callable[[str], str]) -> StreamTable:
    """The declaration with the names of its sources as their tables are called.

    Only queries and views in Spark SQL: other dialects have rules of their own for case.

    Args:
        table: The declaration.
        spelled: A name in a query → the name of its table.

    Raises:
        InvalidDefinition: A name fits several tables, or the text is not a query.
    """
    names = {name: spelled(name) for name in table.sources}
    names = {name: meant for name, meant in names.items() if name != meant}
    if not names:
        return table
    views = tuple(_view(each, names) for each in table.views)
    query = respelled(table.query, names) if table.dialect == "spark" else table.query
    return replace(table, query=query, views=views)


def _view(view: View, names: dict[str, str]) -> View:
    return replace(view, query=respelled(view.query, names)) if view.dialect == "spark" else view


def over_another_source(table: StreamTable, source: str, other: str) -> StreamTable:
    """The declaration with another source instead of one; see `over_another`.

    Only queries and views in Spark SQL name it.
    """

    def text(query: str, dialect: str) -> str:
        return over_another(query, source, other) if dialect == "spark" else query

    views = tuple(replace(each, query=text(each.query, each.dialect)) for each in table.views)
    return replace(table, query=text(table.query, table.dialect), views=views)


def among(name: str, declared: Collection[str]) -> str | None:
    """The declared table that a name means: itself, or the only one that differs in case.

    Raises:
        InvalidDefinition: Several declared tables differ from it in case only.
    """
    if name in declared:
        return name
    found = sorted(each for each in declared if same_but_case(each, name))
    if len(found) > 1:
        raise several_tables(name, found)
    return found[0] if found else None
