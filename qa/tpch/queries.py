"""The texts of TPC-H as stream tables need them: in Spark's SQL, named, and with one answer.

The rows that a LIMIT keeps are one set only if the ORDER BY before it leaves no ties. That of Q2
and Q21 leaves none; Q3, Q10 and Q18 are given the key of what they return as their last column.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import sqlglot
from sqlglot import exp

from qa.tpc.generated import chosen
from qa.tpc.text import name_outputs

TIES = {3: "l_orderkey", 10: "c_custkey", 18: "o_orderkey"}
"""By query, the column that orders the rows which its ORDER BY leaves in any order."""

_FRACTION = Decimal("0.0001")
"""Q11 looks for this part of a sum at scale factor 1. The specification divides it by the scale
factor, and DuckDB's text does not: at a small scale every row would qualify."""


def queries_of(made: Path, scale: float, numbers: str) -> dict[int, str]:
    """Queries in Spark's SQL, by number: those that are named with commas between, or all."""
    return {number: in_spark(number, text, scale) for number, text in chosen(made, numbers).items()}


def in_spark(number: int, text: str, scale: float) -> str:
    """One query in Spark's SQL.

    >>> print(in_spark(18, "SELECT k, SUM(x) FROM t GROUP BY k ORDER BY k LIMIT 1", 1))
    SELECT
      k,
      SUM(x) AS column_2
    FROM t
    GROUP BY
      k
    ORDER BY
      k NULLS LAST,
      o_orderkey NULLS LAST
    LIMIT 1
    """
    tree = sqlglot.parse_one(text, read="duckdb")
    assert isinstance(tree, exp.Select)
    if number in TIES:
        tree = tree.order_by(TIES[number], dialect="duckdb")
    name_outputs(tree)
    if number == 11:
        _scale_fraction(tree, scale)
    return tree.sql("spark", pretty=True)


def _scale_fraction(tree: exp.Select, scale: float) -> None:
    scaled = exp.Literal.number(f"{_FRACTION / Decimal(str(scale)):f}")
    [literal] = [
        each
        for each in tree.find_all(exp.Literal)
        if not each.is_string and Decimal(each.this) == _FRACTION
    ]
    literal.replace(scaled)
