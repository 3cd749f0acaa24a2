"""``VALUES`` of Postgres: rows that a query writes itself, of constants or of a row before it."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.rules import arrays
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON
from dagster_streamtables.compiler.dialect.rules.functions import NUMBERS
from dagster_streamtables.compiler.dialect.rules.query import Query, call

_OPERAND, _UNNAMED = "_values", "st_values"
"""The alias by which the parser makes a SELECT of a VALUES that stands alone, and that of one in
FROM without any."""


def name_columns(tree: exp.Query) -> None:
    """Give the columns of VALUES their names in Postgres, and IN (VALUES …) its list.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT v.column1 FROM (VALUES (1)) AS v", dialect="postgres")
    >>> name_columns(tree)
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
        names = [f"column{at}" for at, _ in enumerate(rows_of(node)[0], 1)]
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


def rows(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``(VALUES (a), (b)) AS v(k)`` in a subquery, of the row around it: an array of rows."""
    _require_one_type(node, query)
    alias = node.args.get("alias")
    if alias is None or not node.find(exp.Column):
        return None
    for column in list(node.find_all(exp.Column)):
        relation = query.kinds.origins.relation_of(column) if not column.table else None
        if relation is not None:  # a table function of Spark sees no columns without it
            column.set("table", exp.to_identifier(relation))
    columns = [each.copy() for each in alias.args["columns"]]
    return arrays.relation(_inline(node), alias.this.copy(), columns, inside=node)


def _require_one_type(node: exp.Expr, query: Query) -> None:
    """Of a text beside a number, Postgres makes a number."""
    for column in zip(*rows_of(node), strict=True):
        kinds = {query.kind(each) for each in column if not isinstance(each, exp.Null)}
        if len(kinds) > 1 and not kinds <= set(NUMBERS):
            shown = " and ".join(sorted(kind.value for kind in kinds))
            raise query.refusal(node, f"a column has values of several types: {shown}",
                                "cast them to one type", called="VALUES")  # fmt: skip


def lateral_values(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``LATERAL (VALUES (t.a), (t.b)) AS e(v)``, as an array of rows; None for any other."""
    inner = node.this
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    alias = node.args.get("alias")
    if not isinstance(inner, exp.Values) or alias is None:
        return None
    return exp.Lateral(this=_inline(inner), alias=alias.copy())


def _inline(values: exp.Expr) -> exp.Expr:
    structs = [
        call("NAMED_STRUCT", *(part for at, each in enumerate(row)
                               for part in (exp.Literal.string(f"c{at}"), each.copy())))
        for row in rows_of(values)
    ]  # fmt: skip
    return call("INLINE", call("ARRAY", *structs))


def table(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``ONLY t``: a Delta table has no tables that inherit from it."""
    node.set("only", None)
    return COMMON.mended[exp.Table](node, query)
