"""VALUES: the names of its columns, which each dialect counts in its own way."""

from __future__ import annotations

from sqlglot import exp

_OPERAND, _UNNAMED = "_values", "st_values"
"""The aliases of a VALUES that stands alone, given by the parser, and of another without one."""


def name_columns(tree: exp.Query, prefix: str, first: int) -> None:
    """Give the columns of VALUES the names that the dialect has for them: a prefix and a number,
    that of the first column given. And give IN (VALUES …) its list.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT v.column1 FROM (VALUES (1)) AS v", dialect="postgres")
    >>> name_columns(tree, "column", 1)
    >>> tree.sql("postgres")
    'SELECT v.column1 FROM (VALUES (1)) AS v(column1)'
    """
    for node in list(tree.find_all(exp.Values)):
        around = node.parent
        while isinstance(around, exp.Subquery):
            around = around.parent
        if isinstance(around, exp.In):
            _list(around, node)
            continue
        holder = around if isinstance(around, exp.Lateral) else node
        names = [f"{prefix}{at}" for at, _ in enumerate(rows_of(node)[0], first)]
        alias = holder.args.get("alias")
        if alias is None and isinstance(around, exp.From | exp.Join):
            alias = exp.TableAlias(this=exp.to_identifier(_UNNAMED))
            holder.set("alias", alias)
        if alias is not None:
            given = [each.copy() for each in alias.args.get("columns") or []]
            more = [exp.to_identifier(each) for each in names[len(given) :]]
            alias.set("columns", [*given, *more])
        outputs = around.parent if isinstance(around, exp.From) else None
        if outputs is not None and alias is not None and alias.name == _OPERAND:
            outputs.set("expressions", [exp.column(each) for each in names])


def _list(around: exp.In, node: exp.Values) -> None:
    found = rows_of(node)
    if all(len(row) == 1 for row in found):
        around.set("query", None)
        around.set("expressions", [row[0].copy() for row in found])


def rows_of(node: exp.Expr) -> list[list[exp.Expr]]:
    """The rows of a VALUES."""
    return [
        list(row.expressions) if isinstance(row, exp.Tuple) else [row] for row in node.expressions
    ]
