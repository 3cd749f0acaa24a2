"""What the queries ask of columns, so that some rows can be made for each of them."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

Values = list[Any]


@dataclass(frozen=True)
class Wanted:
    """By column what one query compares it with; a column of two roles has what both ask for."""

    values: dict[str, Values] = field(default_factory=dict[str, Values])
    ranges: dict[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])

    def among(self, columns: Collection[str]) -> set[str]:
        """Those of the columns that the query asks something of."""
        return {*self.values, *self.ranges} & set(columns)

    def has(self, column: str, value: Any) -> bool:
        """Whether the value is one that the query asks for."""
        if value is None:
            return False
        if column in self.ranges:
            least, most = (_like(each, value) for each in self.ranges[column])
            return least <= value <= most
        return value in [_like(each, value) for each in self.values[column]]

    def draw(self, column: str, like: Any, chance: random.Random) -> Any:
        """A value that the query asks for, of the type of another one."""
        if column in self.values:
            return _like(chance.choice(self.values[column]), like)
        least, most = (_like(each, like) for each in self.ranges[column])
        if isinstance(like, int):
            return chance.randint(least, most)
        return round((least + most) / 2, 2)


def wanted(text: str) -> Wanted:
    """What a query compares its columns with: by ``=``, ``IN`` and ``BETWEEN``.

    >>> wanted("SELECT 1 FROM t WHERE a = 'x' AND b IN (-1, 1 + 1) AND c BETWEEN 3 AND 3 + 4")
    Wanted(values={'a': ['x'], 'b': ['-1', '2']}, ranges={'c': ('3', '7')})
    """
    found = Wanted()
    for condition in sqlglot.parse_one(text, read="duckdb").find_all(exp.EQ, exp.In, exp.Between):
        column = condition.this
        if not isinstance(column, exp.Column):
            continue
        values = list(_constants(condition))
        if isinstance(condition, exp.Between):
            if len(values) == 2:
                found.ranges[column.name] = values[0], values[1]
        elif values:
            found.values.setdefault(column.name, []).extend(values)
    return found


def _constants(condition: exp.Expr) -> Iterator[str]:
    parts = [condition.args.get(part) for part in ("expression", "low", "high")]
    for part in [*parts, *condition.expressions]:
        value = simplify(part.copy()) if part else None
        value = value.this if isinstance(value, exp.Cast) else value
        if isinstance(value, exp.Literal | exp.Neg):
            yield value.name if value.is_string else value.sql()


def _like(text: str, value: Any) -> Any:
    """What a constant says, in the type of a value."""
    kind = type(value)
    if hasattr(kind, "fromisoformat"):
        return kind.fromisoformat(text)
    return kind(text)
