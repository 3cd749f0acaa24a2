"""What the texts of a benchmark lack for a table."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler import is_storable, storable


def name_outputs(query: exp.Query) -> None:
    """Give each output a name that a column of a Delta table may have."""
    while not isinstance(query, exp.Select):
        query = query.left if isinstance(query, exp.SetOperation) else query.this
    named = [_named(each, position) for position, each in enumerate(query.expressions, start=1)]
    query.set("expressions", named)


def _named(output: exp.Expr, position: int) -> exp.Expr:
    if isinstance(output, exp.Alias):
        fits = is_storable(output.alias)
        return output if fits else exp.alias_(output.this, storable(output.alias))
    inside = output.unnest()
    if isinstance(inside, exp.Column | exp.Star):
        return inside
    return exp.alias_(output, f"column_{position}")
