"""A FROM clause that mentions the outer row: in a derived table, a table function, or in ON.

    (SELECT MAX(q.x) FROM (SELECT a.x FROM u AS a WHERE a.y = t.y LIMIT 3) AS q JOIN v ON …)

It is no operator, since its rows differ from row to row. So it stays in the question: a derived
table that mentions the row is a question of its own, with its own operators inside, a table
function is asked as it is, and each other relation is an operator. What ON of an inner join says
of the row moves to WHERE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.analyze.joins_in_parentheses import joins_inside, kind_of
from dagster_streamtables.compiler.lower.questions import require_no_values
from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.operators.left_linear import conjuncts
from dagster_streamtables.compiler.text.aliases import free_tables
from dagster_streamtables.compiler.text.column_names import flat
from dagster_streamtables.compiler.text.current_time import is_now
from dagster_streamtables.compiler.text.refusal import Refusal

_WHY = (
    "a FROM whose rows differ from row to row is asked as a whole, of tables, derived tables, "
    "table functions, inner joins, and LEFT JOINs that keep it"
)
_FIX = "move the condition on the row around to WHERE of the subquery, or choose mode FULL"


def conditions_in_where(query: exp.Select, around: set[str]) -> exp.Select:
    """The query with the conditions of its inner joins that mention the outer row in WHERE."""
    query = query.copy()
    if any(join.side or joins_inside(join) for join in _joins(query)):
        return query
    for join in _joins(query):
        parts = conjuncts(join.args["on"]) if join.args.get("on") else []
        moved = [part for part in parts if free_tables(part) & around]
        if moved and join.kind in ("", "INNER"):
            kept = [part for part in parts if part not in moved]
            join.set("on", exp.and_(*kept) if kept else exp.true())
            query = query.where(*moved)
    return query


def mentions_row(query: exp.Select, around: set[str]) -> bool:
    """Whether a derived table, a table function or ON mentions a table around."""
    clause = query.args.get("from_")
    relations = [clause.this] if clause else []
    relations += [join.this for join in _joins(query)]
    conditions = [join.args["on"] for join in _joins(query) if join.args.get("on")]
    derived = (each for each in relations if not isinstance(each, exp.Lateral))
    return any(free_tables(each) & around for each in (*derived, *conditions))


@dataclass
class CorrelatedFrom:
    """The FROM clause of one subquery, as a part of the question.

    Args:
        ask: The question of a derived table that mentions the row.
        place: The name of an operator: the rows of a SELECT with one relation in FROM.
    """

    query: exp.Select
    around: set[str]
    scope: Scope
    ask: Callable[[exp.Query], exp.Query]
    place: Callable[[exp.Select], exp.Table]

    def clauses(self) -> tuple[exp.From, list[exp.Join]]:
        """FROM and its joins, with flat names for all columns."""
        joins = _joins(self.query)
        for join in joins:
            self._check(join)
        first = exp.From(this=self._relation(self.query.args["from_"].this))
        return first, [self._joined(join) for join in joins]

    def _check(self, join: exp.Join) -> None:
        on = join.args.get("on") or exp.true()
        half = kind_of(join) in ("SEMI", "ANTI")
        asks = half and bool(free_tables(on) & self.around)
        one_sided = (half or join.side == "LEFT") and bool(free_tables(join.this) & self.around)
        kept = join.side in ("RIGHT", "FULL") or joins_inside(join)
        if kept or asks or one_sided or self._is_other_lateral(join) or on.find(exp.Query):
            what = "this join in a FROM that mentions the row around it is not supported yet"
            raise Refusal(join, what, why=_WHY, fix=_FIX)
        if any(map(is_now, on.walk())):
            what = "the time in ON of a FROM that mentions the row around it is not supported yet"
            raise Refusal(on, what, why=_WHY, fix=_FIX)

    def _is_other_lateral(self, join: exp.Join) -> bool:
        """Whether it is a LATERAL join of anything but a function of the tables before it."""
        if not isinstance(join.this, exp.Lateral):
            return False
        around = free_tables(join.this) & self.around
        return bool(around or join.side) or isinstance(join.this.this, exp.Subquery)

    def _joined(self, join: exp.Join) -> exp.Join:
        new = join.copy()
        new.set("this", self._relation(join.this))
        if join.args.get("on"):
            new.set("on", self.scope.flat(join.args["on"]))
        return new

    def _relation(self, relation: exp.Expr) -> exp.Expr:
        if isinstance(relation, exp.Lateral):
            return self._function(relation)
        if not free_tables(relation) & self.around:
            alone = exp.select(*(each.copy() for each in self._used(relation)))
            return self.place(alone.from_(relation.copy()))
        inner = relation.this if isinstance(relation, exp.Subquery) else None
        if isinstance(inner, exp.Query):
            names = self._names(relation, inner.named_selects)
            return exp.Subquery(this=self.ask(inner), alias=names)
        require_no_values(relation)
        return self._function(relation)

    def _function(self, relation: exp.Expr) -> exp.Expr:
        asked = relation.copy()
        asked.set("this", self.scope.flat(relation.this))
        asked.set("alias", self._names(relation, relation.alias_column_names))
        return asked

    def _names(self, relation: exp.Expr, columns: list[str]) -> exp.TableAlias:
        own = self.scope.own(relation.alias)
        names = [exp.to_identifier(flat(own, name), quoted=True) for name in columns]
        return exp.TableAlias(this=exp.to_identifier(own, quoted=True), columns=names)

    def _used(self, relation: exp.Expr) -> list[exp.Column]:
        named = self.query.find_all(exp.Column)
        return [each for each in named if each.table == relation.alias_or_name]


def _joins(query: exp.Select) -> list[exp.Join]:
    return list(query.args.get("joins") or [])
