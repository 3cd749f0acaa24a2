"""Whole rows counted and compared by Spark, where -0.0 is another value than 0.0: see `zeros`.

pyarrow and delta-rs compare the bits of floats and need no such care.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.compiler.operators import WEIGHT, column
from dagster_streamtables.compiler.operators.zeros import has_zeros, zeros
from dagster_streamtables.runtime.delta.quote import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def apart(types: Mapping[str, str], table: str | None = None) -> list[str]:
    """What tells rows apart that are equal to SQL, in SQL: an expression for each such column.

    >>> apart({"id": "bigint", "x": "double"}, "t")
    ['CASE WHEN `t`.`x` = 0 THEN CAST(`t`.`x` AS STRING) END']
    """
    kinds = {name: _type(type_) for name, type_ in types.items()}
    marks = (zeros(column(n, table), kind) for n, kind in kinds.items() if has_zeros(kind))
    return [mark.sql("spark") for mark in marks]


def floats(types: Mapping[str, str]) -> list[str]:
    """The columns whose value GROUP BY may give back as another."""
    return [name for name, type_ in types.items() if has_zeros(_type(type_))]


def grouped(types: Mapping[str, str], table: str) -> tuple[str, str]:
    """A SELECT list with every column as it came, and the GROUP BY that gives each row once."""
    changed = set(floats(types))
    shown = (
        f"any_value({_of(n, table)}) AS {spark_name(n)}" if n in changed else _of(n, table)
        for n in types
    )
    return ", ".join(shown), ", ".join([*(_of(n, table) for n in types), *apart(types, table)])


def same(types: Mapping[str, str], left: str, right: str) -> str:
    """That two rows are the same; NULLs are."""
    columns = [f"{_of(name, left)} <=> {_of(name, right)}" for name in types]
    zeros_too = zip(apart(types, left), apart(types, right), strict=True)
    return " AND ".join([*columns, *(f"{a} <=> {b}" for a, b in zeros_too)])


def netted(rows: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """Each row once, with its weights added up, and no row of weight 0.

    Args:
        rows: The columns of `types`, and the weight.
        types: Column → type.
    """
    from pyspark.sql import functions as F

    changed = {name: f"__st_shown_{i}" for i, name in enumerate(floats(types))}
    keys = [F.col(spark_name(name)) for name in types]
    shown = [F.any_value(spark_name(name)).alias(alias) for name, alias in changed.items()]
    total = F.sum(WEIGHT).alias(WEIGHT)
    groups = rows.groupBy(*keys, *map(F.expr, apart(types))).agg(total, *shown)
    back = (F.col(changed[n]).alias(n) if n in changed else F.col(spark_name(n)) for n in types)
    return groups.where(f"{WEIGHT} <> 0").select(*back, WEIGHT)


def _type(type_: str) -> exp.DataType:
    return exp.DataType.build(type_, dialect="spark")


def _of(name: str, table: str) -> str:
    return f"{table}.{spark_name(name)}"
