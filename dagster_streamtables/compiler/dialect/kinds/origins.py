"""What a column of a query comes from: a column of a table, or outputs of subqueries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import RECORDS
from dagster_streamtables.compiler.scope.from_columns import StarRules
from dagster_streamtables.compiler.scope.mentions import among, levels_around
from dagster_streamtables.compiler.scope.scopes import Scopes
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.table_mentions import (
    definition_of,
    relations_in,
    table_name,
)

_PAIRS = ("json_each", "jsonb_each", "json_each_text", "jsonb_each_text")
_SPARK_NAMES = {exp.DType.TIMESTAMP: "timestamp_ntz", exp.DType.TIMESTAMPTZ: "timestamp"}
"""Of types of Postgres; the others are printed as Spark's, and JSON keeps its name."""
Columns = Mapping[str, Mapping[str, str]]
"""Table name in the query → its columns and their types in Spark."""


class Element(NamedTuple):
    """An element of an array that becomes rows."""

    array: exp.Expr


Origin = str | exp.Expr | Element | None
"""The type of a table's column in Spark, an output of a subquery, an element of an array, or None
if it is not known."""


class Origins:
    """Finds what the columns of a query as parsed come from; of a recursion, its base decides."""

    def __init__(self, tree: exp.Query, columns: Columns, rules: StarRules) -> None:
        self._types = {
            name: {column.lower(): type_ for column, type_ in each.items()}
            for name, each in columns.items()
        }
        # A table whose columns are not known has none: names are looked for in the others.
        self._scopes = Scopes(lambda table: list(columns.get(table_name(table), ())), rules)
        # With the SELECT: the id of a node that is gone may be given to another.
        self._relations = {
            id(each): (each, relations_in(each)) for each in tree.find_all(exp.Select)
        }
        """As they are before rules replace relations."""

    def of(self, column: exp.Column) -> list[Origin]:
        """What the column may be: one output for each side of a UNION. Empty if it is not found or
        several relations have it."""
        found = self._resolve(column)
        try:
            return self._of_column(*found) if found else []
        except Refusal:  # of a relation below, not all columns are known
            return []

    def relation_of(self, column: exp.Column) -> str | None:
        """The name by which the column's relation is known; None if it is not found, or if several
        relations have the column."""
        found = self._resolve(column)
        return found[1].table or None if found else None

    def _resolve(self, mention: exp.Column) -> tuple[exp.Select, exp.Column] | None:
        """The SELECT that brings a column, and the column with the alias of its relation."""
        select = mention.find_ancestor(exp.Select)
        if select is None:
            return None
        try:
            levels = [(select, self._scopes.columns(select)), *levels_around(select, self._scopes)]
            for around, columns in levels:
                found = among(columns, exp.column(mention.name, mention.table or None))
                if found is None or isinstance(found, exp.Dot):  # a field of a column
                    continue
                column = found.find(exp.Column)
                return (around, column) if column is not None else None
        except Refusal:
            pass
        return None

    def _of_column(self, select: exp.Select, column: exp.Column) -> list[Origin]:
        _, relations = self._relations.get(id(select), (select, []))
        alias = column.table.lower()
        relation = next((e for e in relations if e.alias_or_name.lower() == alias), None)
        known = self._scopes.columns(select).with_value(column)
        place = known.place if known is not None else 0
        return self._of_relation(relation, column.name.lower(), place) if relation else []

    def _of_relation(self, relation: exp.Expr, name: str, place: int) -> list[Origin]:
        query = relation.this if isinstance(relation, exp.Subquery | exp.Lateral) else None
        if isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier):
            definition = definition_of(relation)
            if definition is None:
                types = list[Origin](self._types.get(table_name(relation), {}).values())
                return types[place : place + 1]
            query = definition.this
        query = query.unnest() if isinstance(query, exp.Subquery) else query
        if not isinstance(query, exp.Query):
            return _of_function(relation, name)
        return [origin for side in _sides(query) for origin in self._of_output(side, place)]

    def _of_output(self, query: exp.Query, place: int) -> list[Origin]:
        for item in query.selects if isinstance(query, exp.Select) else ():
            if item.is_star and isinstance(query, exp.Select):
                columns = self._scopes.expand(item, query)
                if place < len(columns):
                    column = columns[place].value.find(exp.Column)
                    return self._of_column(query, column) if column is not None else [None]
                place -= len(columns)
            elif place == 0:
                return [item]
            else:
                place -= 1
        return [None]


def _of_function(relation: exp.Expr, name: str) -> list[Origin]:
    """A column of a function in FROM, as the call that makes it."""
    alias, function = relation.args.get("alias"), relation.this
    if alias is None:
        return []
    called = function.name.lower() if isinstance(function, exp.Anonymous) else ""
    names = [each.name.lower() for each in alias.args.get("columns") or []]
    names = names or (["key", "value"] if called in _PAIRS else [alias.name.lower()])
    if name not in names:
        return []
    rows = function if isinstance(relation, exp.Lateral) else relation
    rows = rows.unnest() if isinstance(rows, exp.Subquery) else rows
    if isinstance(rows, exp.Values):
        place = names.index(name)
        column = [row.expressions[place] for row in rows.expressions if isinstance(row, exp.Tuple)
                  and place < len(row.expressions)]  # fmt: skip
        return [each for each in column if not isinstance(each, exp.Null)]
    unnest = relation if isinstance(relation, exp.Unnest) else function
    if isinstance(unnest, exp.Unnest):
        place = names.index(name)
        return [Element(unnest.expressions[place])] if place < len(unnest.expressions) else [None]
    if called in _PAIRS and name == names[0]:
        return ["string"]
    if called in RECORDS and len(function.expressions) == len(names) + 1:
        type_ = function.expressions[1 + names.index(name)].expression
        return [_SPARK_NAMES.get(type_.this) or type_.sql("spark")]
    return [function if called else None]


def _sides(query: exp.Query) -> Iterator[exp.Query]:
    """The SELECTs whose rows a query has; of a recursion only its base, which decides the types."""
    around = query.parent.parent if isinstance(query.parent, exp.CTE) else None
    if isinstance(around, exp.With) and around.recursive and isinstance(query, exp.SetOperation):
        yield from _sides(query.left)  # type: ignore[arg-type]
    elif isinstance(query, exp.SetOperation):
        for side in (query.left, query.right):
            yield from _sides(side)  # type: ignore[arg-type]
    elif isinstance(query, exp.Subquery):
        yield from _sides(query.this)
    else:
        yield query
