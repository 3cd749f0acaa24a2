"""Follow a SELECT: its change is that of a refresh, with no stored table behind it.

What a refresh would read in its stored table is read from the sources, at both ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.changes.relation.held_result import HeldResult, can_be_held
from dagster_streamtables.changes.relation.reading import (
    Order,
    Reading,
    Sources,
    Span,
    Times,
    Windows,
)
from dagster_streamtables.compiler import (
    WEIGHT,
    QueryPlan,
    Text,
    asks_for_time,
    unstored_change,
)
from dagster_streamtables.runtime.compute.column_types import (
    misnamed,
    require_comparable,
    spark_types,
)
from dagster_streamtables.runtime.compute.differential import capture
from dagster_streamtables.runtime.compute.inputs import Captured, Inputs
from dagster_streamtables.runtime.compute.netting import netted, weighted
from dagster_streamtables.runtime.compute.own_text import rows_of
from dagster_streamtables.runtime.compute.spark_engine import SparkEngine
from dagster_streamtables.runtime.delta.arrow import plain_schema
from dagster_streamtables.runtime.delta.types import json_for_variants, spark_type
from dagster_streamtables.runtime.errors.translate import explained

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_ANY = "2000-01-01T00:00:00+00:00"
"""A time for a query that is analyzed, and not run."""


@dataclass(frozen=True)
class _OwnText(Reading):
    """The rows of a query, by the author's own text."""

    text: Text
    """In Spark SQL, with a unique answer."""

    def read_schema(self) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        shown = self._columns
        if self.as_json:
            shown = StructType.fromJson(json_for_variants(shown.jsonValue()))
        return plain_schema(to_arrow_schema(shown, timezone="UTC"))

    def read_types(self) -> dict[str, str]:
        return {each.name: spark_type(each.dataType.jsonValue()) for each in self._columns}

    @cached_property
    def _columns(self) -> StructType:
        with closing(self.inputs(self.first, Times(_ANY, _ANY))) as inputs, explained():
            rows = self.rows(self.first, _ANY, inputs)
            self.require_names(rows.columns)
            require_comparable(spark_types(rows), self.key)
            return rows.schema

    def require_names(self, found: Sequence[str]) -> None:
        """
        Raises:
            UnsupportedQuery: The change of the query has other columns than its text in Spark.
        """

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which its groups are known, if its change is computed by groups."""
        return ()

    def rows(self, at: Sources, now: str, inputs: Inputs) -> DataFrame:
        return self.run(self.text, at, now, inputs)

    def run(self, text: Text, at: Sources, now: str, inputs: Inputs) -> DataFrame:
        snapshots = {name: source.log.snapshot for name, source in at.items()}
        return rows_of(
            text, snapshots, now, inputs.relations,
            limit=inputs.limit, recursion=self.settings.recursion,
        )  # fmt: skip


@dataclass(frozen=True)
class QueryReading(_OwnText):
    """A query whose change is computed: its cost is the change and what it touches."""

    plan: QueryPlan

    @property
    def key(self) -> tuple[str, ...]:
        return self.plan.key or ()

    def require_names(self, found: Sequence[str]) -> None:
        refusal = misnamed(found, list(self.plan.schema))
        if refusal is not None:
            raise refusal

    @property
    def timed(self) -> bool:
        return self.plan.timed

    def snapshot(self, at: Sources, now: str, order: Order) -> Iterator[pa.Table]:
        held = None
        if can_be_held(self.plan):
            with closing(self.inputs(at, Times(now, now))) as inputs:
                inputs.compile()
                held = self._held.fill(at, self._whole(at, now, inputs))
        if held is None:
            yield from super().snapshot(at, now, order)
        elif held.num_rows:
            yield netted(weighted(held.select(self.schema.names), 1))

    def change(self, span: Span, order: Order) -> Iterator[pa.Table]:
        yield from super().change(span, order)
        if self._held.is_at(span.before):
            self._held.moved_to(span.after)  # no source moved

    def computed(
        self, span: Span, windows: Windows, inputs: Inputs, order: Order
    ) -> Iterator[pa.Table]:
        captured = capture(self.plan, span.after, windows, inputs)
        if not captured.moved and not self.timed:
            return
        held = self._by_held(span, captured, inputs)
        if held is None:
            engine = SparkEngine(captured, inputs)
            rows = engine.rows(unstored_change(self.plan, self._types, engine))
            yield from self.given(rows, order, net=False)
        elif held.num_rows:
            yield netted(held.select([*self.schema.names, WEIGHT]))

    def _by_held(self, span: Span, captured: Captured, inputs: Inputs) -> pa.Table | None:
        """The change by the held result; None if there is none."""
        if not can_be_held(self.plan):
            return None
        if not self._held.is_at(span.before):
            self._held.fill(span.before, self._whole(span.before, span.times.then, inputs))
        return self._held.change(span.after, captured, inputs)

    def _whole(self, at: Sources, now: str, inputs: Inputs) -> DataFrame:
        """All rows with the hidden columns of the plan."""
        return self.run(self.plan.full_text, at, now, inputs)

    @cached_property
    def _held(self) -> HeldResult:
        return HeldResult(self.plan)

    @cached_property
    def _types(self) -> dict[str, str]:
        from pyspark.sql.pandas.types import from_arrow_schema

        found = from_arrow_schema(self.schema)
        known = {field.name: field.dataType.simpleString() for field in found.fields}
        return known | {name: self.types[name] for name in self.as_json}


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
