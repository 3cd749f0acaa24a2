"""`RelationRows`: the rows of a relation, at a frontier or between two.

A stored table is followed by its log and its feed, in this process where few rows changed.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dagster_streamtables.changes.relation.frontier import Frontier
from dagster_streamtables.changes.relation.reading import (
    Order,
    RelationReading,
    Settings,
    Sources,
    Span,
    Times,
    Windows,
)
from dagster_streamtables.compiler import is_reserved_name
from dagster_streamtables.errors import LostRelation, UnsupportedQuery
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.compute.capture import at_version
from dagster_streamtables.runtime.compute.column_types import require_comparable
from dagster_streamtables.runtime.compute.differential import read_change
from dagster_streamtables.runtime.compute.inputs import Inputs
from dagster_streamtables.runtime.compute.netting import add_weight, has_nested, net_rows
from dagster_streamtables.runtime.delta.arrow import plain_schema
from dagster_streamtables.runtime.delta.data_rows import is_utf8, schema_of
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.delta.stored_rows import read_stored_rows
from dagster_streamtables.runtime.delta.types import json_for_variants
from dagster_streamtables.runtime.errors.tables import no_utf8
from dagster_streamtables.runtime.model.table_catalog import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class TableReading(RelationReading):
    """The rows of one stored table, some of its columns in any order."""

    columns: tuple[str, ...]

    def read_schema(self) -> pa.Schema:
        log = self._only(self.first).log
        wanted = set(self.columns)
        require_comparable({f["name"]: f["type"] for f in log.fields if f["name"] in wanted})
        schema = schema_of(log, self.columns)
        return _of_json(log, schema, self.as_json) if self.as_json else schema

    def read_types(self) -> dict[str, str]:
        log = self._only(self.first).log
        return {name: log.columns[name] for name in self.columns}

    def snapshot(self, at: Sources, now: str, order: Order) -> Iterator[pa.Table]:
        with closing(self.inputs(at, Times(now, now))) as inputs:
            here = self._small(at, inputs)
        if here is None:
            yield from super().snapshot(at, now, order)
        elif here.num_rows:
            yield net_rows(add_weight(here, 1))

    def rows(self, at: Sources, now: str, inputs: Inputs) -> DataFrame:
        log = self._only(at).log
        rows = at_version(inputs.spark, log.snapshot.table, log.version)
        return rows.select(*map(spark_name, self.columns))

    def compute_change(
        self, span: Span, windows: Windows, inputs: Inputs, order: Order
    ) -> Iterator[pa.Table]:
        import pyarrow as pa

        source = self._only(span.after)
        named = replace(source, columns={n: source.columns[n] for n in self.columns})
        [window] = windows.values()
        rows: Any = read_change(named, window, inputs)[0]
        if not isinstance(rows, pa.Table):
            yield from self.to_arrow_tables(rows, order)
        elif has_nested(rows.schema) and rows.num_rows:
            yield from self.to_arrow_tables(inputs.relations.to_spark(rows), order)
        elif rows.num_rows:
            yield net_rows(rows)

    def _small(self, at: Sources, inputs: Inputs) -> pa.Table | None:
        """The rows, read in this process; None if they are many or Spark has to read them."""
        log = self._only(at).log
        if has_nested(self.schema) or log.row_count is None or log.row_count > inputs.limit:
            return None
        rows = read_stored_rows(log, {}, self.columns, limit=inputs.limit)
        return None if rows is None else rows.cast(self.schema)

    def _only(self, sources: Sources) -> Source:
        [source] = sources.values()
        return source


def _of_json(log: TableLog, schema: pa.Schema, columns: Collection[str]) -> pa.Schema:
    """The schema with JSON text in place of the variants in some columns."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    fields = [field for field in log.fields if field["name"] in columns]
    made = StructType.fromJson(json_for_variants({"type": "struct", "fields": fields}))
    for field in plain_schema(to_arrow_schema(made, timezone="UTC")):
        schema = schema.set(schema.get_field_index(field.name), field)
    return schema


@dataclass(frozen=True)
class RelationRows:
    given: str
    """The relation, as the caller wrote it."""
    reading: RelationReading

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, without the weight."""
        return self.reading.schema

    def snapshot(self, at: Frontier, now: str, order: Order = ()) -> Iterator[pa.Table]:
        """All rows at a frontier, with their number of copies as weight; see `RelationReading`.

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
        """What changed between two frontiers; see `RelationReading`.

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


def rows_of_table(access: Access, name: str, log: TableLog, columns: Sequence[str]) -> RelationRows:
    """The rows of one stored table.

    Args:
        access: How it is read.
        name: The table.
        log: The table at the version whose columns are read.
        columns: Some of its columns, in any order, spelled as in the log.

    Raises:
        UnsupportedQuery: One of them has a reserved name.
    """
    return RelationRows(name, reading_of_table(access, name, log, columns))


def reading_of_table(
    access: Access, name: str, log: TableLog, columns: Sequence[str]
) -> TableReading:
    """The arguments and the errors are those of `rows_of_table`."""
    for column in columns:
        if is_reserved_name(column):
            raise UnsupportedQuery(
                f'the table "{name}" has a column called "{column}"',
                where=log.location,
                why="while changes are read, a column of that name holds something else",
                fix="rename the column, or follow a SELECT of the other columns",
            )
    first = {name: Source(name, log, {n: t for n, t in log.columns.items() if n in columns})}
    return TableReading(access, Settings(), first, tuple(columns))
