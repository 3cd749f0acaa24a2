"""-0.0 and 0.0: equal to SQL's `=` and GROUP BY, but different to readers.

`CAST(x AS STRING)`, `atan2` and readers of a table distinguish them, and a query returns the one
that it read, but GROUP BY turns both into 0.0. So wherever copies of whole rows are counted, rows
that differ in a zero count as different: they are also grouped by `zeros` of their columns, and
keep their values. Where the query itself groups or joins, SQL's equality applies.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dagster_streamtables.compiler.operators.columns import columns_in_form

# An unknown type may be a float.
_FLOATS = (exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE, exp.DataType.Type.UNKNOWN)


def has_zeros(type_: exp.DataType) -> bool:
    """Whether a value of the type may be or contain a float."""
    return any(part.this in _FLOATS for part in type_.find_all(exp.DataType))


def zeros(value: exp.Expr, type_: exp.DataType) -> exp.Expr:
    """An expression that differs for values that SQL considers equal but that are not the same."""
    text = exp.cast(value.copy(), "TEXT")
    if type_.this not in _FLOATS[:2]:
        return text
    zero = exp.EQ(this=value.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=zero, true=text)])


def zero_marks(types: Mapping[str, str], table: str | None = None) -> dict[str, str]:
    """For each column that may contain a float: an expression that distinguishes -0.0 from 0.0.

    Args:
        types: Column → type in Spark's spelling.
        table: The table that qualifies the columns.

    >>> zero_marks({"id": "bigint", "x": "double"}, "t")
    {'x': 'CASE WHEN `t`.`x` = 0 THEN CAST(`t`.`x` AS STRING) END'}
    """
    return columns_in_form(types, has_zeros, zeros, table)
