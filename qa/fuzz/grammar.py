"""Random queries: what stands around and below a FROM clause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from qa.fuzz.aggregates import Aggregates, Windows
from qa.fuzz.expressions import Chooser, Expressions, comparable
from qa.fuzz.from_clause import FromClause
from qa.fuzz.queries import (
    Clause,
    Group,
    Output,
    Query,
    Recursion,
    Select,
    SetOperation,
    Star,
    Top,
    With,
)
from qa.fuzz.relations import Join, Table
from qa.fuzz.schema import Kind
from qa.fuzz.scope import Scope
from qa.fuzz.sources import Sources
from qa.fuzz.spellings import SPELLINGS, Piped, Spelled, all_keys_are_outputs, can_be_piped
from qa.fuzz.subqueries import Subqueries
from qa.fuzz.switches import Switches
from qa.fuzz.tree import Call, Column, Expr, Key, Literal, walk

_SETS = {
    "union": "UNION", "union all": "UNION ALL", "intersect": "INTERSECT", "except": "EXCEPT",
    "intersect all": "INTERSECT ALL", "except all": "EXCEPT ALL",
}  # fmt: skip
Shape = tuple[tuple[str, Kind], ...]


class Grammar:
    """Makes one query.

    >>> from fuzz.switches import all_switches
    >>> Grammar(Random(1), all_switches()).whole().sql().split()[0] in ("SELECT", "WITH", "(SELECT")
    True
    """

    def __init__(self, random: Random, on: Switches) -> None:
        self.random = random
        self.chooser = Chooser(random, on)
        self.expressions = Expressions(self.chooser)
        self.sources = Sources(self)
        self.subqueries = Subqueries(self)
        self.windows = Windows(self.expressions)
        self.aggregates = Aggregates(self.expressions)
        self.expressions.special = [self.aggregates, self.windows, self.subqueries.value]
        self.expressions.conditions = [self.subqueries.condition]

    def whole(self) -> Query:
        """A query with its common table expressions."""
        clauses: list[Clause] = []
        if self.chooser.wants("cte", 0.12):
            for i in range(self.random.randint(1, 2)):
                query = self.query(1)
                clauses.append(Clause(f"cte{i}", query))
                # Named twice in the list, it is read the more often.
                self.sources.clauses.append((f"cte{i}", query.outputs))
        if self.chooser.wants("recursion", 0.15):
            clauses.append(self._recursive())
        body = self.query(self.random.choice([0, 1, 1, 2]))
        made = With(tuple(clauses), body) if clauses else body
        for way in SPELLINGS:
            if self.chooser.wants(way, 0.2):
                made = Spelled(made, way, self.random.randrange(99))
        return made

    def query(self, depth: int, shape: tuple[Kind, ...] | None = None) -> Query:
        word = self.chooser.pick(dict.fromkeys(_SETS, 1.0), "")
        if depth > 0 and word and self.chooser.flip(0.2):
            return self._set_operation(_SETS[word], depth, shape)
        return self._select(depth, shape)

    def lateral(self, outer: Scope) -> tuple[Query, tuple[str, ...]]:
        """A subquery that may name the columns of `outer`, and the constructs it is about."""
        relation = self.sources.one({column.table for column in outer.columns})
        inner = Scope(relation.columns())
        pairs = [
            (a, b)
            for a in comparable(outer.columns)
            for b in comparable(inner.columns)
            if a.kind is b.kind
        ]
        where = None
        if pairs:
            a, b = self.random.choice(pairs)
            where = self.expressions.comparison(b, a, other=0.2)
        style = self.chooser.pick({"lateral top": 1.0, "lateral aggregate": 1.0}, "")
        if style == "lateral aggregate":
            return self._lateral_total(relation, inner, where), (style,)
        outputs = self._outputs(inner, self.random.randint(1, 2), prefix="l")
        if pairs and self.chooser.flip(0.25):
            a, b = self.random.choice(pairs)
            value = Call(a.kind, "COALESCE({0}, {1})", (a, b))
            outputs = (*outputs, Output("l9", value))
        top = Top(self.random.randint(1, 2)) if style == "lateral top" else None
        return Select(outputs, relation, where=where, top=top), ((style,) if style else ())

    def _lateral_total(self, relation: object, inner: Scope, where: Expr | None) -> Select:
        keys: tuple[Expr, ...] = ()
        if comparable(inner.columns) and self.chooser.flip(0.4):
            keys = tuple(self.random.sample(comparable(inner.columns), 1))
        scope = replace(inner, keys=keys, aggregates=True)
        kinds = self.aggregates.kinds(scope)
        total = self.aggregates(self.random.choice(kinds), scope)
        outputs = [Output("l0", total or Literal(Kind.INT, "1"))]
        outputs += [Output(f"l{i + 1}", Key(key.kind, i)) for i, key in enumerate(keys)]
        return Select(tuple(outputs), relation, where=where, group=Group(keys))  # type: ignore[arg-type]

    def _set_operation(self, word: str, depth: int, shape: tuple[Kind, ...] | None) -> Query:
        left = self._select(depth - 1, shape)
        names = tuple(name for name, _ in left.outputs)
        kinds = tuple(kind for _, kind in left.outputs)
        right = self.query(depth - 1, kinds) if self.chooser.flip(0.3) else self._select(0, kinds)
        made: Query = SetOperation(word, left, right)
        if self.chooser.flip(0.2):
            again = self.random.choice([w for k, w in _SETS.items() if self.chooser.on[k]])
            made = SetOperation(again, made, self._select(0, kinds))
        assert len(names) == len(right.outputs)
        return replace(made, top=self._top(0.1))  # type: ignore[type-var]

    def _select(self, depth: int, shape: tuple[Kind, ...] | None) -> Query:
        made = Select((), *self.sources.several(None, depth))
        scope = Scope(self.sources.offered(made.clause))
        if self.chooser.flip(0.45):
            asking = replace(scope, subqueries=1)
            made = replace(made, where=self.expressions.condition(asking, 2))
        before, self.windows.positioned = self.windows.positioned, False
        if self.chooser.wants("aggregate", 0.07):
            made = self._grouped(made, scope, shape)
        else:
            made = self._rows(made, scope, shape, depth)
        self.windows.positioned = before
        made = replace(made, top=self._top(0.12))
        if self.chooser.wants("pipe", 0.2) and can_be_piped(made):
            return Piped(made)
        return replace(made, from_first=self.chooser.wants("from first", 0.2))

    def _rows(
        self, made: Select, scope: Scope, shape: tuple[Kind, ...] | None, depth: int
    ) -> Select:
        if not shape:
            made = replace(made, stars=self._stars(made.clause))
        if made.stars and self.chooser.flip(0.5):
            return replace(made, distinct=self.chooser.wants("distinct", 0.06))
        asking = int(self.chooser.wants("subquery in output", 0.2))
        windows = self.chooser.wants("window", 0.12)
        rich = replace(scope, subqueries=asking, windows=windows)
        taken = [name for name, _ in made.outputs]
        outputs = self._outputs(rich, self.random.randint(1, 4), shape, taken=taken)
        made = replace(made, select=outputs)
        if self.chooser.wants("explode output", 0.06) and not shape:
            # DuckDB makes the rows after it has computed windows, Spark before.
            fits = not windows or self.chooser.on["star of table"]
            exploded = self._exploded(scope) if fits else None
            if exploded is not None:
                name = _not_among(f"e{len(made.select)}", [name for name, _ in made.outputs])
                return replace(made, select=(*made.select, Output(name, exploded)))
        if self.chooser.wants("qualify", 0.06) and self.chooser.on["window"]:
            window = self.windows(Kind.INT, replace(scope, windows=True))
            if window is not None:
                test = self.random.choice(["({0} = 1)", "({0} <= 2)", "({0} > 1)"])
                return replace(made, qualify=Call(Kind.BOOLEAN, test, (window,)))
        return replace(made, distinct=self.chooser.wants("distinct", 0.06))

    def _stars(self, clause: FromClause) -> tuple[Star, ...]:
        """Stars whose columns have names that differ, and that a stream table can have."""
        tables = sorted({column.table for column in clause.named if column.table})
        options = {"star": 1.0, "star of table": 1.0 if len(tables) > 1 else 0.5}
        word = self.chooser.pick(options, "")
        if not word or not self.chooser.flip(0.05 if len(tables) == 1 else 0.3):
            return ()
        stars, taken = list[Star](), set[str]()
        chosen = [""]
        if word == "star of table":
            chosen = self.random.sample(tables, self.random.randint(1, len(tables)))
        elif len(tables) > 1 and not self.chooser.on["star of table"]:
            return ()  # DuckDB has them in another order
        for table in chosen:
            names = [column.name for column in clause.star(table)]
            bad = {n for n in names if names.count(n) > 1 or n.lower() in taken or _is_refused(n)}
            if self.chooser.wants("star except", 0.2):
                bad.add(self.random.choice(names))
            if bad and not self.chooser.on["star except"]:
                return ()
            if len(bad) < len(set(names)):
                stars.append(Star(table, tuple(sorted(bad))))
                taken |= {name.lower() for name in names}
        return tuple(stars)

    def _exploded(self, scope: Scope) -> Expr | None:
        """A table function among the outputs."""
        if not scope.of(Kind.INTS) and not scope.of(Kind.INT):
            return None
        word = self.random.choice(["EXPLODE({0})", "EXPLODE_OUTER({0})"])
        if scope.of(Kind.INTS):
            exploded = self.random.choice(scope.of(Kind.INTS))
        else:
            pair = tuple(self.random.choice(scope.of(Kind.INT)) for _ in range(2))
            exploded = Call(Kind.INTS, "ARRAY({0}, {1})", pair)
        return Call(Kind.INT, word, (exploded,), "explode output")

    def _grouped(self, made: Select, scope: Scope, shape: tuple[Kind, ...] | None) -> Select:
        columns = comparable(scope.columns)
        many = 0 if self.chooser.wants("grand total", 0.15) else self.random.choice([1, 1, 2])
        keys = self.random.sample(columns, min(many, len(columns)))
        if keys and self.chooser.wants("subquery in key", 0.06):
            asking = replace(scope.plain(), subqueries=1)
            keys[0] = self.subqueries.value(keys[0].kind, asking) or keys[0]
        elif keys and self.chooser.flip(0.2):
            keys[0] = self.expressions.value(keys[0].kind, scope.plain(), 1)
        keys = [key for key in keys if any(isinstance(each, Column) for each in walk(key))]
        group = self._group(tuple(keys))
        asking = int(self.chooser.wants("subquery in having", 0.1))
        over = self.chooser.wants("window over groups", 0.1) and bool(keys)
        inner = replace(scope, keys=group.keys, subtotals=bool(group.kind), aggregates=True)
        outputs = self._outputs(replace(inner, windows=over), self.random.randint(1, 4), shape)
        if group.kind and self.chooser.wants("grouping", 0.4) and not shape:
            grouping = self.aggregates.grouping(inner)
            outputs += (Output(f"g{len(outputs)}", grouping),) * (grouping is not None)  # type: ignore[arg-type]
        having = None
        if self.chooser.wants("having", 0.12):
            having = self.expressions.condition(replace(inner, subqueries=asking), 2)
        if self.chooser.wants("group by all", 0.3) and all_keys_are_outputs(group, outputs):
            group = replace(group, all=True)
        made = replace(made, select=outputs, group=group, having=having)
        return replace(made, distinct=self.chooser.wants("distinct", 0.02))

    def _group(self, keys: tuple[Expr, ...]) -> Group:
        options = {"grouping sets": 1.0, "cube": 1.0, "rollup": 1.0}
        word = self.chooser.pick(options, "")
        if keys and word and self.chooser.flip(0.25):
            sets = tuple(
                tuple(sorted(self.random.sample(range(len(keys)), size)))
                for size in self.random.sample(range(len(keys) + 1), min(2, len(keys) + 1))
            )
            return Group(keys, word.upper(), sets if word == "grouping sets" else ())
        return Group(keys, ordinal=self.chooser.wants("ordinal", 0.1))

    def _outputs(
        self,
        scope: Scope,
        many: int,
        shape: tuple[Kind, ...] | None = None,
        *,
        prefix: str = "c",
        taken: Sequence[str] = (),
    ) -> tuple[Output, ...]:
        """
        Args:
            taken: Names of outputs before these.
        """
        kinds = shape
        if kinds is None:
            offered = self.aggregates.kinds(scope) if scope.aggregates else []
            kinds = tuple(
                self.random.choice(offered)
                if offered and self.chooser.flip(0.6)
                else self.expressions.kind(scope)
                for _ in range(many)
            )
        outputs = []
        for i, kind in enumerate(kinds):
            value = self.expressions.value(kind, scope, 2)
            name = f"{prefix}{i}"
            if isinstance(value, Column) and not shape and self.chooser.flip(0.3):
                name = name if _is_refused(value.name) else value.name
            name = _not_among(name, [*taken, *(each.name for each in outputs)])
            outputs.append(Output(name, value))
        if not shape and self.chooser.wants("alias of output", 0.15):
            outputs += self._of_an_output(outputs, taken)
        return tuple(outputs)

    def _of_an_output(self, outputs: list[Output], taken: Sequence[str]) -> list[Output]:
        """A further output that names one of these, unless a table has a column of that name."""
        numbers = [each for each in outputs if each.value.kind is Kind.INT]
        if not numbers:
            return []
        named = Column(Kind.INT, "", self.random.choice(numbers).name)
        text = self.random.choice(["({0} + 1)", "COALESCE({0}, -1)", "({0} * {0})"])
        name = _not_among(f"z{len(outputs)}", taken)
        return [Output(name, Call(Kind.INT, text, (named,)))]

    def _top(self, chance: float) -> Top | None:
        if self.chooser.wants("limit", chance / 2):
            offset = self.random.randint(1, 2) if self.chooser.wants("offset", 0.3) else 0
            return Top(self.random.randint(1, 3), offset, self.random.choice(["", "DESC"]))
        return Top(None) if self.chooser.wants("order by", 0.04) else None

    def _recursive(self) -> Clause:
        """Walk along edges, up to three steps; the last column counts them."""
        edge, taken = Table("edges", "e"), Table("reach", "r", _REACH)
        if self.chooser.flip(0.5):
            edge = Table("orders", "e")
        node = Column(Kind.INT, "e", "id")
        where = self.expressions.condition(Scope(edge.columns()), 1)
        base = Select(
            (Output("n", node), Output("depth", Literal(Kind.INT, "0"))),
            edge,
            where=where if self.chooser.flip(0.6) else None,
        )
        steps = Column(Kind.INT, "r", "depth")
        step = Select(
            (
                Output("n", Column(Kind.INT, "e", "customer")),
                Output("depth", Call(Kind.INT, "({0} + 1)", (steps,))),
            ),
            taken,
            (Join("JOIN", edge, self.expressions.comparison(node, Column(Kind.INT, "r", "n"))),),
            where=Call(Kind.BOOLEAN, "({0} < 3)", (steps,)),
        )
        self.sources.clauses += [("reach", _REACH)] * 2
        return Clause("reach", Recursion(base, step), ("n", "depth"))


_REACH = (("n", Kind.INT), ("depth", Kind.INT))


def _not_among(name: str, taken: Sequence[str]) -> str:
    """The name, made longer if an output before has it."""
    there = {each.lower() for each in taken}
    while name.lower() in there:
        name += "x"
    return name


def _is_refused(name: str) -> bool:
    """Whether no column of a stream table may be called so."""
    return " " in name
