"""Find and normalize the subqueries of an expression; keep those whose FROM mentions the outer row.

    (SELECT MAX(q.x) FROM (SELECT a.x FROM u AS a WHERE a.y = t.y LIMIT 3) AS q JOIN v ON …)

Such a FROM is no operator, since its rows differ from row to row. `CorrelatedFromClause` keeps it
in the subquery operator (see `operators/apply`): a derived table that mentions the row has
operators inside, a table function stays as it is, and each other relation is an operator.
Conditions on the row move from ON of an inner join to WHERE, if all joins are inner. Joins in
parentheses become a derived table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.analyze.from_relations import joins_inside
from dagster_streamtables.compiler.lower.scope import Scope, rewrite_expression
from dagster_streamtables.compiler.operators import column, type_of, typed
from dagster_streamtables.compiler.operators.left_linear import conjuncts
from dagster_streamtables.compiler.scope.scopes import HALF
from dagster_streamtables.compiler.text.column_names import flat
from dagster_streamtables.compiler.text.current_time import NOW, is_now
from dagster_streamtables.compiler.text.group_by import has_groups
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.table_mentions import free_tables, own_aliases


def is_subquery(node: exp.Expr) -> bool:
    if isinstance(node, exp.Not):
        # One question, as in Spark: NULLs matter to NOT x IN (…) even where x IN (…) ignores them.
        return isinstance(node.this.unnest(), exp.In) and is_subquery(node.this.unnest())
    if isinstance(node, exp.In):
        return bool(node.args.get("query"))
    if isinstance(node, exp.Exists):
        return isinstance(node.this, exp.Query)
    return isinstance(node, exp.Subquery)


def negations_inward(expression: exp.Expr) -> exp.Expr:
    """Move NOT inward to single questions, as Spark's optimizer does."""

    def settle(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Not) or not node.find(exp.Query):
            return node
        inner = node.this.unnest()
        if isinstance(inner, exp.Not):
            return settle(inner.this.unnest().copy())
        if isinstance(inner, exp.And | exp.Or):
            other = exp.or_ if isinstance(inner, exp.And) else exp.and_
            sides = (settle(exp.Not(this=side.copy())) for side in (inner.left, inner.right))
            return exp.paren(other(*sides))
        return node

    return rewrite_expression(expression, settle)


def outermost_subqueries(expression: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost subqueries of an expression."""
    if is_subquery(expression):
        yield expression
        return
    for each in expression.iter_expressions():
        yield from outermost_subqueries(each)


def type_of_answer(node: exp.Expr) -> exp.DataType:
    if isinstance(node, exp.Subquery):
        return type_of(node.this.selects[0]) if node.this.selects else type_of(node)
    return exp.DataType.build("boolean")


def unwrap_subquery(query: exp.Expr) -> exp.Expr:
    while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
        query = query.this
    return query


def without_order(query: exp.Expr) -> exp.Expr:
    """The query without ORDER BY and LIMIT, for EXISTS."""
    query = unwrap_subquery(query).copy()
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if not offset and (not limit or (limit.expression.is_int and int(limit.expression.name) > 0)):
        query.set("order", None)
        query.set("limit", None)
    return query


def without_list(query: exp.Expr) -> exp.Expr:
    """The query of EXISTS with a constant in its SELECT list, whose values EXISTS ignores.

    A SELECT that returns one row for all its rows still does.
    """
    if not isinstance(query, exp.Select) or any(map(query.args.get, _OF_LIST)):
        return query
    if query.args.get("distinct") and query.args.get("offset"):
        return query
    query = query.copy()
    is_one_row = has_groups(query) and not query.args.get("group")
    one = exp.Count(this=exp.Star()) if is_one_row else exp.Literal.number(1)
    type_ = exp.DataType.build("bigint" if is_one_row else "int")
    query.set("expressions", [exp.alias_(typed(one, type_), "one", quoted=True)])
    query.set("distinct", None)
    return query


_OF_LIST = ("order", "qualify")
"""Clauses that may name columns of the SELECT list."""


def is_of_row(query: exp.Expr) -> bool:
    """Whether a correlated subquery reads nothing but the row: its FROM is a table function."""
    reads = (isinstance(each.this, exp.Identifier) for each in query.find_all(exp.Table))
    others = (isinstance(each, exp.Lateral) or is_now(each) for each in query.walk())
    return not any(reads) and not any(others)


def require_no_values(query: exp.Expr) -> None:
    """Require that no VALUES mentions a column of a query around.

    Raises:
        Refusal: One does.
    """
    for values in query.find_all(exp.Values):
        mentioned = values.find(exp.Column)
        if mentioned is not None:
            raise Refusal(
                mentioned,
                "VALUES with a column of a query around",
                why="Spark computes the rows of VALUES before all others, in mode FULL too",
                fix="unfold an array of the values: FROM explode(array(t.a, t.b)) AS v(x)",
            )


def flatten_row_columns(query: exp.Expr, scope: Scope) -> exp.Query:
    """Such a subquery as it is, with flat names for the columns of the row."""
    require_no_values(query)
    own = {alias for each in query.find_all(exp.Select) for alias in own_aliases(each)}

    def settle(node: exp.Expr) -> exp.Expr:
        around = isinstance(node, exp.Column) and node.table in set(scope.tables) - own
        return scope.flat(node) if around else node

    asked = query.copy().transform(settle)
    assert isinstance(asked, exp.Query)
    return asked


def flat_clauses(shell: exp.Select, scope: Scope) -> exp.Select:
    """The clauses of a SELECT after FROM and WHERE, with flat names."""
    for key, value in list(shell.args.items()):
        if isinstance(value, exp.Expr):
            shell.set(key, scope.flat(value))
        elif isinstance(value, list):
            shell.set(key, [scope.flat(v) if isinstance(v, exp.Expr) else v for v in value])
    return shell


def ask_for_time(clause: exp.Expr, place: Callable[[], exp.Table]) -> None:
    """Let a clause read the time from a table of one row, outside of its subqueries.

    A column of the rows would be missing after GROUP BY, and NULL where no rows are.

    Args:
        clause: A SELECT, or a join. It is changed.
        place: Makes the name of that table.
    """
    for part in clause.iter_expressions():
        for node in list(part.walk(prune=lambda each: isinstance(each, exp.Query))):
            if is_now(node):
                node.replace(exp.select(column(NOW)).from_(place()).subquery())


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
class CorrelatedFromClause:
    """A subquery whose FROM mentions the row: it stays a question, with its FROM.

    Args:
        outer: The scope in which the subquery stands.
        ask: The question of a derived table that mentions the row, or tables beside it.
        place: The name of an operator: the rows of a SELECT with one relation in FROM.
        nested: Replaces the subqueries of a clause, and the time, by questions.
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
                own = self.scope.unique_name(join.this.alias)
                new.set("this", inner.subquery(f"{own} in parentheses"))
            made.append(new)
            before = [*before, *relations]
        return made

    def _check(self, join: exp.Join, after: list[exp.Expr], before: list[exp.Expr]) -> None:
        """Require a join that Spark supports in a FROM that mentions the row.

        Raises:
            Refusal: Spark refuses the join there, or returns wrong rows, as for FULL JOIN.
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
        own = self.scope.unique_name(relation.alias)
        names = [exp.to_identifier(flat(own, name), quoted=True) for name in columns]
        return exp.TableAlias(this=exp.to_identifier(own, quoted=True), columns=names)

    def _columns_of(self, relation: exp.Expr) -> list[exp.Column]:
        named = self.query.find_all(exp.Column)
        return [each for each in named if each.table == relation.alias_or_name]


def _joins(query: exp.Select) -> list[exp.Join]:
    return list(query.args.get("joins") or [])
