"""Subqueries in expressions: questions evaluated for every row.

The part of a subquery that does not mention the outer row becomes an operator; the rest stays a
question in the user's SQL (see `operators/apply`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dagster_streamtables.compiler.lower.pushdown import add_time_column, filter_rows
from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.lower.subquery_syntax import (
    CorrelatedFromClause,
    ask_for_time,
    conditions_in_where,
    flat_clauses,
    flatten_row_columns,
    is_of_row,
    is_subquery,
    mentions_row,
    negations_inward,
    outermost_subqueries,
    type_of_answer,
    unwrap_subquery,
    without_list,
    without_order,
)
from dagster_streamtables.compiler.lower.with_clause import LowerQuery, add_ctes
from dagster_streamtables.compiler.operators import (
    ONE_ROW,
    Aggregate,
    Apply,
    Filter,
    Link,
    Operator,
    Pair,
    Project,
    SubqueryFilter,
    SubqueryOperator,
    column,
    column_names,
    place_of,
    typed,
)
from dagster_streamtables.compiler.operators.left_linear import conjuncts, equalities
from dagster_streamtables.compiler.text.current_time import is_now
from dagster_streamtables.compiler.text.group_by import has_groups
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.table_mentions import free_tables, own_aliases

LowerFrom = Callable[[exp.Select, list[exp.Expr], Scope], Operator]
"""The rows of a SELECT's FROM that satisfy some of its conditions."""


@dataclass
class SubqueryInputs:
    """The operators and links of a question, collected while it is taken apart."""

    row: frozenset[str]
    """The columns of the row for which it is asked."""
    rights: list[Operator] = field(default_factory=list[Operator])
    links: list[Link] = field(default_factory=list[Link])

    def place(self, rows: Operator, link: Link) -> exp.Table:
        """The name of an operator; its link to other rows than that one says nothing."""
        pairs = tuple(pair for pair in link.pairs if column_names(pair[0]) <= self.row)
        self.rights.append(rows)
        self.links.append(replace(link, pairs=pairs))
        return exp.to_table(place_of(len(self.rights) - 1))

    def time(self) -> exp.Table:
        """The name of one row with the time."""
        return self.place(add_time_column(ONE_ROW), Link())


def asks_itself(part: exp.Expr) -> bool:
    """Whether an expression reads the time outside of its subqueries."""
    outside = part.walk(prune=lambda node: isinstance(node, exp.Query))
    return any(map(is_now, outside))


class Subqueries:
    """The subqueries of one SELECT."""

    def __init__(self, lower_query: LowerQuery, lower_from: LowerFrom) -> None:
        self._lower = lower_query
        self._from = lower_from
        self._made = 0

    def where(self, rows: Operator, condition: exp.Expr, scope: Scope) -> Operator:
        """The rows that satisfy a condition; its parts without subqueries come first."""
        parts = conjuncts(condition)
        plain = [part for part in parts if not part.find(exp.Query)]
        if plain:
            rows = filter_rows(rows, [scope.flat(part) for part in plain])
        for part in parts:
            if part.find(exp.Query):
                rows = add_time_column(rows) if asks_itself(part) else rows
                rows = self._filter_by_subquery(rows, part, scope)
        return rows

    def _filter_by_subquery(self, rows: Operator, part: exp.Expr, scope: Scope) -> Operator:
        inner = part.this.unnest() if isinstance(part, exp.Not) else part
        if not is_subquery(inner) or isinstance(inner, exp.Subquery):
            rows, [condition] = self.ask(rows, [part], scope)
            return filter_rows(rows, [scope.flat(condition)])
        asked = SubqueryInputs(frozenset(rows.schema))
        question = self._question(inner, asked, scope, strict=inner is part)
        question = question if inner is part else exp.Not(this=question)
        keep = SubqueryFilter(rows, tuple(asked.rights), question, tuple(asked.links))
        require_visible_columns(keep, inner)
        return keep

    def ask(
        self, rows: Operator, expressions: list[exp.Expr], scope: Scope
    ) -> tuple[Operator, list[exp.Expr]]:
        """Add columns with the answers to the subqueries, and replace the subqueries by them."""
        expressions = [negations_inward(each) for each in expressions]
        answers: dict[exp.Expr, exp.Expr] = {}
        for expression in expressions:
            for node in outermost_subqueries(expression):
                if node not in answers:
                    rows, answers[node] = self._add_answer(rows, node, scope)

        def settle(node: exp.Expr) -> exp.Expr:
            return answers[node].copy() if node in answers else node

        return rows, [each.copy().transform(settle) for each in expressions]

    def _add_answer(
        self, rows: Operator, node: exp.Expr, scope: Scope
    ) -> tuple[Operator, exp.Expr]:
        asked = SubqueryInputs(frozenset(rows.schema))
        question = self._question(node, asked, scope)
        name, type_ = scope.unique_name(f"sub_{self._made}"), type_of_answer(node)
        self._made += 1
        applied = Apply(rows, tuple(asked.rights), question, tuple(asked.links), name, type_)
        require_visible_columns(applied, node)
        return applied, typed(column(name), type_)

    def _question(
        self, node: exp.Expr, asked: SubqueryInputs, scope: Scope, *, strict: bool = False
    ) -> exp.Expr:
        """A subquery, with its own rows as operators.

        Args:
            node: The subquery, as `is_subquery` finds it.
            asked: Receives the operators.
            scope: The scope of the expression around it.
            strict: The context treats NULL as FALSE.
        """
        match node:
            case exp.Not():
                return exp.Not(this=self._question(node.this.unnest(), asked, scope))
            case exp.Exists():
                return exp.Exists(this=self._exists(node.this, asked, scope))
            case exp.In():
                this, query = self._operand_of_in(node.this, asked, scope), node.args["query"]
                answer = self._member(this, query, asked, scope, strict)
                return exp.In(this=this, query=exp.Subquery(this=answer))
        return exp.Subquery(this=self.query(node, asked, scope))

    def _operand_of_in(self, this: exp.Expr, asked: SubqueryInputs, scope: Scope) -> exp.Expr:
        """The operand of IN, which may itself contain questions."""
        around = exp.Tuple(expressions=[this.copy()])
        self._nest(around, asked, scope)
        return scope.flat(around.expressions[0])

    def _exists(self, query: exp.Expr, asked: SubqueryInputs, scope: Scope) -> exp.Query:
        query = without_list(without_order(query))
        if free_tables(query) & set(scope.tables):
            return self.query(query, asked, scope)
        count = Aggregate(
            self._lower(query, scope.apart()), (), (("n", exp.Count(this=exp.Star())),)
        )
        some = exp.GT(this=column("n"), expression=exp.Literal.number(0))
        # Whether a row exists changes less often than the rows do.
        place = asked.place(Project(Filter(count, some), (("one", exp.Literal.number(1)),)), Link())
        return exp.select(column("one")).from_(place)

    def _member(
        self, this: exp.Expr, query: exp.Expr, asked: SubqueryInputs, scope: Scope, strict: bool
    ) -> exp.Query:
        if free_tables(query) & set(scope.tables):
            return self.query(query, asked, scope)
        rows = self._lower(unwrap_subquery(query).copy(), scope.apart())
        sides = list(this.expressions) if isinstance(this, exp.Tuple) else [this]
        pairs = tuple(zip(sides, map(column, rows.schema), strict=True))
        place = asked.place(rows, Link(pairs, loose=not strict))
        return exp.select(*map(column, rows.schema)).from_(place)

    def query(self, query: exp.Expr, asked: SubqueryInputs, scope: Scope) -> exp.Query:
        """A subquery as a question over `place_of`."""
        if isinstance(query, exp.Subquery):
            query = unwrap_subquery(query)
        if not free_tables(query) & set(scope.tables):
            rows = self._lower(query, scope.apart())
            return exp.select(*map(column, rows.schema)).from_(asked.place(rows, Link()))
        if is_of_row(query):
            return flatten_row_columns(query, scope)
        clause = query.args.get("with_")
        if clause is not None:
            if free_tables(clause) & set(scope.tables):
                raise _recursion_of_row(clause)
            scope = add_ctes(query, scope, self._lower)
            query = query.copy()
            query.set("with_", None)
        if isinstance(query, exp.SetOperation):
            both = query.copy()
            for place, side in (("this", query.left), ("expression", query.right)):
                found = self.query(side, asked, scope)
                # Without its parentheses, INTERSECT would come before UNION, and a LIMIT would be
                # that of both sides.
                both.set(place, found.subquery() if isinstance(side, exp.Subquery) else found)
            return both
        assert isinstance(query, exp.Select)
        return self._select(query, asked, scope.inside())

    def _select(self, query: exp.Select, asked: SubqueryInputs, outer: Scope) -> exp.Query:
        scope = outer.seeing(own_aliases(query))
        around = set(outer.tables) - set(own_aliases(query))
        query = conditions_in_where(query, around)
        if mentions_row(query, around):
            return self._whole(query, asked, outer, scope)
        where = query.args.get("where")
        parts = conjuncts(where.this) if where else []
        correlated = [part for part in parts if free_tables(part) & around]
        rows = self._from(query, [part for part in parts if part not in correlated], scope)
        shell = query.copy()
        for clause in ("from_", "joins", "laterals", "where"):
            shell.set(clause, None)
        if any(map(asks_itself, correlated)):
            rows = add_time_column(rows)
        rows, parts = self.ask(rows, correlated, scope)
        conditions = [scope.flat(part) for part in parts]
        if not has_groups(shell):
            rows, outputs = self.ask(rows, shell.expressions, scope)
            shell.set("expressions", outputs)
        self._nest(shell, asked, scope)
        shell = flat_clauses(shell, scope)
        pairs = self._pairs(conditions, rows)
        shell = shell.from_(asked.place(rows, Link(pairs)))
        return shell.where(*conditions) if conditions else shell

    def _whole(
        self, query: exp.Select, asked: SubqueryInputs, outer: Scope, scope: Scope
    ) -> exp.Query:
        """A subquery whose FROM mentions the row: it stays a question, with its FROM."""
        return CorrelatedFromClause(
            query,
            outer,
            scope,
            lambda inner, seen: self.query(inner, asked, seen),
            lambda alone: asked.place(self._from(alone, [], scope), Link()),
            lambda clause: self._nest(clause, asked, scope),
        ).question()

    def _nest(self, clause: exp.Expr, asked: SubqueryInputs, scope: Scope) -> None:
        """Replace the subqueries of a clause, and the time, by questions."""
        for node in [
            each for part in clause.iter_expressions() for each in outermost_subqueries(part)
        ]:
            node.replace(self._question(node, asked, scope))
        ask_for_time(clause, asked.time)

    def _pairs(self, conditions: list[exp.Expr], rows: Operator) -> tuple[Pair, ...]:
        inner = frozenset(rows.schema)
        condition = exp.and_(exp.true(), *conditions)
        return equalities(condition, frozenset(column_names(*conditions) - inner), inner)


def require_visible_columns(asking: SubqueryOperator, node: exp.Expr) -> None:
    """Require that the subquery mentions only visible columns."""
    seen = {name for each in asking.inputs for name in each.schema}
    # Columns of a derived table that is a question of its own; see `CorrelatedFromClause`.
    for alias in asking.question.find_all(exp.TableAlias):
        seen |= {each.name for each in alias.columns}
    # Only columns of tables have names with dots here, and outputs that the query calls so.
    for select in asking.question.find_all(exp.Select):
        seen |= set(select.named_selects)
    if any("." in name for name in column_names(asking.question) - seen):
        raise Refusal(
            node,
            "a subquery that mentions a column of a query further out",
            why="Spark sees the columns of the query just around a subquery, in mode FULL too",
            fix="compare with that column in the subquery between, or write a join",
        )


def _recursion_of_row(clause: exp.Expr) -> Refusal:
    return Refusal(
        clause,
        "a recursion that mentions the row around it",
        why="Spark does not run it, in mode FULL either",
        fix="let the recursion carry the column, and compare it with the row outside",
    )
