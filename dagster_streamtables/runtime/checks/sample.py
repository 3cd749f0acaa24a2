"""A part of a table's rows, the same ones of two relations: for a comparison that costs less.

A row belongs to a part by a hash of some of its columns and a seed, so both sides agree on it, and
another seed names other rows. Of groups those columns are keys: what asks only for keys is answered
below the aggregate, so Spark drops the other rows before it joins or groups them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.model.definition import compiled, visible
from dagster_streamtables.runtime.model.state import Refreshed
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST = 1_000
"""Rows that a part has about, if the table has so many: one of two rows would show nothing."""
_BUCKETS = 1_000_000
# Two recomputations of a sum of floats differ, and collated strings may be equal and not the same.
_HASHED = ("boolean", "tinyint", "smallint", "int", "bigint", "date", "string", "binary")
_HASHED_PREFIXES = ("decimal", "timestamp", "char", "varchar")


Sample = Annotated[float, Range(0, 1, above=True)]
"""Of the rows."""


@dataclass(frozen=True)
class SampledRows:
    """The rows whose columns have certain hashes."""

    fraction: float
    """About so many of all rows, from 0 to 1."""
    seed: int
    """Which of them; with the same seed, and the same rows, the same ones again."""
    columns: tuple[str, ...]
    """By whose values they are chosen."""

    def of(self, rows: DataFrame, types: Mapping[str, str]) -> DataFrame:
        """Those rows of a relation that belong to the part.

        Args:
            rows: The relation.
            types: The types that its columns are hashed in: another type is another hash.
        """
        from pyspark.sql import functions as F

        values = [F.col(spark_name(name)).cast(types[name]) for name in self.columns]
        bucket = F.pmod(F.xxhash64(F.lit(self.seed), *values), F.lit(_BUCKETS))
        return rows.where(bucket < F.lit(round(self.fraction * _BUCKETS)))


def sampled_rows(
    table: StreamTable, stored: Refreshed, sample: float | None, seed: int | None
) -> SampledRows | None:
    """The part of a stored table to compare; None for all of it.

    Everything is compared where nothing is gained by less: in a table of few rows, and where no
    column can be hashed.

    Args:
        table: The declaration.
        stored: The table.
        sample: What part of the rows; None for all.
        seed: Which; None for another part each time.

    Raises:
        InvalidDefinition: `sample` is no part.
    """
    if sample is None:
        return None
    if not 0 < sample <= 1:
        raise InvalidDefinition(
            f"a sample of {sample:g} was asked for", fix="give a part of the rows, as 0.01"
        ).about(table.name)
    fraction = max(sample, LEAST / max(1, stored.log.row_count or _BUCKETS))
    columns = _columns(table, stored)
    if fraction >= 1 or not columns:
        return None
    return SampledRows(fraction, random.randrange(2**31) if seed is None else seed, columns)


def _columns(table: StreamTable, stored: Refreshed) -> tuple[str, ...]:
    kinds = visible(stored.log.columns)
    can = [name for name, kind in kinds.items() if _can_be_hashed(kind)]
    keys = _keys(table, stored)
    return tuple(name for name in can if name in keys) or tuple(can)


def _keys(table: StreamTable, stored: Refreshed) -> tuple[str, ...]:
    """The stored columns that identify a group; none where the plan knows of no groups."""
    columns = {name: seen.columns for name, seen in stored.state.sources.items()}
    try:
        return compiled(table, table.text(columns), columns).key or ()
    except StreamTablesError:  # in mode FULL any query will do
        return ()


def _can_be_hashed(kind: str) -> bool:
    return kind in _HASHED or (kind.startswith(_HASHED_PREFIXES) and "collate" not in kind.lower())
