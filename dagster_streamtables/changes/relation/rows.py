"""`Rows`: the rows of a relation, at a frontier or between two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.changes.relation.frontier import Frontier
from dagster_streamtables.changes.relation.reading import Order, Reading, Settings, Span, Times
from dagster_streamtables.changes.relation.table_reading import TableReading
from dagster_streamtables.compiler import is_reserved
from dagster_streamtables.errors import LostRelation, UnsupportedQuery
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.only_spark import is_utf8
from dagster_streamtables.runtime.errors.tables import no_utf8
from dagster_streamtables.runtime.model.table_catalog import Source

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Rows:
    given: str
    """The relation, as the caller wrote it."""
    reading: Reading

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, without the weight."""
        return self.reading.schema

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


def rows_of_table(access: Access, name: str, log: TableLog, columns: Sequence[str]) -> Rows:
    """The rows of one stored table.

    Args:
        access: How it is read.
        name: The table.
        log: The table at the version whose columns are read.
        columns: Some of its columns, in any order, spelled as in the log.

    Raises:
        UnsupportedQuery: One of them has a reserved name.
    """
    return Rows(name, reading_of_table(access, name, log, columns))


def reading_of_table(
    access: Access, name: str, log: TableLog, columns: Sequence[str]
) -> TableReading:
    """The arguments and the errors are those of `rows_of_table`."""
    for column in columns:
        if is_reserved(column):
            raise UnsupportedQuery(
                f'the table "{name}" has a column called "{column}"',
                where=log.location,
                why="while changes are read, a column of that name holds something else",
                fix="rename the column, or follow a SELECT of the other columns",
            )
    first = {name: Source(name, log, {n: t for n, t in log.columns.items() if n in columns})}
    return TableReading(access, Settings(), first, tuple(columns))
