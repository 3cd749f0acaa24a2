"""``row_to_json(t)`` and ``jsonb_agg(t)``: a relation's name that stands for all of its columns."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from dagster_streamtables.compiler.text.tables import table_name

_BUILT = {
    "row_to_json": "json_build_object", "to_json": "json_build_object",
    "json_agg": "json_build_object", "to_jsonb": "jsonb_build_object",
    "jsonb_agg": "jsonb_build_object",
}  # fmt: skip
_AGGREGATES = ("json_agg", "jsonb_agg")


def spell_out(tree: exp.Query, columns: Mapping[str, Mapping[str, str]]) -> None:
    """Name each column of a relation that becomes JSON as a whole.

    A relation whose rows an outer join may fill with NULLs stays as it is: there the row itself is
    NULL in Postgres.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT row_to_json(t) AS r FROM t", dialect="postgres")
    >>> spell_out(tree, {"t": {"id": "int", "s": "string"}})
    >>> tree.sql("postgres")
    "SELECT JSON_BUILD_OBJECT('id', t.id, 's', t.s) AS r FROM t"
    """
    for scope in traverse_scope(tree):
        for node in list(scope.find_all(exp.Anonymous)):
            name = node.name.lower()
            if name in _BUILT and len(node.expressions) == 1:
                _spell(node, name, scope, columns)


def _spell(
    node: exp.Anonymous, name: str, scope: Scope, columns: Mapping[str, Mapping[str, str]]
) -> None:
    argument = node.expressions[0]
    row = argument.this if isinstance(argument, exp.Order) else argument
    if not isinstance(row, exp.Column) or row.table or row.name not in scope.selected_sources:
        return
    names = _names(row.name, scope, columns)
    if not names or row.name.lower() in names or _may_be_null(scope):
        return
    pairs = [part for each in names
             for part in (exp.Literal.string(each), exp.column(each, table=row.name))]  # fmt: skip
    built = exp.Anonymous(this=_BUILT[name], expressions=pairs)
    if name in _AGGREGATES:
        row.replace(built)
    else:
        node.replace(built)


def _names(alias: str, scope: Scope, columns: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The columns of a relation; none where they are not known."""
    node, source = scope.selected_sources[alias]
    renamed = [each.lower() for each in node.alias_column_names]
    if isinstance(source, exp.Table):
        return renamed or list(columns.get(table_name(source), {}))
    selects = source.expression.selects if isinstance(source.expression, exp.Query) else []
    if any(each.is_star for each in selects):
        return []
    return renamed or [each.alias_or_name for each in selects]


def _may_be_null(scope: Scope) -> bool:
    joins = scope.expression.args.get("joins") or []
    return any(join.side for join in joins)
