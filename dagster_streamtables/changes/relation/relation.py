"""`Relation`: a query over sources, to be read at a frontier or between two."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.changes.relation import frontier as frontiers
from dagster_streamtables.changes.relation.frontier import Frontier
from dagster_streamtables.changes.relation.query_reading import QueryReading, RecomputedReading
from dagster_streamtables.changes.relation.reading import Order, Reading, Span, Times
from dagster_streamtables.changes.relation.table_reading import TableReading
from dagster_streamtables.compiler import QueryPlan, with_one_answer
from dagster_streamtables.errors import LostRelation, UnsupportedQuery
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.only_spark import is_utf8
from dagster_streamtables.runtime.errors.tables import no_utf8
from dagster_streamtables.runtime.model.definition import compiled, used_columns, visible
from dagster_streamtables.runtime.model.source import Source
from dagster_streamtables.runtime.model.state import state_of
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable
from dagster_streamtables.runtime.refresh.align import TableLookup, aligned

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Relation:
    """What is followed. Its columns are those of the version at which it was first read."""

    access: Access
    given: str
    """As the caller wrote it."""
    normal: str
    """Its query in a normal form."""
    reading: Reading
    refusal: str = ""
    """Why its change cannot be computed, so that the query is run again; empty if it can."""

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self.reading.first)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, without the weight."""
        return self.reading.schema

    @property
    def timed(self) -> bool:
        """Whether its rows depend on the current time."""
        return self.reading.timed

    @cached_property
    def fingerprint(self) -> str:
        """Changes if another relation is followed, or other columns of the same one. In which order
        a source has them does not matter: they can be moved."""
        first = self.reading.first
        columns = [(name, *sorted(source.columns.items())) for name, source in first.items()]
        zone = self.reading.declaration.session_timezone
        told = "\x00".join([self.normal, zone, *map(repr, columns)])
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def followed(self) -> dict[str, list[str]]:
        """Source → its columns that the rows come from."""
        return {name: list(source.columns) for name, source in self.reading.first.items()}

    def as_of(self, at: Frontier) -> Relation:
        """The same query, with the columns that its sources had at a frontier.

        Raises:
            InvalidDefinition: One of them did not exist then.
            UnsupportedQuery: The change of the query cannot be computed with them.
        """
        first = self.reading.first
        if all(at[name].columns == source.log.columns for name, source in first.items()):
            return self
        return relation_of(self.access, self.reading.declaration, self.given, at)

    def newest(self, since: Frontier | None = None) -> dict[str, TableLog]:
        """The newest versions of the sources that agree with one another.

        Args:
            since: The frontier that was read last; the result is never older.

        Raises:
            MissingSource: A source does not exist.
            LostRelation: One was dropped since.
            HistoryUnavailable: One has another history since.
        """
        catalog = self.access.catalog
        for name, log in (since or {}).items():
            frontiers.require_same_history(name, catalog.newest(name), log.snapshot)
        return self.agreeing(frontiers.newest(catalog, self.sources), since)

    def agreeing(self, logs: Frontier, since: Frontier | None) -> dict[str, TableLog]:
        """The newest versions up to `logs` that agree; see `aligned`."""
        catalog = self.access.catalog
        consumed = None if since is None else {name: log.version for name, log in since.items()}
        lookup = TableLookup(catalog.newest, catalog.at, state_of)
        return dict(aligned(logs, consumed, lookup).logs or since or logs)

    def snapshot(self, at: Frontier, now: str, order: Order = ()) -> Iterator[pa.Table]:
        """All rows at a frontier, with their number of copies as weight; see `Reading`.

        Args:
            at: The frontier.
            now: The current time in the query, in ISO 8601.
            order: The order of the rows, if they come in more than one table.

        Raises:
            SourceProblem: A text is no UTF-8.
        """
        return self._legible(self.reading.snapshot(self._sources(at), now, order))

    def change(
        self, before: Frontier, after: Frontier, times: Times, order: Order = ()
    ) -> Iterator[pa.Table]:
        """What changed between two frontiers; see `Reading`.

        Its cost is the change and what it touches. Where a column was defined anew in between, all
        rows of both ends are compared: the log's files would not tell its old values.

        Raises:
            LostRelation: A column was dropped, or has another type.
            SourceProblem: A text is no UTF-8.
        """
        span = Span(self._sources(before), self._sources(after), times)
        self._require_columns(after)
        redefined = any(s.encodings != span.before[n].encodings for n, s in span.after.items())
        if redefined:
            return self._legible(self.reading.difference(span, order, redefined=True))
        return self._legible(self.reading.change(span, order))

    def _legible(self, rows: Iterator[pa.Table]) -> Iterator[pa.Table]:
        for part in rows:
            if not is_utf8(part):
                raise no_utf8(self.given)
            yield part

    def _sources(self, at: Frontier) -> dict[str, Source]:
        first = self.reading.first
        return {name: Source(name, at[name], source.columns) for name, source in first.items()}

    def _require_columns(self, at: Frontier) -> None:
        for name, source in self.reading.first.items():
            there = at[name].columns
            for column, type_ in source.columns.items():
                if there.get(column) == type_:
                    continue
                happened = f"is {there[column]} now" if column in there else "was dropped"
                raise LostRelation(
                    f'column "{column}" of "{name}" {happened}',
                    where=f"{at[name].location}, version {at[name].version}",
                    why=f"whoever follows the table reads that column, as {type_}",
                    fix="follow the table again, with a snapshot",
                )


def relation_of(
    access: Access,
    declaration: StreamTable,
    given: str,
    at: Frontier,
    followed: Mapping[str, Sequence[str]] | None = None,
) -> Relation:
    """The relation of a declaration.

    Args:
        access: How its tables are read.
        declaration: The query. In mode AUTO it is run again if its change cannot be computed.
        given: As the caller wrote it.
        at: The sources at the version whose columns are followed.
        followed: Source → which of its columns; None for all. Those that were added after a
            subscription began are not part of it.

    Raises:
        InvalidDefinition: The query is not valid.
        UnsupportedQuery: Its change cannot be computed, and it must not be run again.
    """
    columns = {
        name: _among(visible(log.columns), (followed or {}).get(name)) for name, log in at.items()
    }
    text = declaration.text(columns)
    try:
        plan = compiled(declaration, text, columns)
    except UnsupportedQuery as error:
        if declaration.mode is Mode.DIFFERENTIAL:
            raise
        first = {name: Source(name, log, columns[name]) for name, log in at.items()}
        again = with_one_answer(text, columns)
        reading = RecomputedReading(access, declaration, first, again)
        return Relation(access, given, text.former_normal, reading, error.what)
    first = {name: Source(name, log, used_columns(plan, name, log)) for name, log in at.items()}
    return Relation(access, given, text.former_normal, _reading(access, declaration, first, plan))


def _among(columns: Mapping[str, str], followed: Sequence[str] | None) -> dict[str, str]:
    """In the order in which they were followed, that of the rows that were given out before."""
    # A query that uses no column of a source, as COUNT(*) does, does not tell new ones apart.
    if not followed:
        return dict(columns)
    return {name: columns[name] for name in followed if name in columns}


def _reading(
    access: Access, declaration: StreamTable, first: Mapping[str, Source], plan: QueryPlan
) -> Reading:
    names = tuple(plan.schema)
    if plan.is_table and all(set(names) <= source.columns.keys() for source in first.values()):
        return TableReading(access, declaration, first, names)
    return QueryReading(access, declaration, first, plan.text, plan)
