"""What a caller names → a declaration: a table, a path, a view, or any SELECT."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from dagster_streamtables.compiler import View, same_but_case
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable
from dagster_streamtables.runtime.refresh.prepare import with_views

_NAME = re.compile(r"(?P<name>[^\W\d][\w$-]*(\.[^\W\d][\w$-]*){0,3})", re.ASCII)
_BY_PATH = re.compile(r"delta\.`[^`]+`", re.IGNORECASE)
_PLACE = re.compile(r"(?P<place>/|\.{1,2}/|[a-z][a-z0-9+.-]*://).*", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(r"\s*(\(|select\b|with\b|values\b|from\b|table\b|/\*|--)", re.IGNORECASE)


def declared(
    relation: StreamTable | str,
    *,
    dialect: str,
    session_timezone: str,
    views: Iterable[View],
    recompute: bool,
) -> StreamTable:
    """The relation as a declaration, whose rows are those of its query.

    Args:
        relation: A stream table, which is followed as it is stored; the name of a table or a view;
            the path of a Delta table; or a SELECT.
        dialect: The dialect of a SELECT.
        session_timezone: The zone of the days and hours of a SELECT, or of a view.
        views: Queries that it may name like tables.
        recompute: Whether a query that cannot be maintained may be run again and compared.

    Raises:
        RefusedOperation: The text is none of these.
        InvalidDefinition: The query is not valid.
    """
    text = relation.name if isinstance(relation, StreamTable) else relation.strip()
    made = partial(
        StreamTable,
        "relation",
        mode=Mode.AUTO if recompute else Mode.DIFFERENTIAL,
        session_timezone=session_timezone,
    )
    query = query_of(text)
    if query is not None:
        return with_views(made(query), views)
    if not _QUERY.match(text):
        raise RefusedOperation(
            "only a table, a path or a query can be followed",
            why=f'"{text[:80]}" is none of these',
            fix="name a table (mart.revenue), a path (/data/orders), or write a SELECT",
        )
    return with_views(made(text, dialect=dialect), views)


def table_of(text: str, views: Iterable[View]) -> str | None:
    """The table that a text names; None for a view, a path, a query, or the table of a catalog."""
    text = text.strip()
    if not _NAME.fullmatch(text) or text.count(".") > 1:
        return None
    return None if any(same_but_case(view.name, text) for view in views) else text


def query_of(text: str) -> str | None:
    """The query of all columns of a table or a view; None if the text is not its name."""
    if _BY_PATH.fullmatch(text):
        return f"SELECT * FROM {text}"
    if _PLACE.fullmatch(text) and "`" not in text:
        return f"SELECT * FROM delta.`{text}`"
    if _NAME.fullmatch(text):
        quoted = ".".join(f"`{part}`" for part in text.split("."))
        return f"SELECT * FROM {quoted}"
    return None
