"""Read a relation: its rows at a frontier, and what changed between two.

There is one class for each way: the rows of a stored table, a query whose change is computed, and a
query that is run at both ends and compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dagster_streamtables.changes.output.order import Term
from dagster_streamtables.compiler import WEIGHT, RecursionLimits, json_columns
from dagster_streamtables.errors import FailedQuery
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.compute.inputs import Inputs
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.delta.source_change import SourceChange, change_between
from dagster_streamtables.runtime.errors.translate import translate_errors
from dagster_streamtables.runtime.model.table_catalog import Source
from dagster_streamtables.runtime.spark import whole_rows
from dagster_streamtables.runtime.spark.connect import arrow_batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

Sources = Mapping[str, Source]
Order = Sequence[Term]
Windows = Mapping[str, SourceChange]

_SESSION = "_subscriptions"


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
    """From one frontier to another."""

    before: Sources
    after: Sources
    times: Times

    @property
    def windows(self) -> dict[str, SourceChange]:
        """The change of each source."""
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
    def schema(self) -> pa.Schema:
        """The columns of the rows, without the weight."""
        return self.read_schema()

    @abstractmethod
    def read_schema(self) -> pa.Schema:
        """
        Raises:
            UnsupportedQuery: Rows cannot be told apart by a column.
        """

    @cached_property
    def as_json(self) -> dict[str, str]:
        """The columns with variants, for which readers get JSON text: the SQL that makes it."""
        return json_columns(self.types)

    @cached_property
    def types(self) -> dict[str, str]:
        """Column → type in Spark's spelling."""
        return self.read_types()

    @abstractmethod
    def read_types(self) -> dict[str, str]:
        """See `types`."""

    @abstractmethod
    def rows(self, at: Sources, now: str, inputs: Inputs) -> DataFrame:
        """The rows at a frontier in Spark, with their copies."""

    @abstractmethod
    def compute_change(
        self, span: Span, windows: Windows, inputs: Inputs, order: Order
    ) -> Iterator[pa.Table]:
        """What changed in a span in which a source moved, by the rule of the relation."""

    @property
    def is_time_dependent(self) -> bool:
        """Whether the rows depend on the current time."""
        return False

    def snapshot(self, at: Sources, now: str, order: Order) -> Iterator[pa.Table]:
        """Each distinct row at a frontier, with its number of copies."""
        with closing(self.inputs(at, Times(now, now))) as inputs:
            inputs.compile()
            yield from self.to_arrow_tables(_add_weight(self.rows(at, now, inputs), 1), order)

    def change(self, span: Span, order: Order) -> Iterator[pa.Table]:
        """What changed; the weight is negative for rows that went."""
        windows = span.windows
        if self.is_time_dependent or any(each.has_changes for each in windows.values()):
            with closing(self.inputs(span.after, span.times)) as inputs:
                yield from _compile_on_failure(
                    inputs, lambda: self.compute_change(span, windows, inputs, order)
                )

    def difference(
        self, span: Span, order: Order, *, redefined: bool = False
    ) -> Iterator[pa.Table]:
        """As `change`, by comparing all rows of both frontiers.

        Args:
            span: From where to where.
            order: The order of the rows.
            redefined: Whether a column was defined anew, which changes rows and moves no file.
        """
        if (
            self.is_time_dependent
            or redefined
            or any(each.has_changes for each in span.windows.values())
        ):
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

        A VARIANT becomes JSON text, so two rows may become one.

        Args:
            rows: The columns of `schema`, by position, and the weight.
            order: Their order.
            net: Whether equal rows are still to be added up.
        """
        import pyarrow as pa
        from pyspark.sql import functions as F

        rows = rows.toDF(*self.schema.names, WEIGHT)
        if self.as_json:
            rows = rows.withColumns({name: F.expr(sql) for name, sql in self.as_json.items()})
        if net or self.as_json:
            rows = whole_rows.net_rows_in_spark(rows, {n: t for n, t in rows.dtypes if n != WEIGHT})
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
