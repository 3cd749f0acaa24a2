"""Which columns a FROM clause has, and which of them can be named alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from qa.fuzz.relations import Join, Relation, View
from qa.fuzz.tree import Alone, Column


@dataclass(frozen=True)
class FromClause:
    shown: tuple[Column, ...] = ()
    """What ``*`` has, in the order of Spark; what FULL JOIN merges belongs to no table."""
    hidden: tuple[Column, ...] = ()
    """What a join by names merged into another column: only its table finds it."""

    @classmethod
    def of(cls, start: Relation, joins: Iterable[Join], views: Iterable[View]) -> FromClause:
        made = cls(start.columns())
        for join in joins:
            made = made.joined(join)
        return cls(made.shown + tuple(c for view in views for c in view.columns()), made.hidden)

    def joined(self, join: Join) -> FromClause:
        right = join.relation.columns()
        names = join.using
        if "NATURAL" in join.word:
            names = tuple(c.name for c in self.shown if c.name in {r.name for r in right})
        # While a query is made smaller, a column may be missing: then no engine runs it.
        lefts = [c for n in names for c in self.shown if c.name == n]
        rights = [c for n in names for c in right if c.name == n]
        others = tuple(c for c in self.shown if c not in lefts)
        if join.hides:
            return FromClause((*lefts, *others), self.hidden)
        if "FULL" in join.word:
            keys, gone = [Alone(c.kind, "", c.name) for c in lefts], [*lefts, *rights]
        elif "RIGHT" in join.word:
            keys, gone = rights, lefts
        else:
            keys, gone = lefts, rights
        added = tuple(c for c in right if c not in rights)
        gone = [c for c in gone if c.table]
        return FromClause((*keys, *others, *added), (*gone, *self.hidden))

    def find(self, name: str) -> list[Column]:
        """What a name alone may mean."""
        return [each for each in self.shown if each.name == name]

    @property
    def named(self) -> tuple[Column, ...]:
        """Each column under its table, and under its name alone what a join by names merged."""
        counts = Counter(each.name for each in self.shown)
        merged = {c.name for c in self.hidden} | {c.name for c in self.shown if not c.table}
        alone = [
            Alone(c.kind, "", c.name)
            for c in self.shown
            if c.name in merged and counts[c.name] == 1
        ]
        return (*(c for c in (*self.shown, *self.hidden) if c.table), *alone)

    def star(self, table: str) -> list[Column]:
        if not table:
            return list(self.shown)
        return [each for each in (*self.hidden, *self.shown) if each.table == table]
