"""WITH inside of a subquery that is an expression, or LATERAL: its definitions become subqueries.

    EXISTS (WITH t AS (q) SELECT 1 FROM t WHERE …)  →  EXISTS (SELECT 1 FROM (q) AS t WHERE …)

What mentions the row around it is asked for each row, and a definition has no place in a question.
"""

from __future__ import annotations

from sqlglot import exp

_RELATIONS = (exp.From, exp.Join, exp.CTE, exp.SetOperation)


def open_definitions(tree: exp.Query) -> None:
    """Replace the names of WITH, in each such subquery, by what they mean."""
    for query in list(tree.find_all(exp.Query)):
        clause = query.args.get("with_")
        if clause is None or clause.args.get("recursive") or not _is_asked(query):
            continue
        query.set("with_", None)
        meanings: dict[str, exp.CTE] = {}
        for cte in clause.expressions:
            _put_in(cte.this, meanings)
            meanings[cte.alias.lower()] = cte
        _put_in(query, meanings)


def _is_asked(query: exp.Query) -> bool:
    around = query.parent
    while isinstance(around, exp.Subquery):
        around = around.parent
    return around is not None and not isinstance(around, _RELATIONS)


def _put_in(query: exp.Expr, meanings: dict[str, exp.CTE]) -> None:
    for table in list(query.find_all(exp.Table)):
        cte = meanings.get(table.name.lower())
        if cte is None or table.db or not isinstance(table.this, exp.Identifier):
            continue
        alias = table.args.get("alias")
        name = alias.this if alias is not None and alias.this else table.this
        columns = (alias.columns if alias is not None else None) or cte.alias_column_names
        columns = [c if isinstance(c, exp.Expr) else exp.to_identifier(c) for c in columns]
        named = exp.TableAlias(this=name.copy(), columns=[each.copy() for each in columns])
        meant = exp.Subquery(this=cte.this.copy(), alias=named, joins=table.args.get("joins"))
        table.replace(meant)
