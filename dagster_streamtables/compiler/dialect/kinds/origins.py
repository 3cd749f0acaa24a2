"""What a column of a query comes from: a column of a table, or outputs of subqueries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from dagster_streamtables.compiler.dialect.kinds.function_kinds import RECORDS
from dagster_streamtables.compiler.text.tables import table_name

_PAIRS = ("json_each", "jsonb_each", "json_each_text", "jsonb_each_text")


class Element(NamedTuple):
    """An element of an array that becomes rows."""

    array: exp.Expr


Origin = str | exp.Expr | Element | None
"""The type of a table's column in Spark, an output of a subquery, an element of an array, or None
if it is not known."""


class Origins:
    """Resolves the columns of a query as parsed, which are not qualified."""

    def __init__(self, tree: exp.Query, columns: Mapping[str, Mapping[str, str]]) -> None:
        """
        Args:
            tree: As parsed.
            columns: Table name in the query → its columns and their types in Spark.
        """
        self._columns = {
            name: {column.lower(): type_ for column, type_ in each.items()}
            for name, each in columns.items()
        }
        self._scopes = {id(scope.expression): scope for scope in traverse_scope(tree)}

    def of(self, column: exp.Column) -> list[Origin]:
        """What the column may be: one output for each side of a UNION. Empty if it is not found or
        several relations have it."""
        found = self._found(column)
        return found[0][1] if len(found) == 1 else []

    def relation_of(self, column: exp.Column) -> str | None:
        """The name by which the column's relation is known; None if it is not found, or if several
        relations have the column."""
        found = self._found(column)
        return found[0][0] if len(found) == 1 else None

    def _found(self, column: exp.Column) -> list[tuple[str, list[Origin]]]:
        query = column.find_ancestor(exp.Query)
        while query is not None and id(query) not in self._scopes:
            query = query.find_ancestor(exp.Query)
        scope = self._scopes.get(id(query)) if query is not None else None
        while scope is not None:
            found = [each for each in self._in_scope(column, scope) if each[1]]
            if found:
                return found
            scope = scope.parent
        return []

    def _in_scope(self, column: exp.Column, scope: Scope) -> Iterator[tuple[str, list[Origin]]]:
        qualifier, name = column.table.lower(), column.name.lower()
        for alias, (_, source) in scope.selected_sources.items():
            if not qualifier or qualifier == alias.lower():
                yield alias, self._of_source(source, name, scope, alias)

    def _of_source(
        self, source: exp.Expr | Scope, name: str, scope: Scope, alias: str
    ) -> list[Origin]:
        if isinstance(source, exp.Table):
            if not isinstance(source.this, exp.Identifier):
                return _of_function(source, name)
            known = self._columns.get(table_name(source), {})
            renamed = [each.lower() for each in source.alias_column_names]
            names = dict(zip(renamed or known, known, strict=False))
            return [known[names[name]]] if name in names else []
        if not isinstance(source, Scope):
            return [None]
        if not isinstance(source.expression, exp.Query):
            return _of_function(source.expression, name)
        return self._of_query(source.expression, name, _renamed(source.expression, scope, alias))

    def _of_query(self, query: exp.Query, name: str, renamed: list[str]) -> list[Origin]:
        sides = list(_sides(query))
        for place, output in enumerate(sides[0].selects):
            if output.is_star:
                return [None]
            called = renamed[place] if place < len(renamed) else output.alias_or_name
            if called.lower() == name:
                return [_output(side, place) for side in sides]
        return []


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
    while isinstance(rows, exp.Subquery):
        rows = rows.this
    if isinstance(rows, exp.Values):
        return _of_values(rows, names.index(name))
    unnest = relation if isinstance(relation, exp.Unnest) else function
    if isinstance(unnest, exp.Unnest):
        place = names.index(name)
        return [Element(unnest.expressions[place])] if place < len(unnest.expressions) else [None]
    if called in _PAIRS and name == names[0]:
        return ["string"]
    if called in RECORDS and len(function.expressions) == len(names) + 1:
        return [_declared(function.expressions[1 + names.index(name)].expression)]
    return [function if called else None]


def _of_values(values: exp.Values, place: int) -> list[Origin]:
    """The values of a column; NULL has the type of the others."""
    column = [row.expressions[place] for row in values.expressions if isinstance(row, exp.Tuple)
              and place < len(row.expressions)]  # fmt: skip
    return [each for each in column if not isinstance(each, exp.Null)]


def _declared(type_: exp.Expr) -> str:
    """A type of Postgres in Spark; JSON has none, and keeps its name."""
    spark = {exp.DType.TIMESTAMP: "timestamp_ntz", exp.DType.TIMESTAMPTZ: "timestamp"}
    return spark.get(type_.this) or type_.sql("spark")


def _output(query: exp.Query, place: int) -> Origin:
    outputs = query.selects[: place + 1]
    known = len(outputs) > place and not any(each.is_star for each in outputs)
    return outputs[place] if known else None


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


def _renamed(query: exp.Query, scope: Scope, alias: str) -> list[str]:
    """The names that an alias with a column list gives to the columns of a query."""
    mention = scope.selected_sources[alias][0]
    if isinstance(mention, exp.Table) and mention.alias_column_names:
        return mention.alias_column_names
    around = query.parent
    return around.alias_column_names if isinstance(around, exp.Subquery | exp.CTE) else []
