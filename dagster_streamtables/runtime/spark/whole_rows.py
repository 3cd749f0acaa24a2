"""Count and compare whole rows in Spark, by the forms of `zeros` and `comparable`.

pyarrow and delta-rs compare the bits of floats, so they need no such care.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import WEIGHT, comparable_columns, zero_marks
from dagster_streamtables.runtime.delta.quote import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def grouping_clauses(types: Mapping[str, str], table: str) -> tuple[str, str]:
    """A SELECT list with every column unchanged, and the GROUP BY that returns each row once."""
    marks, forms = zero_marks(types, table), comparable_columns(types, table)
    shown = (
        f"any_value({_of(n, table)}) AS {spark_name(n)}"
        if n in marks or n in forms
        else _of(n, table)
        for n in types
    )
    keys = (forms.get(name, _of(name, table)) for name in types)
    return ", ".join(shown), ", ".join([*keys, *marks.values()])


def same(types: Mapping[str, str], left: str, right: str) -> str:
    """The condition that two rows are equal; NULL equals NULL."""
    forms = {side: comparable_columns(types, side) for side in (left, right)}
    columns = [[each.get(n, _of(n, side)) for n in types] for side, each in forms.items()]
    zeros_too = [list(zero_marks(types, side).values()) for side in forms]
    pairs = (pair for sides in (columns, zeros_too) for pair in zip(*sides, strict=True))
    return " AND ".join(f"{a} <=> {b}" for a, b in pairs)


def net_rows_in_spark(rows: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """Each row once, with the sum of its weights, without rows of weight 0.

    Args:
        rows: The columns of `types`, and the weight.
        types: Column → type.
    """
    from pyspark.sql import functions as F

    marks, forms = zero_marks(types), comparable_columns(types)
    changed = {n: f"__st_shown_{i}" for i, n in enumerate(dict.fromkeys([*marks, *forms]))}
    keys = [F.expr(forms.get(name, spark_name(name))).alias(name) for name in types]
    shown = [F.any_value(spark_name(name)).alias(alias) for name, alias in changed.items()]
    total = F.sum(WEIGHT).alias(WEIGHT)
    groups = rows.groupBy(*keys, *map(F.expr, marks.values())).agg(total, *shown)
    back = (F.col(changed[n]).alias(n) if n in changed else F.col(spark_name(n)) for n in types)
    return groups.where(f"{WEIGHT} <> 0").select(*back, WEIGHT)


def _of(name: str, table: str) -> str:
    return f"{table}.{spark_name(name)}"
