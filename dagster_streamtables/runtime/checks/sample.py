"""A sample of a table's rows, the same ones on both sides, for a cheaper comparison.

A hash of some columns and a seed decides whether a row belongs to the sample, so both sides agree,
and another seed selects other rows. In an aggregation those columns are the keys: Spark pushes a
condition on keys below the aggregate, so it drops the other rows before it joins or groups them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.model.definition import compile_table, visible_types
from dagster_streamtables.runtime.model.state import TableWithState
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST = 1_000
"""A sample has about this many rows at least: fewer rows of a small table would prove nothing."""
_BUCKETS = 1_000_000
# Two recomputations of a sum of floats differ, and equal collated strings may differ in bytes.
_HASHED = ("boolean", "tinyint", "smallint", "int", "bigint", "date", "string", "binary")
_HASHED_PREFIXES = ("decimal", "timestamp", "char", "varchar")


Sample = Annotated[float, Range(0, 1, above=True)]
"""The fraction of the rows to compare."""


@dataclass(frozen=True)
class SampledRows:
    """The rows whose hash lies below a bound."""

    fraction: float
    """The approximate fraction of all rows, from 0 to 1."""
    seed: int
    """Selects the rows; the same seed selects the same ones."""
    columns: tuple[str, ...]
    """The columns that are hashed."""

    def of(self, rows: DataFrame, types: Mapping[str, str]) -> DataFrame:
        """The rows of a relation that belong to the sample.

        Args:
            rows: The relation.
            types: The types in which its columns are hashed: the hash depends on the type.
        """
        from pyspark.sql import functions as F

        values = [F.col(spark_name(name)).cast(types[name]) for name in self.columns]
        bucket = F.pmod(F.xxhash64(F.lit(self.seed), *values), F.lit(_BUCKETS))
        return rows.where(bucket < F.lit(round(self.fraction * _BUCKETS)))


def sampled_rows(
    table: StreamTable, stored: TableWithState, sample: float | None, seed: int | None
) -> SampledRows | None:
    """The sample of a stored table to compare; None for all rows.

    All rows are compared if the table is small, or if no column can be hashed.

    Args:
        table: The declaration.
        stored: The table.
        sample: The fraction of the rows; None for all.
        seed: Selects the rows; None for a random sample.

    Raises:
        InvalidDefinition: `sample` is not a fraction.
    """
    if sample is None:
        return None
    if not 0 < sample <= 1:
        raise InvalidDefinition(
            f"a sample of {sample:g} was asked for", fix="give a fraction of the rows, such as 0.01"
        ).about(table.name)
    fraction = max(sample, LEAST / max(1, stored.log.row_count or _BUCKETS))
    columns = _columns(table, stored)
    if fraction >= 1 or not columns:
        return None
    return SampledRows(fraction, random.randrange(2**31) if seed is None else seed, columns)


def _columns(table: StreamTable, stored: TableWithState) -> tuple[str, ...]:
    kinds = visible_types(stored.query_columns)
    can = [name for name, kind in kinds.items() if _is_hashable(kind)]
    keys = _keys(table, stored)
    return tuple(name for name in can if name in keys) or tuple(can)


def _keys(table: StreamTable, stored: TableWithState) -> tuple[str, ...]:
    """The stored columns that identify a group; none if the plan has no groups."""
    columns = {name: seen.columns for name, seen in stored.state.sources.items()}
    try:
        return compile_table(table, table.text(columns), columns).key or ()
    except StreamTablesError:  # mode FULL accepts any query
        return ()


def _is_hashable(kind: str) -> bool:
    return kind in _HASHED or (kind.startswith(_HASHED_PREFIXES) and "collate" not in kind.lower())
