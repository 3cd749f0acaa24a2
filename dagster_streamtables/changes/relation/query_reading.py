"""Follow a SELECT: its change is computed as in a refresh, but without a stored table.

Instead of the stored table, the sources are read at both ends. A few groups are held in this
process from one change to the next: computed again from its source, a group would cost all its
rows, however few of them changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.changes.relation.relation_reading import (
    Order,
    RelationReading,
    Sources,
    Span,
    Times,
)
from dagster_streamtables.compiler import WEIGHT, QueryPlan, Text, asks_for_time, unstored_change
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.compute.column_types import (
    names_problem,
    require_comparable,
    spark_types,
)
from dagster_streamtables.runtime.compute.differential import capture
from dagster_streamtables.runtime.compute.full_query import rows_of
from dagster_streamtables.runtime.compute.netting import (
    add_weight,
    can_net_here,
    has_nested,
    net_rows,
)
from dagster_streamtables.runtime.compute.result_before import ResultInMemory
from dagster_streamtables.runtime.compute.spark_engine import BoundChanges, Inputs, SparkEngine
from dagster_streamtables.runtime.delta.arrow import pa, plain_schema, storable
from dagster_streamtables.runtime.delta.delta_log import Snapshot
from dagster_streamtables.runtime.delta.table_schema import json_for_variants, spark_type
from dagster_streamtables.runtime.errors.error_translation import translate_errors
from dagster_streamtables.runtime.spark.connect import arrow_rows, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

HELD = 100_000
"""The most groups that are held."""


def can_be_in_memory(plan: QueryPlan) -> bool:
    """Whether the rows of a query are groups, each known by its key."""
    return plan.key is not None and not plan.is_time_dependent


@dataclass
class InMemoryResult:
    """The result of a query at one frontier. One thread at a time uses it."""

    plan: QueryPlan
    _at: dict[str, Snapshot] | None = None
    _rows: ResultInMemory | None = None
    _too_large: bool = False

    def fill(self, at: Sources, rows: DataFrame) -> pa.Table | None:
        """Hold a result at a frontier: all stored columns of the plan, with the hidden ones.

        Returns:
            Its rows; None if they are too many to be held, or of types that are not compared here.
        """
        if self._too_large:
            return None
        names, key = list(self.plan.stored_columns), self.plan.key or ()
        types = dict(rows.toDF(*names).dtypes)
        if not can_net_here({name: types[name] for name in key}):
            self._too_large = True
            return None
        found = storable(arrow_rows(rows.toDF(*names).limit(HELD + 1)))
        self._too_large = found.num_rows > HELD or has_nested(found.schema)
        if self._too_large:
            return None
        self._keep(at, ResultInMemory(found, types, key))
        return found

    def is_at(self, sources: Sources) -> bool:
        return self._at == _snapshots(sources)

    def move_to(self, sources: Sources) -> None:
        """Note that the result is the same at another frontier."""
        self._at = _snapshots(sources)

    def change(self, after: Sources, captured: BoundChanges, inputs: Inputs) -> pa.Table | None:
        """The change of the held result, and hold the one after it.

        Returns:
            Inserted and deleted rows, not netted; None to compute the change without it.
        """
        if self._rows is None:
            return None
        computed = differential.change(self.plan, self._rows, captured, inputs)
        if computed.local is None or computed.broken:
            self._rows = self._at = None
            return None
        if computed.empty:  # and without the columns of one that is not
            self.move_to(after)
            return add_weight(self._rows.table.slice(0, 0), 1)
        now, change = self._rows.apply_change(computed.local)
        if now.table.num_rows > HELD:
            self._too_large, self._rows, self._at = True, None, None
        else:
            self._keep(after, now)
        return change

    def _keep(self, at: Sources, rows: ResultInMemory) -> None:
        self._rows, self._at = rows, _snapshots(at)


def _snapshots(sources: Sources) -> dict[str, Snapshot]:
    return {name: source.log.snapshot for name, source in sources.items()}


_ANY = "2000-01-01T00:00:00+00:00"
"""A time for a query that is analyzed, and not run."""


@dataclass(frozen=True)
class _OwnText(RelationReading):
    """The rows of a query, by the author's own text."""

    text: Text
    """In Spark SQL, with a unique answer."""

    @cached_property
    def schema(self) -> pa.Schema:
        from pyspark.sql.types import StructType

        shown = self._columns
        if self.as_json:
            shown = StructType.fromJson(json_for_variants(shown.jsonValue()))
        return plain_schema(arrow_schema(shown))

    @cached_property
    def types(self) -> dict[str, str]:
        return {each.name: spark_type(each.dataType.jsonValue()) for each in self._columns}

    @cached_property
    def _columns(self) -> StructType:
        with closing(self.inputs(self.first, Times(_ANY, _ANY))) as inputs, translate_errors():
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
        return rows_of(
            text, _snapshots(at), now, inputs.relations,
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
        refusal = names_problem(found, list(self.plan.schema))
        if refusal is not None:
            raise refusal

    @property
    def is_time_dependent(self) -> bool:
        return self.plan.is_time_dependent

    def snapshot(self, at: Sources, now: str, order: Order) -> Iterator[pa.Table]:
        held = None
        if can_be_in_memory(self.plan):
            with closing(self.inputs(at, Times(now, now))) as inputs:
                inputs.compile()
                held = self._in_memory.fill(at, self._whole(at, now, inputs))
        if held is None:
            yield from super().snapshot(at, now, order)
        elif held.num_rows:
            yield net_rows(add_weight(held.select(self.schema.names), 1))

    def change(self, span: Span, order: Order) -> Iterator[pa.Table]:
        yield from super().change(span, order)
        if self._in_memory.is_at(span.before):
            self._in_memory.move_to(span.after)  # no source moved

    def compute_change(self, span: Span, inputs: Inputs, order: Order) -> Iterator[pa.Table]:
        captured = capture(self.plan, span.after, span.windows, inputs)
        if not captured.moved and not self.is_time_dependent:
            return
        held = self._change_in_memory(span, captured, inputs)
        if held is None:
            engine = SparkEngine(captured, inputs)
            rows = engine.rows(unstored_change(self.plan, self._types, engine))
            yield from self.to_arrow_tables(rows, order, net=False)
        elif held.num_rows:
            yield net_rows(held.select([*self.schema.names, WEIGHT]))

    def _change_in_memory(
        self, span: Span, captured: BoundChanges, inputs: Inputs
    ) -> pa.Table | None:
        if not can_be_in_memory(self.plan):
            return None
        if not self._in_memory.is_at(span.before):
            self._in_memory.fill(span.before, self._whole(span.before, span.times.then, inputs))
        return self._in_memory.change(span.after, captured, inputs)

    def _whole(self, at: Sources, now: str, inputs: Inputs) -> DataFrame:
        """All rows with the hidden columns of the plan."""
        return self.run(self.plan.full_text, at, now, inputs)

    @cached_property
    def _in_memory(self) -> InMemoryResult:
        return InMemoryResult(self.plan)

    @cached_property
    def _types(self) -> dict[str, str]:
        from pyspark.sql.pandas.types import from_arrow_schema

        found = from_arrow_schema(self.schema)
        known = {field.name: field.dataType.simpleString() for field in found.fields}
        return known | {name: self.types[name] for name in self.as_json}


@dataclass(frozen=True)
class RecomputeReading(_OwnText):
    """A query without a rule for its change: it is run at both ends, and the rows are compared."""

    @property
    def is_time_dependent(self) -> bool:
        return asks_for_time(self.text)

    def compute_change(self, span: Span, inputs: Inputs, order: Order) -> Iterator[pa.Table]:
        return self.compare_ends(span, inputs, order)
