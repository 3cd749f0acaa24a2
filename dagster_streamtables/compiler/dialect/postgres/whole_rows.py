"""``row_to_json(t)`` and ``jsonb_agg(t)``: a relation's name that stands for all of its columns."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dagster_streamtables.compiler.scope.from_columns import POSTGRES
from dagster_streamtables.compiler.scope.scopes import Scopes
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.tables import own_aliases, table_name

_BUILT = {
    "row_to_json": "json_build_object", "to_json": "json_build_object",
    "json_agg": "json_build_object", "to_jsonb": "jsonb_build_object",
    "jsonb_agg": "jsonb_build_object",
}  # fmt: skip
_AGGREGATES = ("json_agg", "jsonb_agg")


def expand_row_references(tree: exp.Query, columns: Mapping[str, Mapping[str, str]]) -> None:
    """Name each column of a relation that becomes JSON as a whole.

    A relation whose rows an outer join may fill with NULLs stays as it is: there the row itself is
    NULL in Postgres.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT row_to_json(t) AS r FROM t", dialect="postgres")
    >>> expand_row_references(tree, {"t": {"id": "int", "s": "string"}})
    >>> tree.sql("postgres")
    "SELECT JSON_BUILD_OBJECT('id', t.id, 's', t.s) AS r FROM t"
    """
    scopes = Scopes(lambda table: list(columns.get(table_name(table), ())), POSTGRES)
    for node in list(tree.find_all(exp.Anonymous)):
        select = node.find_ancestor(exp.Select)
        if node.name.lower() in _BUILT and len(node.expressions) == 1 and select is not None:
            _spell(node, select, scopes)


def _spell(node: exp.Anonymous, select: exp.Select, scopes: Scopes) -> None:
    name, argument = node.name.lower(), node.expressions[0]
    row = argument.this if isinstance(argument, exp.Order) else argument
    if not isinstance(row, exp.Column) or row.table or row.name not in own_aliases(select):
        return
    names = _names(row.name, select, scopes)
    if not names or row.name.lower() in names or _may_be_null(select):
        return
    pairs = [part for each in names
             for part in (exp.Literal.string(each), exp.column(each, table=row.name))]  # fmt: skip
    built = exp.Anonymous(this=_BUILT[name], expressions=pairs)
    if name in _AGGREGATES:
        row.replace(built)
    else:
        node.replace(built)


def _names(alias: str, select: exp.Select, scopes: Scopes) -> list[str]:
    """The columns of a relation; none where they are not known."""
    try:
        return [each.name for each in scopes.columns(select).star(alias, POSTGRES)]
    except Refusal:
        return []


def _may_be_null(select: exp.Select) -> bool:
    return any(join.side for join in select.args.get("joins") or [])
