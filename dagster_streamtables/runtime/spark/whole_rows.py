"""Count and compare whole rows in Spark: their zeros as in `zeros`, their maps as in `maps`.

pyarrow and delta-rs compare the bits of floats, so they need no such care.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import WEIGHT, map_entries, zero_marks
from dagster_streamtables.runtime.delta.quote import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def grouped(types: Mapping[str, str], table: str) -> tuple[str, str]:
    """A SELECT list with every column unchanged, and the GROUP BY that returns each row once."""
    marks, maps = zero_marks(types, table), map_entries(types, table)
    shown = (
        f"any_value({_of(n, table)}) AS {spark_name(n)}"
        if n in marks or n in maps
        else _of(n, table)
        for n in types
    )
    keys = (maps.get(name, _of(name, table)) for name in types)
    return ", ".join(shown), ", ".join([*keys, *marks.values()])


def same(types: Mapping[str, str], left: str, right: str) -> str:
    """The condition that two rows are equal; NULL equals NULL."""
    maps = {side: map_entries(types, side) for side in (left, right)}
    columns = [[each.get(n, _of(n, side)) for n in types] for side, each in maps.items()]
    zeros_too = [list(zero_marks(types, side).values()) for side in maps]
    pairs = (pair for sides in (columns, zeros_too) for pair in zip(*sides, strict=True))
    return " AND ".join(f"{a} <=> {b}" for a, b in pairs)


def netted(rows: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """Each row once, with the sum of its weights, without rows of weight 0.

    Args:
        rows: The columns of `types`, and the weight.
        types: Column → type.
    """
    from pyspark.sql import functions as F

    marks, maps = zero_marks(types), map_entries(types)
    changed = {n: f"__st_shown_{i}" for i, n in enumerate(dict.fromkeys([*marks, *maps]))}
    keys = [F.expr(maps.get(name, spark_name(name))).alias(name) for name in types]
    shown = [F.any_value(spark_name(name)).alias(alias) for name, alias in changed.items()]
    total = F.sum(WEIGHT).alias(WEIGHT)
    groups = rows.groupBy(*keys, *map(F.expr, marks.values())).agg(total, *shown)
    back = (F.col(changed[n]).alias(n) if n in changed else F.col(spark_name(n)) for n in types)
    return groups.where(f"{WEIGHT} <> 0").select(*back, WEIGHT)


def _of(name: str, table: str) -> str:
    return f"{table}.{spark_name(name)}"
