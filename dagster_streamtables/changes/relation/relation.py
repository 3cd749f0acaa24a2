"""`SubscriptionRelation`: a query over sources, to be followed from one frontier to the next.

A caller names a table, a path, a view, or any SELECT.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from dagster_streamtables.changes.relation.frontier import Frontier
from dagster_streamtables.changes.relation.query_reading import QueryReading, RecomputeReading
from dagster_streamtables.changes.relation.relation_reading import (
    RelationRows,
    Settings,
    TableReading,
    reading_of_table,
)
from dagster_streamtables.compiler import View, same_but_case, tokenize_query, with_one_answer
from dagster_streamtables.errors import RefusedOperation, UnsupportedQuery
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.definition import compile_table, used_columns, visible_types
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable
from dagster_streamtables.runtime.model.table_catalog import Source
from dagster_streamtables.runtime.model.table_state import state_of
from dagster_streamtables.runtime.refresh.alignment import TableLookup, align
from dagster_streamtables.runtime.refresh.refresh_job import with_views

_NAME = re.compile(r"[^\W\d][\w$-]*(\.[^\W\d][\w$-]*){0,3}", re.ASCII)
_BY_PATH = re.compile(r"delta\.`[^`]+`", re.IGNORECASE)
_PLACE = re.compile(r"(/|\.{1,2}/|[a-z][a-z0-9+.-]*://).*", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(r"\s*(\(|select\b|with\b|values\b|from\b|table\b|/\*|--)", re.IGNORECASE)


def declare_relation(
    relation: StreamTable | str,
    *,
    dialect: str,
    session_timezone: str,
    views: Iterable[View],
    recompute: bool,
) -> StreamTable:
    """The relation as a declaration with a query of the same rows.

    It is a stream table, which is followed as it is stored; the name of a table or a view; the path
    of a Delta table; or a SELECT, which is in the dialect. With `recompute`, a query that cannot be
    maintained may be run again and compared.

    Raises:
        RefusedOperation: The text is none of these.
        InvalidDefinition: The query is not valid.
    """
    text = relation.name if isinstance(relation, StreamTable) else relation.strip()
    query = query_of(text)
    if query is None and not _QUERY.match(text):
        raise RefusedOperation(
            "only a table, a path or a query can be followed",
            why=f'"{text[:80]}" is none of these',
            fix="name a table (mart.revenue), a path (/data/orders), or write a SELECT",
        )
    declaration = StreamTable(
        "relation",
        query or text,
        mode=Mode.AUTO if recompute else Mode.DIFFERENTIAL,
        dialect=dialect if query is None else "spark",
        session_timezone=session_timezone,
    )
    return with_views(declaration, views)


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


@dataclass(frozen=True)
class SubscriptionRelation(RelationRows):
    """What is followed. Its columns are those of the version at which it was first read."""

    access: Access
    normal: str
    """Its query in a normal form."""
    over: Callable[[Frontier], SubscriptionRelation]
    """The same query, with the columns that its sources have at a frontier."""
    refusal: str = ""
    """Why its change cannot be computed, so that the query is run again; empty if it can."""

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self.reading.first)

    @property
    def is_time_dependent(self) -> bool:
        return self.reading.is_time_dependent

    @cached_property
    def fingerprint(self) -> str:
        """Changes if another relation is followed, or other columns of the same one. The order of
        columns in a source does not matter: they can be moved."""
        first = self.reading.first
        columns = [(name, *sorted(source.columns.items())) for name, source in first.items()]
        zone = self.reading.settings.session_timezone
        told = "\x00".join([self.normal, zone, *map(repr, columns)])
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def source_columns(self) -> dict[str, list[str]]:
        """Source → its columns that the relation reads."""
        return {name: list(source.columns) for name, source in self.reading.first.items()}

    def as_of(self, at: Frontier) -> SubscriptionRelation:
        """The same query, with the columns that its sources had at a frontier.

        Raises:
            InvalidDefinition: One of them did not exist then.
            UnsupportedQuery: The change of the query cannot be computed with them.
        """
        first = self.reading.first
        if all(at[name].columns == source.log.columns for name, source in first.items()):
            return self
        return self.over(at)

    def agreeing(self, logs: Frontier, since: Frontier | None) -> dict[str, TableLog]:
        """The newest versions up to `logs` that agree; see `alignment`."""
        catalog = self.access.catalog
        consumed = None if since is None else {name: log.version for name, log in since.items()}
        lookup = TableLookup(catalog.newest, catalog.at, state_of)
        return dict(align(logs, consumed, lookup).logs or since or logs)


def relation_of_table(
    access: Access, given: str, at: Frontier, followed: Mapping[str, Sequence[str]] | None = None
) -> SubscriptionRelation:
    """The relation of one stored table; the arguments are those of `relation_of`.

    Raises:
        UnsupportedQuery: A column has a reserved name.
    """
    [(name, log)] = at.items()
    columns = tuple(_among(visible_types(log.columns), (followed or {}).get(name)))
    reading = reading_of_table(access, name, log, columns)
    query = query_of(name)
    assert query is not None, "it is the name of a table"
    over = partial(relation_of_table, access, given)
    return SubscriptionRelation(given, reading, access, tokenize_query(query).former_normal, over)


def relation_of(
    access: Access,
    declaration: StreamTable,
    given: str,
    at: Frontier,
    followed: Mapping[str, Sequence[str]] | None = None,
) -> SubscriptionRelation:
    """The relation of a declaration, which is run again in mode AUTO if its change cannot be
    computed. `given` is how the caller wrote it.

    `at` has the sources at the version whose columns are followed; `followed`: source → its
    followed columns, without those added after the subscription began; None for all.

    Raises:
        InvalidDefinition: The query is not valid.
        UnsupportedQuery: Its change cannot be computed, and it must not be run again.
    """
    columns = {
        name: _among(visible_types(log.columns), (followed or {}).get(name))
        for name, log in at.items()
    }
    text = declaration.text(columns)
    over = partial(relation_of, access, declaration, given)
    settings = Settings(declaration.session_timezone, declaration.recursion)
    try:
        plan = compile_table(declaration, text, columns)
    except UnsupportedQuery as error:
        if declaration.mode is Mode.DIFFERENTIAL:
            raise
        first = {name: Source(name, log, columns[name]) for name, log in at.items()}
        reading = RecomputeReading(access, settings, first, with_one_answer(text, columns))
        return SubscriptionRelation(
            given, reading, access, text.former_normal, over, refusal=error.what
        )
    first = {name: Source(name, log, used_columns(plan, name, log)) for name, log in at.items()}
    names = tuple(plan.schema)
    if plan.is_table and all(set(names) <= source.columns.keys() for source in first.values()):
        reading = TableReading(access, settings, first, names)
    else:
        reading = QueryReading(access, settings, first, plan.text, plan)
    return SubscriptionRelation(given, reading, access, text.former_normal, over)


def _among(columns: Mapping[str, str], followed: Sequence[str] | None) -> dict[str, str]:
    """In the order in which they were followed: that of the rows that were given out before."""
    # A query that uses no column of a source, as COUNT(*) does, does not tell new ones apart.
    if not followed:
        return dict(columns)
    return {name: columns[name] for name in followed if name in columns}
