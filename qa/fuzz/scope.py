"""What an expression may name, and what it may hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qa.fuzz.schema import Kind
from qa.fuzz.tree import Column, Expr, Key


@dataclass(frozen=True)
class Scope:
    columns: tuple[Column, ...]
    outer: tuple[Column, ...] = ()
    """The columns of the query around, for a correlated one; one level, as Spark allows."""
    keys: tuple[Expr, ...] | None = None
    """The keys of GROUP BY, where expressions are of groups."""
    subtotals: bool = False
    """Whether there are groups of other keys, too."""
    subqueries: int = 0
    """How deep subqueries may nest in expressions here."""
    windows: bool = False
    aggregates: bool = False

    @property
    def atoms(self) -> tuple[Expr, ...]:
        if self.keys is None:
            return self.columns
        return tuple(Key(key.kind, i) for i, key in enumerate(self.keys))

    def of(self, kind: Kind) -> list[Expr]:
        return [atom for atom in self.atoms if atom.kind is kind]

    def plain(self) -> Scope:
        """The same columns, for where there is nothing but functions of a row."""
        return replace(self, subqueries=0, windows=False, aggregates=False)

    def rows(self) -> Scope:
        """The rows below the groups."""
        return replace(self.plain(), keys=None)
