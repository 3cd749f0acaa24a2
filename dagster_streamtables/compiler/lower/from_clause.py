"""FROM: tables, subqueries, joins, and LATERAL.

In ON of a join that pads or drops rows, the result of each subquery becomes a column of one side:

    L ⟕ R ON p AND q(EXISTS (… R.k …))   =   L ⟕ σ_q(R) ON p
    L ⟕ R ON p AND q(EXISTS (… L.k …))   =   π(α(L) ⟕ R ON p AND q(result))

A row that fails the condition is padded, so the whole condition cannot move to WHERE. The result of
a subquery depends on the row of one side alone, as Spark requires, so that side can have it as a
column. Rows of a side that the join does not keep are filtered before the join instead.

IN is maintained there if NULL counts as FALSE. In NOT IN or IN … IS NULL, Spark computes it as if
there were no NULLs, even for x NOT IN (…) with x NULL. Such a filter of one side is maintained.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.analyze.bind import source_column_type
from dagster_streamtables.compiler.analyze.from_relations import joins_inside
from dagster_streamtables.compiler.lower.pushdown import (
    add_time_column,
    filter_rows,
    reads_time,
    reorder_joins,
)
from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.lower.subqueries import (
    Subqueries,
    SubquerySplit,
    reads_time_itself,
    replace_nodes,
    require_visible_columns,
)
from dagster_streamtables.compiler.lower.subquery_syntax import (
    is_subquery,
    negations_inward,
    outermost_subqueries,
)
from dagster_streamtables.compiler.lower.with_clause import LowerQuery
from dagster_streamtables.compiler.operators.algebra import Operator, Schema
from dagster_streamtables.compiler.operators.apply import Lateral
from dagster_streamtables.compiler.operators.joins import Join, OuterJoin, SemiJoin, conjuncts
from dagster_streamtables.compiler.operators.leaves import ONE_ROW, Constant, Scan
from dagster_streamtables.compiler.operators.linear import Project, Unfold, column_outputs
from dagster_streamtables.compiler.operators.sql_builders import column_names, type_of, typed
from dagster_streamtables.compiler.scope.scopes import HALF, columns_of_values
from dagster_streamtables.compiler.text.column_names import flat
from dagster_streamtables.compiler.text.current_time import NOW
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.table_mentions import free_tables, is_group, own_aliases

_OF_VARIANT = ("variant_explode", "variant_explode_outer")
"""Table functions whose column types matter: a VARIANT is netted by another form."""


@dataclass
class FromClause:
    _query: exp.Select
    _scope: Scope
    _lower: LowerQuery
    _subqueries: Subqueries

    def rows(self) -> Operator:
        clause = self._query.args.get("from_")
        rows = self._relation_with_joins(clause.this) if clause else ONE_ROW
        rows = reorder_joins(self._chain_joins(rows, list(self._query.args.get("joins") or [])))
        for view in self._query.args.get("laterals") or []:
            rows = self._unfold(rows, view, outer=bool(view.args.get("outer")))
        return rows

    def _chain_joins(self, rows: Operator, joins: list[exp.Join]) -> Operator:
        """The rows with a chain of joins, some of which have joins on their right side."""
        while joins:
            join, *joins = joins
            count = joins_inside(join)
            rows = self._join(rows, join, joins[:count])
            joins = joins[count:]
        return rows

    def _relation_with_joins(self, source: exp.Expr) -> Operator:
        """A relation with the joins inside its own parentheses."""
        rows = (
            self._relation_with_joins(source.this) if is_group(source) else self._relation(source)
        )
        for join in source.args.get("joins") or []:
            rows = self._join(rows, join, [])
        return rows

    def _join(self, left: Operator, join: exp.Join, inside: list[exp.Join]) -> Operator:
        on = join.args.get("on")
        if isinstance(join.this, exp.Lateral):
            return self._beside(left, join.this, join.side, on)
        right = self._chain_joins(self._relation_with_joins(join.this), inside)
        if on is not None and on.find(exp.Query):
            return self._join_on_subqueries(left, right, on, join)
        return self._join_on(left, right, on, join)

    def _join_on_subqueries(
        self, left: Operator, right: Operator, on: exp.Expr, join: exp.Join
    ) -> Operator:
        half = join.kind in HALF
        sides = JoinSides(left, right, self._scope, self._subqueries)
        if not join.side and not half:
            sides.require_as_in_sql(on, join)
            return self._subqueries.where(Join(left, right, exp.true()), on, self._scope)
        on = sides.without_subqueries(on, join)
        rows = self._join_on(sides.left, sides.right, on, join)
        return only(rows, [*left.schema, *({} if half else right.schema)])

    def _join_on(
        self, left: Operator, right: Operator, on: exp.Expr | None, join: exp.Join
    ) -> Operator:
        condition = self._scope.flat(on or exp.true())
        build = _build_join_in_time if reads_time(condition) else _build_join
        return build(left, right, condition, join)

    def _beside(
        self, left: Operator, source: exp.Lateral, side: str, on: exp.Expr | None
    ) -> Operator:
        if isinstance(source.this, exp.Subquery):
            return self._lateral(left, source, side, on)
        if on is None or on == exp.true():
            return self._unfold(left, source, outer=side == "LEFT")
        if side != "LEFT":
            return filter_rows(self._unfold(left, source, outer=False), [self._scope.flat(on)])
        return self._unfold_outer_join(left, source, on)

    def _lateral(
        self, left: Operator, source: exp.Lateral, side: str, on: exp.Expr | None
    ) -> Operator:
        """LATERAL with a subquery: each row joined with the rows of its result."""
        query, scope = source.this.this, self._scope
        if on is not None and on.find(exp.Query):
            left, [on] = self._subqueries.add_results(left, [on], scope)
        condition = scope.flat(on or exp.true())
        left = add_time_column(left) if reads_time(condition) else left
        split = SubquerySplit(self._subqueries, left)
        subquery = split.query(query, scope)
        names = source.alias_column_names or query.named_selects
        own = scope.unique_name(source.alias)
        made = tuple(
            (flat(own, name), type_of(each))
            for name, each in zip(names, query.selects, strict=True)
        )
        on = condition if side == "LEFT" else None
        rows = require_visible_columns(
            Lateral(left, tuple(split.rights), subquery, tuple(split.links), made, on), query
        )
        inner = on is None and condition != exp.true()
        return filter_rows(rows, [condition]) if inner else rows

    def _unfold_outer_join(self, left: Operator, source: exp.Lateral, on: exp.Expr) -> Operator:
        """LEFT JOIN of a table function: the condition decides which rows are padded."""
        if on.find(exp.Query):
            raise Refusal(
                source.this,
                "a subquery in ON of a LEFT JOIN with a table function",
                why="the condition decides for each row alone whether it is padded",
                fix="join the elements with the other table in a subquery, and that with LEFT JOIN",
            )
        condition = self._scope.flat(on)
        timed = reads_time(condition)
        left = add_time_column(left) if timed else left
        rows = self._unfold(left, source, outer=True, condition=condition)
        return _without_time(rows, rows.schema) if timed else rows

    def _unfold(
        self, rows: Operator, view: exp.Lateral, *, outer: bool, condition: exp.Expr | None = None
    ) -> Operator:
        if free_tables(view.this) - set(own_aliases(self._query)):
            raise Refusal(
                view.this,
                "LATERAL over columns of an outer query",
                why="Spark resolves only columns of the same FROM there, in mode FULL too",
                fix="put the table function first, FROM explode(t.array) AS e(x), or next to the "
                "table itself",
            )
        names = [each.name for each in view.args["alias"].columns]
        own = self._scope.unique_name(view.alias)
        types = ("UNKNOWN",) * len(names)
        if isinstance(view.this, exp.Anonymous) and view.this.name.lower() in _OF_VARIANT:
            types = ("INT", "STRING", "VARIANT")
        made = tuple(
            (flat(own, name), exp.DataType.build(type_))
            for name, type_ in zip(names, types, strict=True)
        )
        return Unfold(rows, self._scope.flat(view.this), made, outer, condition or exp.true())

    def _relation(self, source: exp.Expr) -> Operator:
        alias = source.alias_or_name
        if isinstance(source, exp.Subquery):
            rows = self._lower(source, self._scope.apart())
        elif isinstance(source, exp.Values) or not isinstance(source.this, exp.Identifier):
            return self._constant(source)
        elif source.name in self._scope.shared and not source.args.get("db"):
            rows = self._scope.shared[source.name]
        else:
            columns = self._query.find_all(exp.Column)
            rows = self._scan(source.name, {e.name for e in columns if e.table == alias})
        own = self._scope.unique_name(alias)
        return Project(rows, column_outputs(rows.schema, (flat(own, n) for n in rows.schema)))

    def _scan(self, source: str, needed: set[str]) -> Scan:
        name, columns = self._scope.sources[source]
        read = ((n.lower(), t) for n, t in columns.items())
        return Scan(name, tuple((n, source_column_type(n, t)) for n, t in read if n in needed))

    def _constant(self, source: exp.Expr) -> Operator:
        own = self._scope.unique_name(source.alias)
        called = source.alias_column_names
        if isinstance(source, exp.Values) and not called:
            called = columns_of_values(source)
        names = {name: flat(own, name) for name in called}
        outputs = [
            exp.column(name, table=source.alias).as_(new, quoted=True)
            for name, new in names.items()
        ]
        unknown = exp.DataType.build("UNKNOWN")
        query = exp.select(*outputs).from_(source.copy())
        return Constant(query, tuple((new, unknown) for new in names.values()))


def _build_join(left: Operator, right: Operator, condition: exp.Expr, join: exp.Join) -> Operator:
    if join.kind in HALF:
        return SemiJoin(left, right, condition, join.kind == "ANTI")
    match join.side:
        case "LEFT":
            return OuterJoin(left, right, condition)
        case "RIGHT":
            rows = OuterJoin(right, left, condition)
            return _without_time(rows, {**left.schema, **right.schema})
        case "FULL":
            lonely = SemiJoin(right, left, condition, True)
            # An untyped NULL takes the type of the column above it, which only Spark knows.
            nulls = ((n, typed(exp.null(), t)) for n, t in left.schema.items())
            kept = column_outputs(right.schema)
            return OuterJoin(left, right, condition) + Project(lonely, (*nulls, *kept))
    return Join(left, right, condition)


def _build_join_in_time(
    left: Operator, right: Operator, condition: exp.Expr, join: exp.Join
) -> Operator:
    keeps_left = join.side == "LEFT" or join.kind in HALF
    if not join.side and not keeps_left:
        return filter_rows(Join(left, right, exp.true()), conjuncts(condition))
    timed = [each for each in conjuncts(condition) if reads_time(each)]
    if keeps_left and column_names(*timed) <= {NOW, *right.schema}:
        rest = [each for each in conjuncts(condition) if each not in timed] or [exp.true()]
        return _build_join(left, filter_rows(right, timed), exp.and_(*rest), join)
    rows = _build_join(add_time_column(left), right, condition, join)
    return _without_time(rows, rows.schema)


def _without_time(rows: Operator, schema: Schema) -> Operator:
    """The rows with some of their columns, and without the time."""
    return Project(rows, column_outputs({n: t for n, t in schema.items() if n != NOW}))


@dataclass
class JoinSides:
    """The inputs of a join, to which the results of its condition's subqueries are added."""

    left: Operator
    right: Operator
    scope: Scope
    subqueries: Subqueries

    def without_subqueries(self, condition: exp.Expr, join: exp.Join) -> exp.Expr:
        """ON without subqueries, of a join that is not an inner one.

        Raises:
            Refusal: A subquery mentions both sides, or Spark computes it otherwise than SQL.
        """
        rest: list[exp.Expr] = []
        self.require_as_in_sql(condition, join)
        for part in conjuncts(condition):
            side = self._side(part) or next(iter(_inner_sides(join)), "")
            if part.find(exp.Query) is None:
                rest.append(part)
            elif side and side in _inner_sides(join):
                rows = getattr(self, side)
                kept = self.subqueries.where(rows, part, self.scope)
                setattr(self, side, only(kept, rows.schema))
            else:
                rest.append(self._with_results(negations_inward(part)))
        return exp.and_(*rest) if rest else exp.true()

    def require_as_in_sql(self, condition: exp.Expr, join: exp.Join) -> None:
        """Refuse an IN that Spark computes as if there were no NULLs."""
        for part in map(negations_inward, conjuncts(condition)):
            found = next((each for each in part.find_all(exp.In) if _counts_null(each, part)), None)
            # Without a column of either side, Spark looks for the left one.
            if found is not None and (self._side(part) or "left") not in _inner_sides(join):
                raise Refusal(
                    found,
                    "IN with a subquery in ON of this join, where NULL is not FALSE",
                    why="Spark answers it there as if no value were NULL, in mode FULL too",
                    fix="write NOT EXISTS (SELECT … WHERE y = x), or make IN a column of a "
                    "subquery and join that",
                )

    def _with_results(self, part: exp.Expr) -> exp.Expr:
        results: dict[exp.Expr, exp.Expr] = {}
        for node in outermost_subqueries(part):
            side = self._side(node) or "left"
            if side == "both":
                raise Refusal(
                    node,
                    "a subquery in ON that mentions both sides of the join",
                    why="Spark evaluates such a subquery on one side, before the join, in mode "
                    "FULL too",
                    fix="join first in a subquery, then compare with the columns of both in its "
                    "WHERE",
                )
            rows = getattr(self, side)
            timed = add_time_column(rows) if reads_time_itself(node) else rows
            new, [results[node]] = self.subqueries.add_results(timed, [node], self.scope)
            setattr(self, side, only(new, [*rows.schema, results[node].name]))
        return replace_nodes(part, results)

    def _side(self, part: exp.Expr) -> str:
        """The side whose columns an expression mentions: ``left``, ``right``, ``both``, or none."""
        free = free_tables(part)
        names = {
            flat(self.scope.tables[each.table], each.name)
            for each in part.find_all(exp.Column)
            if each.table in free and each.table in self.scope.tables
        }
        found = [side for side in ("left", "right") if names & set(getattr(self, side).schema)]
        return "both" if len(found) == 2 else "".join(found)


def only(rows: Operator, names: Iterable[str]) -> Operator:
    """The rows with some of their columns."""
    kept = column_outputs({name: rows.schema[name] for name in names})
    return rows if len(kept) == len(rows.schema) else Project(rows, kept)


def _inner_sides(join: exp.Join) -> Sequence[str]:
    """The sides whose rows the result lacks if they have no partner."""
    if join.kind == "ANTI":
        return ["right"]
    return {"LEFT": ["right"], "RIGHT": ["left"], "FULL": []}.get(join.side, ["right", "left"])


def _counts_null(node: exp.In, part: exp.Expr) -> bool:
    """Whether it has a subquery, and the condition differs for its results NULL and FALSE."""
    if not is_subquery(node):
        return False
    around: exp.Expr | None = node
    while around is not part and around is not None:
        around = around.parent
        if not isinstance(around, exp.And | exp.Or | exp.Paren):
            return True
    return False
