"""-0.0 and 0.0: one value to SQL's `=` and GROUP BY, two to whoever reads them.

`CAST(x AS STRING)`, `atan2` and the reader of a table tell them apart, and a query hands on the one
that it found. GROUP BY makes 0.0 of both. So where the copies of whole rows are counted, rows that
differ in a zero are two rows: they are grouped by `zeros` of their columns too, and shown as they
came. Where the query itself groups or joins, its own equality holds.
"""

from __future__ import annotations

from sqlglot import exp

# A type that could not be told may be a float.
_FLOATS = (exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE, exp.DataType.Type.UNKNOWN)


def has_zeros(type_: exp.DataType) -> bool:
    """Whether a value of the type may be or hold a float."""
    return any(part.this in _FLOATS for part in type_.find_all(exp.DataType))


def zeros(value: exp.Expr, type_: exp.DataType) -> exp.Expr:
    """What differs between two values that are equal to SQL and are not the same."""
    text = exp.cast(value.copy(), "TEXT")
    if type_.this not in _FLOATS[:2]:
        return text
    zero = exp.EQ(this=value.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=zero, true=text)])
