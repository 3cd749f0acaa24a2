"""Subqueries in expressions: EXISTS, IN, ANY, ALL, and scalar ones, correlated or not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qa.fuzz.expressions import comparable
from qa.fuzz.forms import OF_DUCKDB
from qa.fuzz.queries import Group, Output, Select, Star, Top
from qa.fuzz.schema import Kind
from qa.fuzz.scope import Scope
from qa.fuzz.tree import Aggregate, Ask, Call, Column, Expr, Literal

if TYPE_CHECKING:
    from qa.fuzz.grammar import Grammar


class Subqueries:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar, self.expressions = grammar, grammar.expressions
        self.chooser, self.random = grammar.chooser, grammar.random

    def condition(self, scope: Scope) -> Expr | None:
        """A condition that asks a subquery, now and then under OR."""
        if scope.subqueries <= 0:
            return None
        makers = {
            "exists": self._exists, "not exists": self._exists, "in subquery": self._in,
            "not in subquery": self._in, "row in subquery": self._row_in, "any": self._any,
            "all": self._any,
        }  # fmt: skip
        word = self.chooser.pick(dict.fromkeys(makers, 1.0), "")
        asked = makers[word](scope, word) if word else None
        if asked is not None and self.chooser.wants("subquery under or", 0.25):
            other = self.expressions.condition(scope.plain(), 1)
            return Call(Kind.BOOLEAN, "({0} OR {1})", (asked, other), "subquery under or")
        return asked

    def value(self, kind: Kind, scope: Scope) -> Expr | None:
        if scope.subqueries <= 0:
            return None
        options = {"scalar subquery": 1.0, "correlated scalar": 1.5, "scalar limit": 1.0}
        word = self.chooser.pick(options, "")
        if not word:
            return None
        below = self._start(scope, correlated=word != "scalar subquery" or self.chooser.flip(0.2))
        if below is None:
            return None
        base, inner, correlated = below
        about = ("correlated scalar",) if correlated else ("scalar subquery",)
        if word == "scalar limit":
            output = self._column(kind, inner)
            if output is None:
                return None
            query = replace(base, select=(Output("v", output),), top=Top(1))
            return Ask(kind, "({query})", (), query, (*about, "scalar limit"))
        named, more = self._in_list(scope, inner)
        total = self._total(kind, named)
        if total is None:
            return None
        query = replace(base, select=(Output("v", total),), group=Group(()))
        return Ask(kind, "({query})", (), query, about + more)

    def _exists(self, scope: Scope, word: str) -> Expr | None:
        below = self._start(scope, correlated=self.chooser.flip(0.85))
        if below is None:
            return None
        base, inner, _ = below
        query = replace(base, select=(Output("one", Literal(Kind.INT, "1")),))
        words: tuple[str, ...] = (word,)
        if self.chooser.wants("exists list", 0.3):
            named, more = self._in_list(scope, inner)
            query = self._with_list(base, named)
            words = (word, "exists list", *more)
        template = "NOT EXISTS ({query})" if word == "not exists" else "EXISTS ({query})"
        return Ask(Kind.BOOLEAN, template, (), query, words)

    def _with_list(self, base: Select, scope: Scope) -> Select:
        """Outputs that nobody reads."""
        if self.chooser.flip(0.3):
            tables = ["", base.start.alias] if self.chooser.on["star of table"] else [""]
            return replace(base, stars=(Star(self.random.choice(tables)),))
        many = self.random.randint(1, 2)
        kinds = [self.random.choice(scope.columns).kind for _ in range(many)]
        values = [self.expressions.value(kind, scope, 1) for kind in kinds]
        outputs = tuple(Output(f"v{i}", value) for i, value in enumerate(values))
        top = Top(self.random.randint(1, 2), self.random.randint(0, 2))
        top = top if self.chooser.wants("limit", 0.1) else None
        return replace(base, select=outputs, distinct=self.chooser.flip(0.2), top=top)

    def _in_list(self, outer: Scope, inner: Scope) -> tuple[Scope, tuple[str, ...]]:
        """What the outputs of a subquery name, and the construct that it is about."""
        if not self.chooser.wants("outer name in list", 0.15):
            return inner, ()
        return replace(inner, columns=(*inner.columns, *outer.columns)), ("outer name in list",)

    def _in(self, scope: Scope, word: str) -> Expr | None:
        asked = self._pair(scope)
        if asked is None:
            return None
        left, query = asked
        no = "NOT " if word == "not in subquery" else ""
        return Ask(Kind.BOOLEAN, f"({{0}} {no}IN ({{query}}))", (left,), query, (word,))

    def _any(self, scope: Scope, word: str) -> Expr | None:
        asked = self._pair(scope)
        if asked is None:
            return None
        left, query = asked
        op = self.random.choice(["=", "<>", "<", ">="])
        template = f"({{0}} {op} {word.upper()} ({{query}}))"
        return Ask(Kind.BOOLEAN, template, (left,), query, (word,))

    def _row_in(self, scope: Scope, word: str) -> Expr | None:
        below = self._start(scope, correlated=False)
        if below is None:
            return None
        base, inner, _ = below
        pairs = self._pairs(scope.atoms, inner.columns)
        if len(pairs) < 2:
            return None
        chosen = self.random.sample(pairs, 2)
        outputs = tuple(Output(f"v{i}", right) for i, (_, right) in enumerate(chosen))
        query = replace(base, select=outputs)
        no = "NOT " if self.chooser.flip(0.4) else ""
        lefts = tuple(left for left, _ in chosen)
        return Ask(Kind.BOOLEAN, f"(({{0}}, {{1}}) {no}IN ({{query}}))", lefts, query, (word,))

    def _pair(self, scope: Scope) -> tuple[Expr, Select] | None:
        """A value, and a query of one column that it can be looked for in."""
        below = self._start(scope, correlated=self.chooser.flip(0.35))
        if below is None:
            return None
        base, inner, _ = below
        pairs = self._pairs(scope.atoms, inner.columns)
        if not pairs:
            return None
        left, right = self.random.choice(pairs)
        if self.chooser.flip(0.2):
            left = self.expressions.value(left.kind, scope.plain(), 1)
        if self.chooser.flip(0.2):
            right = self.expressions.value(right.kind, self._in_list(scope, inner)[0], 1)
        return left, replace(base, select=(Output("v", right),))

    def _start(self, scope: Scope, *, correlated: bool) -> tuple[Select, Scope, bool] | None:
        """FROM and WHERE of a subquery, what its outputs can name, and whether it is correlated."""
        outer = tuple(c for c in scope.atoms if isinstance(c, Column)) if correlated else ()
        sources = self.grammar.sources
        if self.chooser.wants("joins in subquery", 0.15):
            start, joins, views = sources.several(scope, 0)
            about = ("joins in subquery",)
            joins = tuple(replace(each, about=each.about + about) for each in joins)
            base = Select((), start, joins, views)
        else:
            base = Select((), sources.one({column.table for column in scope.columns}))
        inner = Scope(sources.offered(base.clause))
        conditions: list[Expr] = []
        pairs = self._pairs(outer, inner.columns)
        if pairs:
            left, right = self.random.choice(pairs)
            conditions.append(self.expressions.comparison(right, left, other=0.25))
        if self.chooser.flip(0.4):
            nested = replace(inner, subqueries=scope.subqueries - 1)
            conditions.append(self.expressions.condition(nested, 1))
        where = None
        for each in conditions:
            where = each if where is None else Call(Kind.BOOLEAN, "({0} AND {1})", (where, each))
        return replace(base, where=where), inner, bool(pairs)

    def _total(self, kind: Kind, inner: Scope) -> Expr | None:
        there = {column.kind for column in inner.columns}
        form = self.chooser.form(OF_DUCKDB, lambda f: f.kind is kind and set(f.takes) <= there)
        if form is None:
            return None
        args = tuple(self.expressions.value(each, inner, 1) for each in form.takes)
        total: Expr = Aggregate(form.kind, form.template, args, form.about)
        if self.chooser.flip(0.2):
            total = Call(kind, "COALESCE({0}, {1})", (total, self.expressions.literal(kind)))
        return total

    def _column(self, kind: Kind, inner: Scope) -> Expr | None:
        found = [column for column in inner.columns if column.kind is kind]
        return self.random.choice(found) if found else None

    def _pairs(
        self, left: tuple[Expr, ...], right: tuple[Column, ...]
    ) -> list[tuple[Expr, Column]]:
        """Values that can be compared, keys more often than the rest."""
        there = [column for column in right if column in comparable(right)]
        pairs = [(a, b) for a in comparable(left) for b in there if a.kind is b.kind]
        numbers = [pair for pair in pairs if pair[0].kind is Kind.INT]
        return numbers if numbers and self.chooser.flip(0.6) else pairs
