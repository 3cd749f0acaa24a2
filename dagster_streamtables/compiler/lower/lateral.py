"""LATERAL with a subquery: a question whose answer is rows beside each row."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dagster_streamtables.compiler.lower.pushdown import filtered
from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.lower.subqueries import Asked, Subqueries, check_seen
from dagster_streamtables.compiler.operators import Lateral, Operator, type_of
from dagster_streamtables.compiler.text.column_names import flat


def lateral(
    left: Operator,
    query: exp.Query,
    alias: str,
    names: list[str],
    scope: Scope,
    subqueries: Subqueries,
) -> Callable[[bool, exp.Expr | None], Operator]:
    """LATERAL: each row joined with the rows of its answer."""
    asked = Asked(frozenset(left.schema))
    question = subqueries.query(query, asked, scope)
    outputs = query.named_selects
    made = tuple(
        (flat(scope.own(alias), name), type_of(each))
        for name, each in zip(names or outputs, query.selects, strict=True)
    )

    def joined(outer: bool, condition: exp.Expr | None) -> Operator:
        if outer:
            on = condition if condition is not None else exp.true()
            rows = Lateral(left, tuple(asked.rights), question, tuple(asked.links), made, on)
            check_seen(rows, query)
            return rows
        rows = Lateral(left, tuple(asked.rights), question, tuple(asked.links), made, None)
        check_seen(rows, query)
        return rows if condition in (None, exp.true()) else filtered(rows, [condition])

    return joined
