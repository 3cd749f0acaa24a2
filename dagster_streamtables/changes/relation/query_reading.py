"""Follow a SELECT: its change is that of a refresh, with no stored table behind it.

What a refresh would read in its stored table is read from the sources, at both ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.changes.relation.reading import (
    Order,
    Reading,
    Sources,
    Span,
    Times,
    Windows,
)
from dagster_streamtables.compiler import QueryPlan, Text, asks_for_time, unstored_change
from dagster_streamtables.runtime.compute.column_types import require_comparable, spark_types
from dagster_streamtables.runtime.compute.differential import capture
from dagster_streamtables.runtime.compute.inputs import Inputs
from dagster_streamtables.runtime.compute.own_text import rows_of
from dagster_streamtables.runtime.compute.spark_engine import SparkEngine
from dagster_streamtables.runtime.delta.arrow import plain_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_ANY = "2000-01-01T00:00:00+00:00"
"""A time for a query that is analyzed, and not run."""


@dataclass(frozen=True)
class _OwnText(Reading):
    """The rows of a query, by the author's own text."""

    text: Text
    """In Spark SQL, with a unique answer."""

    def read_schema(self) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        with closing(self.inputs(self.first, Times(_ANY, _ANY))) as inputs:
            rows = self.rows(self.first, _ANY, inputs)
            require_comparable(spark_types(rows))
            return plain_schema(to_arrow_schema(rows.schema, timezone="UTC"))

    def rows(self, at: Sources, now: str, inputs: Inputs) -> DataFrame:
        snapshots = {name: source.log.snapshot for name, source in at.items()}
        recursion = self.declaration.recursion
        return rows_of(
            self.text, snapshots, now, inputs.relations, limit=inputs.limit, recursion=recursion
        )


@dataclass(frozen=True)
class QueryReading(_OwnText):
    """A query whose change is computed: its cost is the change and what it touches."""

    plan: QueryPlan

    @property
    def timed(self) -> bool:
        return self.plan.timed

    def computed(
        self, span: Span, windows: Windows, inputs: Inputs, order: Order
    ) -> Iterator[pa.Table]:
        captured = capture(self.plan, span.after, windows, inputs)
        if captured.moved or self.timed:
            engine = SparkEngine(captured, inputs)
            rows = engine.rows(unstored_change(self.plan, self._types, engine))
            yield from self.given(rows, order, net=False)

    @cached_property
    def _types(self) -> dict[str, str]:
        from pyspark.sql.pandas.types import from_arrow_schema

        found = from_arrow_schema(self.schema)
        return {field.name: field.dataType.simpleString() for field in found.fields}


@dataclass(frozen=True)
class RecomputedReading(_OwnText):
    """A query without a rule for its change: it is run at both ends, and the rows are compared."""

    @property
    def timed(self) -> bool:
        return asks_for_time(self.text)

    def computed(
        self, span: Span, windows: Windows, inputs: Inputs, order: Order
    ) -> Iterator[pa.Table]:
        return self.compared(span, inputs, order)
