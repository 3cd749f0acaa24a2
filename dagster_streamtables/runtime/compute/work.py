"""Run the statements of a refresh; few rows come to this process, more stay in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import WEIGHT, Statement
from dagster_streamtables.runtime.compute.inputs import BoundChanges, Inputs
from dagster_streamtables.runtime.compute.spark_engine import SparkEngine
from dagster_streamtables.runtime.compute.stored import ResultBefore
from dagster_streamtables.runtime.delta.data_rows import is_utf8
from dagster_streamtables.runtime.delta.types import has_variants
from dagster_streamtables.runtime.spark.connect import arrow_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ChangeResult:
    """The change of a stored table."""

    local: pa.Table | None
    """Its rows, if they came to this process."""
    in_spark: Callable[[], DataFrame]
    """The same rows in Spark."""
    broken: bool = False
    """Whether the stored rows contradict the sources."""

    @property
    def empty(self) -> bool:
        return self.local is not None and self.local.num_rows == 0


@dataclass(frozen=True)
class ChangeComputation:
    """The computation of one change of a stored table."""

    types: Mapping[str, str]
    stored: ResultBefore
    captured: BoundChanges
    inputs: Inputs

    def run(
        self, ask: Callable[[SparkEngine], Statement], more: Mapping[str, str] | None = None
    ) -> DataFrame:
        """The rows of a statement, which may read more relations."""
        engine = self.engine(more)
        return engine.rows(ask(engine))

    def engine(self, more: Mapping[str, str] | None = None) -> SparkEngine:
        return SparkEngine(self.captured, self.inputs, self.stored, more or {})

    def fetch(self, rows: DataFrame) -> pa.Table | None:
        return fetch_rows(rows, self.inputs)

    def local_result(self, rows: pa.Table, *, broken: bool = False) -> ChangeResult:
        """A change whose rows came to this process."""
        return ChangeResult(rows, lambda: self.inputs.relations.to_spark(rows), broken)

    @property
    def stays_in_spark(self) -> bool:
        """Whether its rows do not come to this process, however few they are."""
        return has_variants(self.types.values())

    def cache_in_spark(self, rows: DataFrame) -> ChangeResult:
        """A change that Spark computes once, and of which nothing but its absence is known here."""
        import pyarrow as pa

        kept = self.inputs.relations.cache(rows)
        if kept.limit(1).count():
            return self.spark_result(kept)
        return self.local_result(pa.table({WEIGHT: pa.array([], pa.int64())}))

    def spark_result(self, rows: DataFrame, *, broken: bool = False) -> ChangeResult:
        """A change whose rows stay in Spark."""
        return ChangeResult(None, lambda: rows, broken)


def fetch_rows(rows: DataFrame, inputs: Inputs) -> pa.Table | None:
    """The rows, read into this process; None if there are too many, or only Spark reads them."""
    local = arrow_rows(rows.limit(inputs.limit + 1))
    return local if local.num_rows <= inputs.limit and is_utf8(local) else None
