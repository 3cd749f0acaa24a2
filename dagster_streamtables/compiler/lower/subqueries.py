"""Subqueries in expressions, which are evaluated for every row.

What does not mention the outer row becomes an operator; the rest stays the user's SQL, see
`operators/apply`.

    (SELECT MAX(q.x) FROM (SELECT a.x FROM u AS a WHERE a.y = t.y LIMIT 3) AS q JOIN v ON …)

A FROM that mentions the row is no operator, since its rows differ from row to row: it stays in the
subquery (`CorrelatedFromClause`). There a derived table that mentions the row has operators inside,
a table function stays as it is, and each other relation is an operator. Conditions on the row move
from ON of an inner join to WHERE, if all joins are inner. Joins in parentheses become a derived
table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from dagster_streamtables.compiler.analyze.from_relations import joins_inside
from dagster_streamtables.compiler.lower.pushdown import add_time_column, filter_rows
from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.lower.subquery_syntax import (
    conditions_in_where,
    flat_clauses,
    flatten_row_columns,
    is_of_row,
    is_subquery,
    joins_of,
    mentions_row,
    negations_inward,
    outermost_subqueries,
    require_no_values,
    type_of_result,
    unwrap_subquery,
    without_list,
    without_order,
)
from dagster_streamtables.compiler.lower.with_clause import LowerQuery, add_ctes
from dagster_streamtables.compiler.operators.algebra import Link, Operator, Pair
from dagster_streamtables.compiler.operators.apply import (
    Apply,
    SubqueryFilter,
    SubqueryOperator,
    place_of,
)
from dagster_streamtables.compiler.operators.joins import conjuncts, equalities
from dagster_streamtables.compiler.operators.keyed import Aggregate
from dagster_streamtables.compiler.operators.leaves import ONE_ROW
from dagster_streamtables.compiler.operators.linear import Filter, Project
from dagster_streamtables.compiler.operators.sql_builders import column, column_names, typed
from dagster_streamtables.compiler.scope.scopes import HALF
from dagster_streamtables.compiler.text.column_names import flat
from dagster_streamtables.compiler.text.current_time import NOW, is_now
from dagster_streamtables.compiler.text.group_by import has_groups
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.table_mentions import free_tables, own_aliases

LowerFrom = Callable[[exp.Select, list[exp.Expr], Scope], Operator]
"""The rows of a SELECT's FROM that satisfy some of its conditions."""


def reads_time_itself(part: exp.Expr) -> bool:
    """Whether an expression reads the time outside its subqueries."""
    return any(map(is_now, part.walk(prune=lambda node: isinstance(node, exp.Query))))


@dataclass
class Subqueries:
    lower_query: LowerQuery
    lower_from: LowerFrom
    _made: int = 0

    def where(self, rows: Operator, condition: exp.Expr, scope: Scope) -> Operator:
        """The rows that satisfy a condition; its parts without subqueries come first."""
        parts = conjuncts(condition)
        plain = [part for part in parts if not part.find(exp.Query)]
        if plain:
            rows = filter_rows(rows, [scope.flat(part) for part in plain])
        for part in parts:
            if part.find(exp.Query):
                rows = add_time_column(rows) if reads_time_itself(part) else rows
                rows = self._filter_by_subquery(rows, part, scope)
        return rows

    def _filter_by_subquery(self, rows: Operator, part: exp.Expr, scope: Scope) -> Operator:
        inner = part.this.unnest() if isinstance(part, exp.Not) else part
        if not is_subquery(inner) or isinstance(inner, exp.Subquery):
            rows, [condition] = self.add_results(rows, [part], scope)
            return filter_rows(rows, [scope.flat(condition)])
        split = SubquerySplit(self, rows)
        subquery = split.expression(inner, scope, strict=inner is part)
        subquery = subquery if inner is part else exp.Not(this=subquery)
        return require_visible_columns(
            SubqueryFilter(rows, tuple(split.rights), subquery, tuple(split.links)), inner
        )

    def add_results(
        self, rows: Operator, expressions: list[exp.Expr], scope: Scope
    ) -> tuple[Operator, list[exp.Expr]]:
        """Add columns with the results of the subqueries, and replace the subqueries by them."""
        expressions = [negations_inward(each) for each in expressions]
        results: dict[exp.Expr, exp.Expr] = {}
        for expression in expressions:
            for node in outermost_subqueries(expression):
                if node not in results:
                    rows, results[node] = self._add_result(rows, node, scope)
        return rows, [replace_nodes(each, results) for each in expressions]

    def _add_result(
        self, rows: Operator, node: exp.Expr, scope: Scope
    ) -> tuple[Operator, exp.Expr]:
        split = SubquerySplit(self, rows)
        subquery = split.expression(node, scope)
        name, type_ = scope.unique_name(f"sub_{self._made}"), type_of_result(node)
        self._made += 1
        new = Apply(rows, tuple(split.rights), subquery, tuple(split.links), name, type_)
        return require_visible_columns(new, node), typed(column(name), type_)


def replace_nodes(expression: exp.Expr, new: dict[exp.Expr, exp.Expr]) -> exp.Expr:
    return expression.copy().transform(lambda n: new[n].copy() if n in new else n)


@dataclass
class SubquerySplit:
    """One subquery, split into its operators and the SQL over their names.

    The methods return the SQL of its parts, and collect the operators in `rights`.
    """

    subqueries: Subqueries
    left: Operator
    """The rows for each of which it is evaluated."""
    rights: list[Operator] = field(default_factory=list[Operator])
    links: list[Link] = field(default_factory=list[Link])

    def place(
        self, rows: Operator, pairs: tuple[Pair, ...] = (), *, loose: bool = False
    ) -> exp.Table:
        """The name of an operator; only pairs with columns of the row link it."""
        self.rights.append(rows)
        own = tuple(pair for pair in pairs if column_names(pair[0]) <= set(self.left.schema))
        self.links.append(Link(own, loose))
        return exp.to_table(place_of(len(self.rights) - 1))

    def expression(self, node: exp.Expr, scope: Scope, *, strict: bool = False) -> exp.Expr:
        """A subquery for which `is_subquery`; `strict`: the context treats NULL as FALSE."""
        match node:
            case exp.Not():
                return exp.Not(this=self.expression(node.this.unnest(), scope))
            case exp.Exists():
                return exp.Exists(this=self._exists(node.this, scope))
            case exp.In():
                around = exp.Tuple(expressions=[node.this.copy()])
                self.nest(around, scope)
                this = scope.flat(around.expressions[0])
                query = self._member(this, node.args["query"], scope, strict)
                return exp.In(this=this, query=exp.Subquery(this=query))
        return exp.Subquery(this=self.query(node, scope))

    def _exists(self, query: exp.Expr, scope: Scope) -> exp.Query:
        query = without_list(without_order(query))
        if free_tables(query) & set(scope.tables):
            return self.query(query, scope)
        calls = (("n", exp.Count(this=exp.Star())),)
        count = Aggregate(self.subqueries.lower_query(query, scope.apart()), (), calls)
        some = exp.GT(this=column("n"), expression=exp.Literal.number(0))
        # Whether a row exists changes less often than the rows do.
        place = self.place(Project(Filter(count, some), (("one", exp.Literal.number(1)),)))
        return exp.select(column("one")).from_(place)

    def _member(self, this: exp.Expr, query: exp.Expr, scope: Scope, strict: bool) -> exp.Query:
        if free_tables(query) & set(scope.tables):
            return self.query(query, scope)
        rows = self.subqueries.lower_query(unwrap_subquery(query).copy(), scope.apart())
        sides = list(this.expressions) if isinstance(this, exp.Tuple) else [this]
        pairs = tuple(zip(sides, map(column, rows.schema), strict=True))
        place = self.place(rows, pairs, loose=not strict)
        return exp.select(*map(column, rows.schema)).from_(place)

    def query(self, query: exp.Expr, scope: Scope) -> exp.Query:
        """A query over `place_of`."""
        if isinstance(query, exp.Subquery):
            query = unwrap_subquery(query)
        if not free_tables(query) & set(scope.tables):
            rows = self.subqueries.lower_query(query, scope.apart())
            return exp.select(*map(column, rows.schema)).from_(self.place(rows))
        if is_of_row(query):
            return flatten_row_columns(query, scope)
        clause = query.args.get("with_")
        if clause is not None:
            if free_tables(clause) & set(scope.tables):
                raise Refusal(
                    clause,
                    "a recursion that refers to an outer row",
                    why="Spark does not run it, in mode FULL either",
                    fix="let the recursion carry the column, and compare it with the row outside",
                )
            scope = add_ctes(query, scope, self.subqueries.lower_query)
            query = query.copy()
            query.set("with_", None)
        if isinstance(query, exp.SetOperation):
            both = query.copy()
            for place, side in (("this", query.left), ("expression", query.right)):
                found = self.query(side, scope)
                # Without its parentheses, INTERSECT would come before UNION, and a LIMIT would
                # apply to both sides.
                both.set(place, found.subquery() if isinstance(side, exp.Subquery) else found)
            return both
        assert isinstance(query, exp.Select)
        return self._select(query, scope.inside())

    def _select(self, query: exp.Select, outer: Scope) -> exp.Query:
        scope = outer.seeing(own_aliases(query))
        around = set(outer.tables) - set(own_aliases(query))
        query = conditions_in_where(query, around)
        if mentions_row(query, around):
            return CorrelatedFromClause(self, query, outer, scope).lower()
        where = query.args.get("where")
        parts = conjuncts(where.this) if where else []
        correlated = [part for part in parts if free_tables(part) & around]
        own = [part for part in parts if part not in correlated]
        rows = self.subqueries.lower_from(query, own, scope)
        shell = query.copy()
        for clause in ("from_", "joins", "laterals", "where"):
            shell.set(clause, None)
        if any(map(reads_time_itself, correlated)):
            rows = add_time_column(rows)
        rows, parts = self.subqueries.add_results(rows, correlated, scope)
        conditions = [scope.flat(part) for part in parts]
        if not has_groups(shell):
            rows, outputs = self.subqueries.add_results(rows, shell.expressions, scope)
            shell.set("expressions", outputs)
        self.nest(shell, scope)
        shell = flat_clauses(shell, scope)
        around = column_names(*conditions) - set(rows.schema)
        pairs = equalities(exp.and_(exp.true(), *conditions), around, rows.schema)
        shell = shell.from_(self.place(rows, pairs))
        return shell.where(*conditions) if conditions else shell

    def nest(self, clause: exp.Expr, scope: Scope) -> None:
        """Split the subqueries of a clause, and read the time in it from an operator of one row.

        A column of the rows would be missing after GROUP BY, and NULL over no rows.
        """
        for node in [
            each for part in clause.iter_expressions() for each in outermost_subqueries(part)
        ]:
            node.replace(self.expression(node, scope))
        for part in clause.iter_expressions():
            for node in list(part.walk(prune=lambda each: isinstance(each, exp.Query))):
                if is_now(node):
                    time = self.place(add_time_column(ONE_ROW))
                    node.replace(exp.select(column(NOW)).from_(time).subquery())


@dataclass
class CorrelatedFromClause:
    """A subquery whose FROM mentions the row: it keeps its FROM."""

    split: SubquerySplit
    query: exp.Select
    outer: Scope
    """The scope in which the subquery stands."""
    scope: Scope

    @property
    def around(self) -> set[str]:
        return set(self.outer.tables) - set(own_aliases(self.query))

    def lower(self) -> exp.Query:
        """The subquery over the names of operators, with flat names for all columns."""
        first = self.query.args["from_"].this
        joins = self._lower_joins(joins_of(self.query), [first])
        shell = self.query.copy()
        laterals = [self._function(each) for each in shell.args.get("laterals") or []]
        for number, view in enumerate(laterals):  # sqlglot writes this name without quotes
            view.args["alias"].set("this", exp.to_identifier(f"st_view_{number}"))
        for clause in ("from_", "joins", "laterals"):
            shell.set(clause, None)
        self.split.nest(shell, self.scope)
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
            raise Refusal(
                join,
                "this join in a FROM that refers to an outer row",
                why="Spark does not run it there, or returns wrong rows: beside a table that "
                "differs from row to row it takes inner joins, and those that keep its rows",
                fix="join the tables outside of the subquery, and GROUP BY the columns of the row "
                "around",
            )

    def _with_condition(self, join: exp.Join) -> exp.Join:
        new = join.copy()
        new.set("this", None)
        new.set("kind", join.kind or None)
        self.split.nest(new, self.scope)
        if join.args.get("on"):
            new.set("on", self.scope.flat(new.args["on"]))
        new.set("this", self._relation(join.this))
        return new

    def _relation(self, relation: exp.Expr) -> exp.Expr:
        if isinstance(relation, exp.Lateral):
            derived = isinstance(relation.this, exp.Subquery)
            return self._lower_lateral(relation) if derived else self._function(relation)
        if not free_tables(relation) & self.around:
            columns = self.query.find_all(exp.Column)
            read = (each.copy() for each in columns if each.table == relation.alias_or_name)
            alone = exp.select(*read).from_(relation.copy())
            return self.split.place(self.split.subqueries.lower_from(alone, [], self.scope))
        if isinstance(relation.this, exp.Query):
            names = self._names(relation, relation.this.named_selects)
            return exp.Subquery(this=self.split.query(relation.this, self.outer), alias=names)
        require_no_values(relation)
        return self._function(relation)

    def _lower_lateral(self, lateral: exp.Lateral) -> exp.Expr:
        """LATERAL (SELECT …): it sees the tables before it."""
        inner = lateral.this.this
        names = self._names(lateral, lateral.alias_column_names or inner.named_selects)
        query = self.split.query(inner, self.scope)
        return exp.Lateral(this=exp.Subquery(this=query), alias=names)

    def _function(self, relation: exp.Expr) -> exp.Expr:
        new = relation.copy()
        new.set("this", self.scope.flat(relation.this))
        new.set("alias", self._names(relation, relation.alias_column_names))
        return new

    def _names(self, relation: exp.Expr, columns: list[str]) -> exp.TableAlias:
        own = self.scope.unique_name(relation.alias)
        names = [exp.to_identifier(flat(own, name), quoted=True) for name in columns]
        return exp.TableAlias(this=exp.to_identifier(own, quoted=True), columns=names)


def require_visible_columns(operator: SubqueryOperator, node: exp.Expr) -> SubqueryOperator:
    """Require that the subquery mentions only visible columns."""
    seen = {name for each in operator.inputs for name in each.schema}
    # Columns of a derived table that stays in the subquery; see `CorrelatedFromClause`.
    for alias in operator.subquery.find_all(exp.TableAlias):
        seen |= {each.name for each in alias.columns}
    # Only columns of tables have names with dots here, and outputs that the query calls so.
    for select in operator.subquery.find_all(exp.Select):
        seen |= set(select.named_selects)
    if any("." in name for name in column_names(operator.subquery) - seen):
        raise Refusal(
            node,
            "a subquery that refers to a column of a query further out",
            why="Spark sees the columns of the query just around a subquery, in mode FULL too",
            fix="compare with that column in the subquery between, or write a join",
        )
    return operator
