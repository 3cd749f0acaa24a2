"""How the rows of a relation are read: at a frontier, or the difference between two.

There is one class for each way: the rows of a stored table (here, by its log and its feed), a query
whose change is computed, and a query that is run at both ends and compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dagster_streamtables.changes.output.output_options import Term
from dagster_streamtables.changes.relation.frontier import Frontier
from dagster_streamtables.compiler import WEIGHT, RecursionLimits, is_reserved_name, json_columns
from dagster_streamtables.errors import FailedQuery, LostRelation, UnsupportedQuery
from dagster_streamtables.runtime.compute import netting
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.compute.change_reader import at_version
from dagster_streamtables.runtime.compute.column_types import require_comparable
from dagster_streamtables.runtime.compute.differential import read_change
from dagster_streamtables.runtime.compute.netting import add_weight, has_nested, net_rows
from dagster_streamtables.runtime.compute.spark_engine import Inputs
from dagster_streamtables.runtime.delta.arrow import pa, plain_schema
from dagster_streamtables.runtime.delta.data_files import is_utf8, schema_of
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.key_lookup import read_stored_rows
from dagster_streamtables.runtime.delta.source_change import SourceChange, change_between
from dagster_streamtables.runtime.delta.table_schema import json_for_variants, spark_name
from dagster_streamtables.runtime.errors.error_translation import translate_errors
from dagster_streamtables.runtime.errors.table_errors import no_utf8
from dagster_streamtables.runtime.model.table_catalog import Source
from dagster_streamtables.runtime.spark.connect import arrow_batches, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


Sources = Mapping[str, Source]
Order = Sequence[Term]

_SESSION = "_subscriptions"


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
        `now` is the current time in the query, in ISO 8601.

        Raises:
            SourceProblem: A text is no UTF-8.
        """
        return self._legible(self.reading.snapshot(self._sources(at), now, order))

    def change(
        self, before: Frontier, after: Frontier, times: Times, order: Order = ()
    ) -> Iterator[pa.Table]:
        """The change between two frontiers; see `RelationReading`.

        Its cost is the change and the rows that it touches. If a column was redefined in between,
        which changes values and moves no file, all rows of both ends are compared.

        Raises:
            LostRelation: A column was dropped, or has another type.
            SourceProblem: A text is no UTF-8.
        """
        span = Span(self._sources(before), self._sources(after), times)
        self._require_columns(after)
        redefined = any(s.encodings != span.before[n].encodings for n, s in span.after.items())
        read = self.reading.difference if redefined else self.reading.change
        return self._legible(read(span, order))

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
    """The rows of one stored table, by the log at the version whose columns are read: some of them,
    in any order, spelled as in the log.

    Raises:
        UnsupportedQuery: A column has a reserved name.
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


@dataclass(frozen=True)
class Times:
    """The current time in the query at both ends of a window, in ISO 8601."""

    then: str
    now: str


@dataclass(frozen=True)
class Settings:
    """How Spark runs the statements of a relation."""

    session_timezone: str = "UTC"
    recursion: RecursionLimits = field(default_factory=RecursionLimits)


@dataclass(frozen=True)
class Span:
    """Two frontiers, and the times in the query at both."""

    before: Sources
    after: Sources
    times: Times

    @cached_property
    def windows(self) -> dict[str, SourceChange]:
        return {name: _window(self.before[name], source) for name, source in self.after.items()}


@dataclass(frozen=True)
class RelationReading(ABC):
    """How the rows of one relation are read.

    All rows are in Arrow tables with the columns of `schema` and the weight, each distinct row
    once. A single table has them in no order; of several, each continues the requested order.
    """

    access: Access
    settings: Settings
    first: Sources
    """The sources as of the version whose columns are followed."""

    @cached_property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the rows, without the weight.

        Raises:
            UnsupportedQuery: Rows cannot be told apart by a column.
        """

    @cached_property
    def as_json(self) -> dict[str, str]:
        """The columns with variants, for which readers get JSON text: the SQL that makes it."""
        return json_columns(self.types)

    @cached_property
    @abstractmethod
    def types(self) -> dict[str, str]:
        """Column → type in Spark's spelling."""

    @abstractmethod
    def rows(self, at: Sources, now: str, inputs: Inputs) -> DataFrame:
        """The rows at a frontier in Spark, with their copies."""

    @abstractmethod
    def compute_change(self, span: Span, inputs: Inputs, order: Order) -> Iterator[pa.Table]:
        """The change in a span in which a source moved, by the rule of the relation."""

    @property
    def is_time_dependent(self) -> bool:
        return False

    def snapshot(self, at: Sources, now: str, order: Order) -> Iterator[pa.Table]:
        """Each distinct row at a frontier, with its number of copies."""
        with closing(self.inputs(at, Times(now, now))) as inputs:
            inputs.compile()
            yield from self.to_arrow_tables(_add_weight(self.rows(at, now, inputs), 1), order)

    def change(self, span: Span, order: Order) -> Iterator[pa.Table]:
        """The change in a span; the weight of deleted rows is negative."""
        if self.is_time_dependent or any(each.has_changes for each in span.windows.values()):
            with closing(self.inputs(span.after, span.times)) as inputs:
                yield from _compile_on_failure(
                    inputs, lambda: self.compute_change(span, inputs, order)
                )

    def difference(self, span: Span, order: Order) -> Iterator[pa.Table]:
        """As `change`, by comparing all rows of both frontiers."""
        with closing(self.inputs(span.after, span.times)) as inputs:
            inputs.compile()
            yield from self.compare_ends(span, inputs, order)

    def compare_ends(self, span: Span, inputs: Inputs, order: Order) -> Iterator[pa.Table]:
        old = _add_weight(self.rows(span.before, span.times.then, inputs), -1)
        new = _add_weight(self.rows(span.after, span.times.now, inputs), 1)
        yield from self.to_arrow_tables(new.unionAll(old), order)

    def to_arrow_tables(
        self, rows: DataFrame, order: Order, *, net: bool = True
    ) -> Iterator[pa.Table]:
        """The weighted rows of Spark in the requested order, a few megabytes at a time.

        They have the columns of `schema`, by position, and the weight. A VARIANT becomes JSON text,
        so two rows may become one. `net`: equal rows must still be added up.
        """
        from pyspark.sql import functions as F

        rows = rows.toDF(*self.schema.names, WEIGHT)
        if self.as_json:
            rows = rows.withColumns({name: F.expr(sql) for name, sql in self.as_json.items()})
        if net or self.as_json:
            rows = netting.net_rows_in_spark(rows, {n: t for n, t in rows.dtypes if n != WEIGHT})
        if order:
            rows = rows.repartition(1).sortWithinPartitions(*map(_sort_column, order))
        schema = self.schema.append(pa.field(WEIGHT, pa.int64()))
        for part in arrow_batches(rows):
            yield part.cast(schema)

    def inputs(self, at: Sources, times: Times) -> Inputs:
        return Inputs(
            session=lambda: self.access.session(_SESSION, self.settings.session_timezone),
            stored=lambda location: None,
            driver_rows=self.access.driver_rows,
            tables=tuple(source.log for source in at.values()),
            recursion=self.settings.recursion,
            now=times.now,
            then=times.then,
        )


def _compile_on_failure(
    inputs: Inputs, rows: Callable[[], Iterator[pa.Table]]
) -> Iterator[pa.Table]:
    """Rows whose statements are compiled if they fail interpreted; see `Inputs.compile`."""
    given = False
    try:
        with translate_errors():
            for part in rows():
                given = True
                yield part
        return
    except FailedQuery:
        if given or not inputs.compile():
            raise
    yield from rows()


def _window(before: Source, after: Source) -> SourceChange:
    change = change_between(after.log, before.log.version)
    # With the number of rows, a feed that lacks some is noticed.
    return replace(change, held=before.log.row_count) if change.fed else change


def _add_weight(rows: DataFrame, weight: int) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.withColumn(WEIGHT, F.lit(weight).cast("bigint"))


def _sort_column(term: Term) -> Column:
    from pyspark.sql import functions as F

    column: Any = F.col(spark_name(term.column))
    if term.descending:
        return column.desc_nulls_first() if term.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if term.nulls_first else column.asc_nulls_last()


@dataclass(frozen=True)
class TableReading(RelationReading):
    """The rows of one stored table, some of its columns in any order."""

    columns: tuple[str, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        log = self._only(self.first).log
        wanted = set(self.columns)
        require_comparable({f["name"]: f["type"] for f in log.fields if f["name"] in wanted})
        schema = schema_of(log, self.columns)
        return _of_json(log, schema, self.as_json) if self.as_json else schema

    @cached_property
    def types(self) -> dict[str, str]:
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

    def compute_change(self, span: Span, inputs: Inputs, order: Order) -> Iterator[pa.Table]:
        source = self._only(span.after)
        named = replace(source, columns={n: source.columns[n] for n in self.columns})
        [window] = span.windows.values()
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
    """The schema with JSON text instead of the variants in some columns."""
    from pyspark.sql.types import StructType

    fields = [each for each in log.fields if each["name"] in columns]
    struct = StructType.fromJson(json_for_variants({"type": "struct", "fields": fields}))
    for each in plain_schema(arrow_schema(struct)):
        schema = schema.set(schema.get_field_index(each.name), each)
    return schema
