"""The texts of TPC-DS as stream tables need them: in Spark's SQL, named, and with one answer.

The rows that a LIMIT keeps are one set only if the ORDER BY before it leaves no ties, which the
texts do not see to. So what they return is ordered by all of its columns at last: rows that are
still tied are equal. (Those that return ``*`` are ordered by a key of it.)
"""

from __future__ import annotations

from pathlib import Path

import sqlglot
from sqlglot import exp

from qa.tpc.generated import chosen
from qa.tpc.text import name_outputs


def queries_of(made: Path, numbers: str) -> dict[int, str]:
    """Queries in Spark's SQL, by number: those that are named with commas between, or all."""
    return {number: in_spark(text) for number, text in chosen(made, numbers).items()}


def in_spark(text: str) -> str:
    """One query in Spark's SQL.

    >>> print(in_spark("SELECT k, SUM(x) AS x FROM t GROUP BY k ORDER BY x DESC LIMIT 1"))
    SELECT
      k,
      SUM(x) AS x
    FROM t
    GROUP BY
      k
    ORDER BY
      x DESC,
      1,
      2
    LIMIT 1
    """
    tree = sqlglot.parse_one(text, read="duckdb")
    assert isinstance(tree, exp.Query)
    name_outputs(tree)
    if tree.args.get("limit") and not tree.is_star:
        positions = range(1, len(tree.selects) + 1)
        keys = [exp.Literal.number(position) for position in positions]
        tree = tree.order_by(*(exp.Ordered(this=key, nulls_first=True) for key in keys))
    return tree.sql("spark", pretty=True)
