"""A FROM clause that mentions the outer row: in a derived table, a table function, or in ON.

    (SELECT MAX(q.x) FROM (SELECT a.x FROM u AS a WHERE a.y = t.y LIMIT 3) AS q JOIN v ON …)

It is no operator, since its rows differ from row to row. So it stays in the question: a derived
table that mentions the row is a question of its own, with its own operators inside, a table
function is asked as it is, and each other relation is an operator. What ON of an inner join says
of the row moves to WHERE, where all joins are such. Joins in parentheses become a derived table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.analyze.joins_in_parentheses import joins_inside
from dagster_streamtables.compiler.lower.questions import flat_clauses, require_no_values
from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.operators.left_linear import conjuncts
from dagster_streamtables.compiler.scope.scopes import HALF
from dagster_streamtables.compiler.text.column_names import flat
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.tables import free_tables, own_aliases

_WHY = (
    "Spark does not run it there, or returns wrong rows: beside a table that differs from row to "
    "row it takes inner joins, and those that keep its rows"
)
_FIX = "join the tables outside of the subquery, and GROUP BY the columns of the row around"


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
    """A subquery whose FROM mentions the row: it stays a question, with its FROM.

    Args:
        outer: The scope in which the subquery stands.
        ask: The question of a derived table that mentions the row, or tables beside it.
        place: The name of an operator: the rows of a SELECT with one relation in FROM.
        nested: Puts questions in place of the subqueries of a clause, and of the time.
    """

    query: exp.Select
    outer: Scope
    scope: Scope
    ask: Callable[[exp.Expr, Scope], exp.Query]
    place: Callable[[exp.Select], exp.Table]
    nested: Callable[[exp.Expr], None]

    @property
    def around(self) -> set[str]:
        return set(self.outer.tables) - set(own_aliases(self.query))

    def question(self) -> exp.Query:
        """The subquery over the names of operators, with flat names for all columns."""
        first = self.query.args["from_"].this
        joins = self._lower_joins(_joins(self.query), [first])
        shell = self.query.copy()
        laterals = [self._function(each) for each in shell.args.get("laterals") or []]
        for number, view in enumerate(laterals):  # sqlglot writes this name without quotes
            view.args["alias"].set("this", exp.to_identifier(f"st_view_{number}"))
        for clause in ("from_", "joins", "laterals"):
            shell.set(clause, None)
        self.nested(shell)
        shell = flat_clauses(shell, self.scope)
        shell.set("from_", exp.From(this=self._relation(first)))
        shell.set("joins", joins)
        shell.set("laterals", laterals)
        return shell

    def _lower_joins(self, joins: list[exp.Join], before: list[exp.Expr]) -> list[exp.Join]:
        """The joins after some relations; those in parentheses become a derived table."""
        made: list[exp.Join] = []
        while joins:
            join, within = joins[0], 1 + joins_inside(joins[0])
            group, joins = joins[1:within], joins[within:]
            relations = [join.this, *(each.this for each in group)]
            self._check(join, relations, before)
            new = self._with_condition(join)
            if group:
                inner = exp.select(exp.Star()).from_(new.this, copy=False)
                inner.set("joins", self._lower_joins(group, [join.this]))
                new.set("this", inner.subquery(f"{self.scope.own(join.this.alias)} in parentheses"))
            made.append(new)
            before = [*before, *relations]
        return made

    def _check(self, join: exp.Join, after: list[exp.Expr], before: list[exp.Expr]) -> None:
        """
        Raises:
            Refusal: Spark refuses the join there, or returns wrong rows, as of FULL JOIN.
        """
        half = join.kind in HALF
        sees = isinstance(join.this, exp.Lateral)
        here, there = (
            any(free_tables(each) & self.around for each in side) for side in (after, before)
        )
        of_spark = here and (half or sees or join.side == "LEFT")
        of_spark = of_spark or (there and join.side == "RIGHT")
        if of_spark or join.side == "FULL":
            what = "this join in a FROM that mentions the row around it"
            raise Refusal(join, what, why=_WHY, fix=_FIX)

    def _with_condition(self, join: exp.Join) -> exp.Join:
        new = join.copy()
        new.set("this", None)
        new.set("kind", join.kind or None)
        self.nested(new)
        if join.args.get("on"):
            new.set("on", self.scope.flat(new.args["on"]))
        new.set("this", self._relation(join.this))
        return new

    def _relation(self, relation: exp.Expr) -> exp.Expr:
        if isinstance(relation, exp.Lateral):
            derived = isinstance(relation.this, exp.Subquery)
            return self._lower_lateral(relation) if derived else self._function(relation)
        if not free_tables(relation) & self.around:
            alone = exp.select(*(each.copy() for each in self._columns_of(relation)))
            return self.place(alone.from_(relation.copy()))
        if isinstance(relation.this, exp.Query):
            names = self._names(relation, relation.this.named_selects)
            return exp.Subquery(this=self.ask(relation.this, self.outer), alias=names)
        require_no_values(relation)
        return self._function(relation)

    def _lower_lateral(self, lateral: exp.Lateral) -> exp.Expr:
        """LATERAL (SELECT …): it sees the tables before it."""
        inner = lateral.this.this
        names = self._names(lateral, lateral.alias_column_names or inner.named_selects)
        asked = self.ask(inner, self.scope)
        return exp.Lateral(this=exp.Subquery(this=asked), alias=names)

    def _function(self, relation: exp.Expr) -> exp.Expr:
        asked = relation.copy()
        asked.set("this", self.scope.flat(relation.this))
        asked.set("alias", self._names(relation, relation.alias_column_names))
        return asked

    def _names(self, relation: exp.Expr, columns: list[str]) -> exp.TableAlias:
        own = self.scope.own(relation.alias)
        names = [exp.to_identifier(flat(own, name), quoted=True) for name in columns]
        return exp.TableAlias(this=exp.to_identifier(own, quoted=True), columns=names)

    def _columns_of(self, relation: exp.Expr) -> list[exp.Column]:
        named = self.query.find_all(exp.Column)
        return [each for each in named if each.table == relation.alias_or_name]


def _joins(query: exp.Select) -> list[exp.Join]:
    return list(query.args.get("joins") or [])
