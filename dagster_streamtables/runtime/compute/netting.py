"""Net weighted rows in this process or in Spark, and compare whole rows in Spark.

In Spark, rows are equal by the forms of `zero_marks` and `comparable_columns`. pyarrow and delta-rs
compare the bits of floats, so they need no such care.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import WEIGHT, comparable_columns, zero_marks
from dagster_streamtables.runtime.delta.arrow import pa, pc
from dagster_streamtables.runtime.delta.table_schema import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def net_rows(rows: pa.Table) -> pa.Table:
    """Each row once, with the sum of its weights, without rows of weight 0.

    An update that did not change the used columns is two rows that cancel here; then the source
    needs no further reading. Rows with nested columns are returned unchanged: pyarrow cannot group
    by them.
    """
    keys = [name for name in rows.column_names if name != WEIGHT]
    if not keys:
        total = pc.sum(rows.column(WEIGHT)).as_py() or 0
        return pa.table({WEIGHT: pa.array([total] if total else [], pa.int64())})
    if has_nested(rows.schema):
        return rows
    # By number: pyarrow reads a name that begins with a dot or a bracket as a path.
    numbers = [str(number) for number in range(len(keys))]
    numbered = rows.select([*keys, WEIGHT]).rename_columns([*numbers, WEIGHT])
    grouped = numbered.group_by(numbers, use_threads=False).aggregate([(WEIGHT, "sum")])
    totals = grouped.rename_columns([*keys, WEIGHT]).select([*keys, WEIGHT])
    return totals.filter(pc.not_equal(totals.column(WEIGHT), 0))


def add_weight(rows: pa.Table, weight: int | pa.Array | pa.ChunkedArray) -> pa.Table:
    """The rows with their weights, or each with the same one.

    A query such as SELECT COUNT(*) uses no column; without columns, an Arrow table has no rows.
    """
    if isinstance(weight, int):
        weight = pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows)
    return rows.append_column(WEIGHT, weight) if rows.num_columns else pa.table({WEIGHT: weight})


def has_nested(schema: pa.Schema) -> bool:
    return any(pa.types.is_nested(field.type) for field in schema)


_WHOLE = ("boolean", "tinyint", "smallint", "int", "bigint", "decimal")
_ALIKE = frozenset((*_WHOLE, "string", "binary", "date", "timestamp", "timestamp_ntz"))


def can_net_here(types: Mapping[str, str]) -> bool:
    """Whether rows of these types are equal here exactly if they are equal in Spark.

    Zeros and NaNs of floats are not, and pyarrow cannot group by nested types.
    """
    return all(type_.partition("(")[0] in _ALIKE for type_ in types.values())


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
    """As `net_rows`; the rows have the columns of `types`, and the weight."""
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
