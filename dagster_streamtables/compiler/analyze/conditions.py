"""HAVING and QUALIFY over a value that is no boolean: Spark casts it to one.

    HAVING SUM(v) + 1        HAVING CAST(SUM(v) + 1 AS BOOLEAN)

WHERE, ON, FILTER and CASE take booleans alone; there, Spark refuses the query.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.operators import typed

_CLAUSES = (exp.Having, exp.Qualify)
_BOOLEAN = exp.DataType.build("boolean")
_TRUTHS = (exp.Predicate, exp.Connector, exp.Not, exp.Exists, exp.Boolean)


def settle_conditions(tree: exp.Expr) -> None:
    """Cast the conditions of a typed tree that may be no booleans."""
    for clause in tree.find_all(*_CLAUSES):
        condition = clause.this
        known = isinstance(condition.unnest(), _TRUTHS)
        known = known or (condition.type is not None and condition.type.is_type("boolean"))
        if not known:
            clause.set("this", typed(exp.cast(condition.copy(), _BOOLEAN), _BOOLEAN))
