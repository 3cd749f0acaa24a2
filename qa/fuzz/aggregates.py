"""Aggregates and windows as atoms of expressions."""

from __future__ import annotations

from dataclasses import replace

from qa.fuzz.expressions import Expressions, comparable
from qa.fuzz.forms import (
    AGGREGATES,
    POSITIONS,
    RANGE_FRAMES,
    RANKS,
    ROWS_FRAMES,
    TOTALS,
    Form,
)
from qa.fuzz.schema import Kind
from qa.fuzz.scope import Scope
from qa.fuzz.switches import OF_SPARK
from qa.fuzz.tree import Aggregate, Expr, Literal, Order, Over, Spec


class Aggregates:
    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.chooser, self.random = expressions.chooser, expressions.random

    def __call__(self, kind: Kind, scope: Scope) -> Expr | None:
        if not scope.aggregates or scope.keys is None:
            return None
        same = scope.of(kind)
        # Of the rows of a subtotal, which have several keys, it would be any.
        if same and not scope.subtotals and self.chooser.wants("any_value", 0.1):
            return Aggregate(kind, "ANY_VALUE({0})", (self.random.choice(same),), "any_value")
        rows = scope.rows()
        there = {atom.kind for atom in rows.atoms}
        form = self.chooser.form(
            AGGREGATES, lambda f: f.kind is kind and set(f.takes) <= there | {Kind.BOOLEAN}
        )
        if form is None:
            return None
        args = tuple(self.expressions.value(each, rows, 1) for each in form.takes)
        where = None
        if self.chooser.wants("filter clause", 0.12) and "WITHIN" not in form.template:
            where = self.expressions.condition(rows, 1)
        if form.template.startswith(("ROUND", "SORT_ARRAY")) or form.about in OF_SPARK:
            where = None
        return Aggregate(form.kind, form.template, args, form.about, where)

    def kinds(self, scope: Scope) -> list[Kind]:
        there = {atom.kind for atom in scope.rows().atoms}
        on = self.chooser.on
        return [
            form.kind
            for form in AGGREGATES
            if set(form.takes) <= there and (not form.about or on[form.about] > 0)
        ]

    def grouping(self, scope: Scope) -> Expr | None:
        if not scope.keys:
            return None
        key = self.random.choice(scope.atoms)
        return Aggregate(Kind.INT, "GROUPING({0})", (key,), "grouping")


class Windows:
    """Window functions whose answer does not depend on how ties are broken.

    Rows that are equal in all columns stand in an arbitrary order, and two windows may order them
    differently: one SELECT has one window that looks at positions, no more.
    """

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.chooser, self.random = expressions.chooser, expressions.random
        self.positioned = False
        """Whether the SELECT that is being made has its window of positions."""

    def __call__(self, kind: Kind, scope: Scope) -> Expr | None:
        if not scope.windows or not self.chooser.on["window"]:
            return None
        inner = scope.plain()
        named = self.chooser.wants("named window", 0.25)
        style = self.random.choice(["rank", "position", "total", "rows", "range", "whole"])
        if style in ("position", "rows"):
            if self.positioned:
                return None
            made = self._positioned(kind, inner, style)
            self.positioned |= made is not None
        else:
            made = self._tied(kind, inner, style)
        return replace(made, named=named) if made is not None else None

    def _positioned(self, kind: Kind, scope: Scope, style: str) -> Over | None:
        frame = ""
        if style == "rows":
            if not self.chooser.on["frame"]:
                return None
            frame = self.random.choice(ROWS_FRAMES)
        form = self._form(TOTALS if style == "rows" else POSITIONS, kind, scope)
        if form is None:
            return None
        spec = Spec(self._partition(scope), self._order(scope, 0, 2), frame, total=True)
        return self._over(form, scope, spec)

    def _tied(self, kind: Kind, scope: Scope, style: str) -> Over | None:
        form = self._form(RANKS if style == "rank" else TOTALS, kind, scope)
        numbers = scope.of(Kind.INT)
        if form is None or (style == "range" and not (numbers and self.chooser.on["range frame"])):
            return None
        order, frame = (), ""
        if style == "range":
            way = self.random.choice(["", "DESC"])
            order = (Order(self.random.choice(numbers), way),)
            frame = self.random.choice(RANGE_FRAMES)
        elif style != "whole":
            order = self._order(scope, 1, 2)
            if not order:
                return None
        return self._over(form, scope, Spec(self._partition(scope), order, frame))

    def _form(self, forms: list[Form], kind: Kind, scope: Scope) -> Form | None:
        return self.chooser.form(
            forms, lambda f: f.kind is kind and all(scope.of(each) for each in f.takes)
        )

    def _over(self, form: Form, scope: Scope, spec: Spec) -> Over:
        args = tuple(self.expressions.value(each, scope, 1) for each in form.takes)
        where = None
        if form in TOTALS and self.chooser.wants("window filter", 0.1):
            where = self.expressions.condition(scope, 1)
        return Over(form.kind, form.template, args, spec, where=where)

    def _partition(self, scope: Scope) -> tuple[Expr, ...]:
        columns = comparable(scope.atoms)
        many = self.random.choice([0, 1, 1, 1, 2])
        chosen = self.random.sample(columns, min(many, len(columns)))
        if chosen and self.chooser.flip(0.2):
            chosen[0] = self.expressions.value(chosen[0].kind, scope, 1)
        return tuple(each for each in chosen if not isinstance(each, Literal))

    def _order(self, scope: Scope, least: int, most: int) -> tuple[Order, ...]:
        columns = comparable(scope.atoms)
        chosen = self.random.sample(columns, min(self.random.randint(least, most), len(columns)))
        ways = ["", "", "DESC", "NULLS LAST", "DESC NULLS FIRST"]
        return tuple(Order(each, self.random.choice(ways)) for each in chosen)
