"""The columns that tell apart the rows of a SELECT that tie in an ORDER BY of its windows.

    SELECT *, SUM(is_new) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS session
    FROM (SELECT *, t - LAG(t) OVER (PARTITION BY k ORDER BY t) > 30 AS is_new FROM events) AS e

Windows around windows must take rows that tie in one order, as where Spark sorts them once:
`is_new` belongs to the first of two events at the same time. So the outer window orders them first
by what the inner one did, as far as its SELECT list has those columns, and then by its own.

Copies of a row are told apart by `tie_numbers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.analyze.storable_types import UNCOMPARABLE
from dagster_streamtables.compiler.operators.columns import type_of
from dagster_streamtables.compiler.scope.from_columns import HALF
from dagster_streamtables.compiler.text.aggregate_calls import is_grouped
from dagster_streamtables.compiler.text.aliases import own_columns

IsOrdered = Callable[[exp.Select], bool]
"""Whether a SELECT has windows that tell apart rows that tie."""
Key = tuple[str, str]


@dataclass(frozen=True)
class TieColumns:
    """
    Args:
        is_ordered: Whether a SELECT has windows that tell apart rows that tie.
        aliases: The names that can qualify a column in the text, in lower case.
    """

    is_ordered: IsOrdered
    aliases: frozenset[str]

    def of(self, select: exp.Select) -> list[exp.Column]:
        """The columns, the most significant first. Rows that agree on them are the same."""
        given = [found for _, found in self._inherited(select)]
        own = [each for each in _mentioned(select) if _key(each) not in {*map(_key, given)}]
        if select.parent is not None:
            shown = _outputs(select)
            own.sort(key=lambda each: _key(each) not in shown)
        return [*given, *own]

    def open_in(self, tree: exp.Query) -> Iterator[tuple[exp.Select, list[str]]]:
        """The SELECTs below another with windows, each with the columns that this one lacks."""
        for select in filter(self.is_ordered, tree.find_all(exp.Select)):
            for inner in {id(each): each for each, _ in self._below(select)}.values():
                shown = _outputs(inner)
                lacks = [each.name for each in self.of(inner) if _key(each) not in shown]
                yield inner, lacks

    def _inherited(self, select: exp.Select) -> Iterator[tuple[exp.Select, exp.Column]]:
        """The columns that told rows apart below, under their names in this SELECT."""
        relations = relations_of(select)
        for relation in relations:
            alias = relation.alias_or_name
            if len(relations) > 1 and alias.lower() not in self.aliases:
                continue
            for inner, below in self._told_apart(relation):
                shown = _outputs(inner)
                names = _renamed(relation, inner)
                for each in below:
                    if _key(each) in shown:
                        name = names[shown[_key(each)]]
                        made = exp.column(name, table=alias, quoted=True)
                        made.type = type_of(each)
                        yield inner, made

    def _below(self, select: exp.Select) -> Iterator[tuple[exp.Select, list[exp.Column]]]:
        for relation in relations_of(select):
            yield from self._told_apart(relation)

    def _told_apart(self, relation: exp.Expr) -> Iterator[tuple[exp.Select, list[exp.Column]]]:
        inner = derived(relation)
        if inner is None or is_grouped(inner):
            return
        if self.is_ordered(inner):
            yield inner, self.of(inner)
        else:
            given = [found for _, found in self._inherited(inner)]
            if given:
                yield inner, given


def is_unordered(node: exp.Expr) -> bool:
    """Whether values of its type cannot be sorted."""
    return bool(node.type) and any(
        part.this in UNCOMPARABLE for part in node.type.find_all(exp.DataType)
    )


def _mentioned(select: exp.Select) -> list[exp.Column]:
    joins = select.args.get("joins") or []
    unseen = {join.alias_or_name for join in joins if join.kind in HALF}
    told = (c for c in own_columns(select) if c.table not in unseen and not is_unordered(c))
    return list({_key(each): each for each in told}.values())


def _key(column: exp.Column) -> Key:
    return column.table, column.name


def _outputs(select: exp.Select) -> dict[Key, int]:
    """The columns that a SELECT returns as they are, with their places."""
    outputs = enumerate(each.unalias() for each in select.selects)
    return {_key(each): place for place, each in outputs if isinstance(each, exp.Column)}


def _renamed(relation: exp.Expr, inner: exp.Select) -> list[str]:
    return relation.alias_column_names or inner.named_selects


def relations_of(select: exp.Select) -> list[exp.Expr]:
    """The relations that a SELECT joins."""
    clause = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or []]
    return [clause.this, *joined] if clause is not None else joined


def derived(relation: exp.Expr) -> exp.Select | None:
    """The SELECT of a subquery in FROM, or of a common table expression."""
    query = relation.this if isinstance(relation, exp.Subquery) else _definition(relation)
    return query if isinstance(query, exp.Select) else None


def _definition(table: exp.Expr) -> exp.Expr | None:
    around = table.parent
    while around is not None and isinstance(table, exp.Table) and not table.db:
        clause = around.args.get("with_")
        named = [] if clause is None or clause.recursive else clause.expressions
        for cte in named:
            if cte.alias == table.name:
                return cte.this
        around = around.parent
    return None
