"""The constructs of the generator, each behind a switch with a weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

CONSTRUCTS: Mapping[str, float] = {
    # FROM
    "join": 3, "outer join": 3, "cross join": 1, "using": 2, "natural join": 1, "semi join": 1,
    "anti join": 1, "chain by names": 1, "merged column": 1, "inequality join": 1,
    "derived table": 3, "column aliases": 1, "cte": 2,
    "shared cte": 2, "recursion": 1, "values": 1, "lateral": 3, "left lateral": 2,
    "lateral top": 2, "lateral aggregate": 2, "explode": 2, "lateral view": 1, "pivot": 1,
    "explode output": 1,
    # SELECT
    "star": 1, "distinct": 2, "union": 2, "union all": 2, "intersect": 1, "intersect all": 1,
    "except": 1, "except all": 1, "limit": 2, "offset": 1, "order by": 1,
    # scalar expressions
    "case": 2, "in list": 1, "like": 1, "lambda": 1, "array": 1, "struct": 1, "timestamp": 1,
    "null-safe": 1, "truth": 1, "now": 1,
    # aggregates
    "aggregate": 5, "grand total": 2, "having": 2, "filter clause": 2, "ordinal": 1,
    "count distinct": 1, "sum distinct": 1, "grouping sets": 1, "cube": 1, "rollup": 1,
    "grouping": 1, "bool aggregate": 1, "bit aggregate": 1, "count_if": 1, "collect": 1,
    "listagg": 1, "variance": 1, "covariance": 1, "regression": 1, "correlation": 0.3,
    "percentile": 1, "mode": 1, "max_by": 1, "any_value": 1, "approximate": 0.5, "moments": 0.5,
    # windows
    "window": 4, "named window": 1, "frame": 2, "range frame": 2, "window in expression": 1,
    "window over groups": 1, "window filter": 1, "qualify": 2,
    # subqueries
    "exists": 2, "not exists": 2, "in subquery": 2, "not in subquery": 2, "row in subquery": 1,
    "scalar subquery": 2, "correlated scalar": 2, "scalar limit": 1, "any": 1, "all": 1,
    "subquery under or": 1, "subquery in output": 2, "subquery in having": 1, "subquery in on": 1,
    "subquery in key": 1, "exists list": 1, "joins in subquery": 1, "outer name in list": 1,
}  # fmt: skip
"""Construct → weight. What every query has (scans, filters, projections) has no switch."""

OF_SPARK: Mapping[str, float] = {
    # functions
    "text": 1, "number": 1, "date": 1, "instant": 1, "array function": 1, "json": 1, "map": 2,
    "variant": 1, "more aggregates": 2,
    # clauses
    "from first": 1, "pipe": 2, "group by all": 1, "alias of output": 1, "unpivot": 1,
    "window of time": 1, "loud": 1, "comment": 1, "other case": 1, "star of table": 1,
    "star except": 1, "keyword names": 1,
}  # fmt: skip
"""What only Spark has, or DuckDB takes for something else: for the engine that runs on Spark."""

IMPLIED: Mapping[str, tuple[str, ...]] = {
    "join": ("using", "natural join", "inequality join"),
    "cte": ("shared cte",),
    "lateral": ("left lateral", "lateral top", "lateral aggregate"),
    "limit": ("offset",),
    "aggregate": (
        "having", "filter clause", "ordinal", "grouping sets", "cube", "rollup", "grouping",
        "grand total",
    ),
    "window": (
        "named window", "frame", "range frame", "window in expression", "window over groups",
        "window filter",
    ),
    "correlated scalar": ("subquery in having",),
}  # fmt: skip
"""A word of `--only` that stands for its details too."""
PLAIN = frozenset({"join", "aggregate", "derived table", "case"})
"""What stays switched on when `--only` chooses: the ground the chosen ones stand on."""


@dataclass(frozen=True)
class Switches:
    """What may occur in one query, and how often against the others."""

    weights: Mapping[str, float]

    def __getitem__(self, construct: str) -> float:
        return self.weights.get(construct, 0.0)

    def some(self, random: Random, share: float = 0.35) -> Switches:
        """A random part of the constructs: queries of few kinds go deeper than those of all."""
        return Switches({name: w for name, w in self.weights.items() if random.random() < share})


def all_switches(*, of_spark: bool = False) -> Switches:
    # Spark's CORR divides by zero where all values are equal, and it has no `= ANY (SELECT …)`.
    not_there = {"correlation": 0.0, "any": 0.0, "all": 0.0}
    return Switches({**CONSTRUCTS, **({**OF_SPARK, **not_there} if of_spark else {})})


def only(words: Iterable[str]) -> Switches:
    """The named constructs and the details they stand for, over plain queries.

    Raises:
        ValueError: There is no construct of that name.
    """
    chosen: set[str] = set()
    known = {**CONSTRUCTS, **OF_SPARK}
    for word in words:
        if word not in known:
            raise ValueError(f'there is no construct "{word}"; there are {", ".join(known)}')
        chosen |= {word, *IMPLIED.get(word, ())}
    kept = chosen | PLAIN
    weights = {name: w * (2 if name in chosen else 1) for name, w in known.items()}
    return Switches({name: w for name, w in weights.items() if name in kept})
