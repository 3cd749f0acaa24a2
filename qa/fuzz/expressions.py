"""Random typed expressions."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from qa.fuzz.forms import COMPARABLE, LITERALS, PREDICATES, SCALARS, Form
from qa.fuzz.schema import Kind
from qa.fuzz.scope import Scope
from qa.fuzz.switches import Switches
from qa.fuzz.tree import Call, Expr, Literal

T = TypeVar("T")


class Chooser:
    """A source of chance, and what is switched on."""

    def __init__(self, random: Random, on: Switches) -> None:
        self.random, self.on = random, on

    def flip(self, chance: float) -> bool:
        return self.random.random() < chance

    def wants(self, construct: str, chance: float) -> bool:
        """Whether to use a construct here; never where it is switched off."""
        drawn = self.random.random()
        return self.on[construct] > 0 and drawn < min(0.5, chance * self.on[construct])

    def pick(self, options: dict[str, float], otherwise: str) -> str:
        """A construct by its weight, among those that are switched on."""
        weights = {word: self.on[word] * w for word, w in options.items() if self.on[word] > 0}
        if not weights:
            return otherwise
        return self.random.choices(list(weights), list(weights.values()))[0]

    def form(self, forms: list[Form], allowed: Callable[[Form], bool]) -> Form | None:
        fitting = [f for f in forms if (not f.about or self.on[f.about] > 0) and allowed(f)]
        return self.random.choice(fitting) if fitting else None


class Expressions:
    """Functions of a row, over atoms that others add: subqueries, aggregates, windows."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser, self.random = chooser, chooser.random
        self.special: list[Callable[[Kind, Scope], Expr | None]] = []
        """Makers of atoms that are no column; each gives None where it has nothing to offer."""
        self.conditions: list[Callable[[Scope], Expr | None]] = []
        """Makers of conditions with a subquery."""

    def kind(self, scope: Scope) -> Kind:
        """A kind that is there to be had, rarely another."""
        there = [atom.kind for atom in scope.atoms]
        if self.chooser.wants("variant", 0.05):
            return Kind.VARIANT
        return self.random.choice(there or [Kind.INT])

    def value(self, kind: Kind, scope: Scope, depth: int = 2) -> Expr:
        if kind is Kind.BOOLEAN and self.chooser.flip(0.7):
            return self.condition(scope, depth)
        if (
            depth > 0
            and self.special
            and self.chooser.flip(0.6 if scope.keys is not None else 0.25)
        ):
            made = self.random.choice(self.special)(kind, scope)
            if made is not None:
                return made
        atoms = scope.of(kind)
        if scope.aggregates and self.special and (not atoms or self.chooser.flip(0.3)):
            made = self.special[0](kind, scope)
            if made is not None:
                return made
        if atoms and (depth <= 0 or self.chooser.flip(0.6)):
            return self.random.choice(atoms)
        if depth > 0:
            form = self.chooser.form(SCALARS, lambda f: f.kind is kind and self._takes(f, scope))
            if form is not None:
                return self.call(form, scope, depth - 1)
        if atoms:
            return self.random.choice(atoms)
        return self.literal(kind)

    def literal(self, kind: Kind) -> Literal:
        return Literal(kind, self.random.choice(LITERALS[kind]))

    def condition(self, scope: Scope, depth: int = 2) -> Expr:
        if depth > 0 and scope.subqueries > 0 and self.conditions and self.chooser.flip(0.6):
            made = self.random.choice(self.conditions)(scope)
            if made is not None:
                return made
        if depth <= 0:
            atoms = scope.of(Kind.BOOLEAN)
            if atoms and self.chooser.flip(0.5):
                return self.random.choice(atoms)
        form = self.chooser.form(
            PREDICATES,
            lambda f: self._takes(f, scope) and (depth > 0 or Kind.BOOLEAN not in f.takes),
        )
        return self.literal(Kind.BOOLEAN) if form is None else self.call(form, scope, depth - 1)

    def call(self, form: Form, scope: Scope, depth: int) -> Expr:
        args = [self.value(kind, scope, depth) for kind in form.takes]
        if len(args) == 2 and form.takes[0] is form.takes[1] and self.chooser.flip(0.3):
            args[1] = self.literal(form.takes[1])
        for i, arg in enumerate(args):
            others = [atom for atom in scope.of(arg.kind) if atom not in args[:i]]
            if arg in args[:i] and others:
                args[i] = self.random.choice(others)
        return Call(form.kind, form.template, tuple(args), form.about)

    def comparison(
        self, left: Expr, right: Expr, *, safe: float = 0.15, other: float = 0.0
    ) -> Expr:
        """An equality of two columns, at times null-safe, at times another comparison."""
        word = "="
        if self.chooser.flip(safe) and self.chooser.on["null-safe"]:
            word = "<=>"
        elif self.chooser.flip(other):
            word = self.random.choice(["<", ">=", "<>"])
        return Call(Kind.BOOLEAN, f"({{0}} {word} {{1}})", (left, right))

    def _takes(self, form: Form, scope: Scope) -> bool:
        """Whether the form is about something that is there, not about literals alone."""
        there = {atom.kind for atom in scope.atoms} | ({Kind.BOOLEAN} if form.takes else set())
        there |= {Kind.INT} if scope.aggregates else set()
        there |= {Kind.VARIANT} if self.chooser.on["variant"] else set()
        return all(kind in there for kind in form.takes[:1]) if form.takes else True


def comparable(columns: tuple[Expr, ...]) -> list[Expr]:
    return [column for column in columns if column.kind in COMPARABLE]
