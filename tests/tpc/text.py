"""What the texts of a benchmark lack for a table."""

from __future__ import annotations

from sqlglot import exp

_NAMED = (exp.Alias, exp.Column, exp.Star)


def name_outputs(query: exp.Query) -> None:
    """Give each output that its author did not name the name ``column_<position>``."""
    while not isinstance(query, exp.Select):
        query = query.left if isinstance(query, exp.SetOperation) else query.this
    named = [
        each if isinstance(each, _NAMED) else exp.alias_(each, f"column_{position}")
        for position, each in enumerate(query.expressions, start=1)
    ]
    query.set("expressions", named)
