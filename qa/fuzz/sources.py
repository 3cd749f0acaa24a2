"""Random FROM clauses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qa.fuzz.expressions import comparable
from qa.fuzz.forms import COMPARABLE, LITERALS
from qa.fuzz.from_clause import FromClause
from qa.fuzz.queries import Output, Select
from qa.fuzz.relations import Derived, Function, Join, Pivoted, Table, Values, View, Written
from qa.fuzz.schema import SOURCES, Kind
from qa.fuzz.scope import Scope
from qa.fuzz.spellings import TEXTS
from qa.fuzz.tree import Call, Column, Columns, Expr, Literal, Query, Relation

if TYPE_CHECKING:
    from qa.fuzz.grammar import Grammar

_OFTEN = {"orders": 6, "customers": 4, "regions": 2, "sales": 2, "ledger": 1, "odd": 1}
_TYPED = {"events": 8, "edges": 2}
_SIDES = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_BY_NAMES = (*_SIDES, "FULL JOIN", "RIGHT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
_KEYWORDS = ("all", "values", "date", "first", "user", "key", "timestamp", "table")
"""Names of columns that are words of SQL, and that Spark takes without quotes."""


class Sources:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar, self.expressions = grammar, grammar.expressions
        self.chooser, self.random = grammar.chooser, grammar.random
        self.clauses: list[tuple[str, Columns]] = []
        """The common table expressions that can be named, with their columns."""

    def alias(self, taken: set[str]) -> str:
        """Any letter that stands for no other table: letters recur in subqueries beside."""
        return self.random.choice([each for each in "abcdefghtuvw" if each not in taken])

    def one(self, taken: set[str], depth: int = 0) -> Relation:
        """A relation under an alias that is not taken."""
        alias = self.alias(taken)
        if self.clauses and self.chooser.flip(0.6):
            name, columns = self.random.choice(self.clauses)
            return Table(name, alias, columns)
        if depth > 0:
            options = {
                "derived table": 2.0, "values": 0.4, "pivot": 0.6, "join": 2.0, "unpivot": 0.6,
                "window of time": 0.6,
            }  # fmt: skip
            word = self.chooser.pick(options, "join")
            if word == "derived table":
                return self._derived(self.grammar.query(depth - 1), alias)
            if word == "values":
                return self._values(alias)
            if word == "pivot":
                return self._pivoted(alias)
            if word in TEXTS:
                text, names = self.random.choice(TEXTS[word])
                return Written(text, alias, names, word)
        weights = _OFTEN | (_TYPED if self.chooser.flip(0.5) else {})
        weights |= {"bags": 8} if self.chooser.wants("map", 0.2) else {}
        name = self.random.choices(list(weights), list(weights.values()))[0]
        if self.chooser.wants("column aliases", 0.08):
            return self._renamed(name, alias)
        unaliased = name not in taken and self.chooser.flip(0.15)
        return Table(name, name if unaliased else alias)

    def _renamed(self, name: str, alias: str) -> Table:
        """A table whose columns have names that others have, too."""
        names = [f"k{i}" for i in range(len(SOURCES[name]))]
        if self.chooser.wants("keyword names", 0.4):
            at = self.random.randrange(3)
            names[at:] = _KEYWORDS[at : len(names)]
        return Table(name, alias, renames=tuple(names))

    def offered(self, clause: FromClause) -> tuple[Column, ...]:
        """What expressions name: what joins merged, too, and the more often."""
        if not self.chooser.on["merged column"]:
            return tuple(each for each in clause.named if each.table)
        merged = [each for each in clause.named if not each.table]
        return (*clause.named, *merged)

    def several(
        self, outer: Scope | None, depth: int
    ) -> tuple[Relation, tuple[Join, ...], tuple[View, ...]]:
        """A whole FROM clause."""
        taken = {column.table for column in outer.columns} if outer else set[str]()
        if self.chooser.wants("chain by names", 0.12):
            start, joins = self._chain(taken)
        else:
            start, joins = self.one(taken, depth), []
        for _ in range(self.random.choices([0, 1, 2, 3], [6, 5, 1.5, 0.3])[0]):
            taken |= {start.alias, *(join.relation.alias for join in joins)}
            join = self._join(FromClause.of(start, joins, ()), taken, depth)
            joins += [join] if join is not None else []
        visible = list(self.offered(FromClause.of(start, joins, ())))
        taken |= {join.relation.alias for join in joins}
        views: tuple[View, ...] = ()
        if self.chooser.wants("lateral view", 0.15):
            view = self._view(visible, taken | {start.alias})
            views = (view,) if view is not None else ()
        return start, tuple(_commas_last(joins)), views

    def _chain(self, taken: set[str]) -> tuple[Relation, list[Join]]:
        """Two or three joins that all compare a column of one name."""
        renames = self.chooser.on["column aliases"] > 0 and self.chooser.flip(0.5)
        names = ["orders", "customers", "edges"]

        def table() -> Table:
            name, alias = self.random.choice(names), self.alias(taken)
            taken.add(alias)
            return self._renamed(name, alias) if renames else Table(name, alias)

        start, joins = table(), list[Join]()
        for _ in range(self.random.randint(2, 3)):
            clause, relation = FromClause.of(start, joins, ()), table()
            shared = self._shared(clause, relation)
            if shared:
                word = self.random.choice(_BY_NAMES)
                joins.append(self._by_name(word, relation, shared, ("chain by names",)))
        return start, joins

    def _shared(self, clause: FromClause, relation: Relation) -> list[str]:
        """The names that can be compared with a relation's."""
        kinds = {name: kind for name, kind in relation.outputs if kind in COMPARABLE}
        names = [each.name for each in clause.shown if kinds.get(each.name) is each.kind]
        return [name for name in dict.fromkeys(names) if names.count(name) == 1]

    def _by_name(
        self, word: str, relation: Relation, shared: list[str], about: tuple[str, ...] = ()
    ) -> Join:
        self.random.shuffle(shared)
        many = self.random.choice([1, 1, 1, 2])
        return Join(word, relation, using=tuple(shared[:many]), about=about)

    def _join(self, clause: FromClause, taken: set[str], depth: int) -> Join | None:
        options = {
            "join": 2.0, "outer join": 2.0, "cross join": 0.5, "natural join": 0.6,
            "semi join": 1.0, "anti join": 1.0, "lateral": 1.0, "explode": 0.8,
        }  # fmt: skip
        word = self.chooser.pick(options, "")
        if not word:
            return None
        visible = list(self.offered(clause))
        if word == "lateral":
            return self._lateral(visible, taken)
        if word == "explode":
            return self._explode(visible, taken)
        relation = self.one(taken, depth)
        if word == "cross join":
            return Join(self.random.choice([",", "CROSS JOIN"]), relation)
        if word == "natural join":
            shared = self._shared(clause, relation)
            if shared and set(shared) == {n for n, _ in relation.outputs if clause.find(n)}:
                return Join(f"NATURAL {self.random.choice(_SIDES)}", relation)
            word = "join"
        words = {
            "join": ["JOIN"], "outer join": ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT JOIN"],
            "semi join": ["LEFT SEMI JOIN"], "anti join": ["LEFT ANTI JOIN"],
        }.get(word, ["JOIN"])  # fmt: skip
        return self._with_condition(self.random.choice(words), relation, clause)

    def _with_condition(self, word: str, relation: Relation, clause: FromClause) -> Join:
        theirs = {name for name, _ in relation.outputs}
        offered = self.offered(clause)
        visible = tuple(c for c in offered if c.table or c.name not in theirs)  # or ambiguous
        scope = Scope((*visible, *relation.columns()))
        left = comparable(visible)
        pairs = [(a, b) for a in left for b in relation.columns() if a.kind is b.kind]
        numbers = [pair for pair in pairs if pair[0].kind is Kind.INT]
        if numbers and self.chooser.flip(0.7):
            pairs = numbers
        if not pairs:
            return Join(word, relation, self.expressions.condition(scope, 1))
        shared = self._shared(clause, relation)
        if shared and self.chooser.wants("using", 0.15):
            return self._by_name(word, relation, shared)
        a, b = self.random.choice(pairs)
        about: tuple[str, ...] = ()
        on = self.expressions.comparison(a, b)
        if self.chooser.wants("inequality join", 0.15):
            on, about = self.expressions.comparison(a, b, safe=0, other=1), ("inequality join",)
        if self.chooser.flip(0.3):
            asking = self.chooser.wants("subquery in on", 0.2)
            more = self.expressions.condition(replace(scope, subqueries=int(asking)), 1)
            joint = "({0} OR {1})" if self.chooser.flip(0.15) else "({0} AND {1})"
            on = Call(Kind.BOOLEAN, joint, (on, more))
        return Join(word, relation, on, about=about)

    def _lateral(self, visible: list[Column], taken: set[str]) -> Join:
        outer = Scope(tuple(visible))
        query, words = self.grammar.lateral(outer)
        about = ",".join(("lateral", *words))
        relation = Derived(query, self.alias(taken | {c.table for c in visible}), lateral=about)
        if self.chooser.wants("left lateral", 0.3):
            on: Expr = Literal(Kind.BOOLEAN, "true")
            return Join("LEFT JOIN", relation, on, about=("left lateral",))
        return Join(self.random.choice([",", "CROSS JOIN"]), relation)

    def _exploded(self, visible: list[Column]) -> tuple[str, Expr, Columns] | None:
        """A table function, its argument, the columns it yields."""
        scope = Scope(tuple(visible))
        if not scope.of(Kind.INTS) and not scope.of(Kind.INT):
            return None
        word = self.random.choice(["explode", "explode_outer", "posexplode", "inline"])
        if word == "inline" and scope.of(Kind.INT):
            number = self.random.choice(scope.of(Kind.INT))
            pairs = "ARRAY(STRUCT({0} AS x, 'a' AS y), STRUCT(1 AS x, 'b' AS y))"
            return word, Call(Kind.INTS, pairs, (number,)), (("p", Kind.INT), ("q", Kind.STRING))
        if scope.of(Kind.INTS) and self.chooser.flip(0.7):
            arg = self.random.choice(scope.of(Kind.INTS))
        else:
            numbers = scope.of(Kind.INT) or [Literal(Kind.INT, "1")]
            one, two = self.random.choice(numbers), self.random.choice(numbers)
            arg = Call(Kind.INTS, "ARRAY({0}, {1})", (one, two), "")
        if word == "posexplode":
            return word, arg, (("p", Kind.INT), ("q", Kind.INT))
        return word.replace("inline", "explode"), arg, (("p", Kind.INT),)

    def _explode(self, visible: list[Column], taken: set[str]) -> Join | None:
        if (made := self._exploded(visible)) is None:
            return None
        word, arg, names = made
        relation = Function(word, arg, self.alias(taken), names)
        if self.chooser.flip(0.25):
            return Join("LEFT JOIN", relation, Literal(Kind.BOOLEAN, "true"))
        return Join(",", relation)

    def _view(self, visible: list[Column], taken: set[str]) -> View | None:
        if (made := self._exploded(visible)) is None:
            return None
        word, arg, names = made
        outer = word != "explode_outer" and self.chooser.flip(0.3)
        return View(word, outer, arg, self.alias(taken | {c.table for c in visible}), names)

    def _derived(self, query: Query, alias: str) -> Relation:
        if self.chooser.wants("column aliases", 0.1):
            return Derived(query, alias, tuple(f"k{i}" for i in range(len(query.outputs))))
        return Derived(query, alias)

    def _values(self, alias: str) -> Relation:
        names = (("n", Kind.INT), ("s", Kind.STRING))
        rows = tuple(
            tuple(Literal(kind, self.random.choice(LITERALS[kind])) for _, kind in names)
            for _ in range(self.random.randint(1, 3))
        )
        return Values(rows, alias, names)

    def _pivoted(self, alias: str) -> Relation:
        below = Table("orders", "p")
        columns = {name: Column(kind, "p", name) for name, kind in below.outputs}
        names = self.random.choice([("customer", "amount"), ("id", "customer", "amount")])
        query = Select(tuple(Output(name, columns[name]) for name in names), below)
        word = self.random.choice(["SUM", "MAX", "COUNT"])
        total = Call(Kind.INT, f"{word}({{0}})", (Column(Kind.INT, "", "amount"),))
        return Pivoted(query, "customer", total, (("1", "one"), ("2", "two")), alias)


def _commas_last(joins: list[Join]) -> list[Join]:
    """A comma binds looser than JOIN: conditions behind one do not see what is before it."""
    settled: list[Join] = []
    for join in reversed(joins):
        loose = join.word == "," and all(each.word == "," for each in settled)
        settled.append(replace(join, word="CROSS JOIN") if join.word == "," and not loose else join)
    return settled[::-1]
