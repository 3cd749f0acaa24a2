"""For each query a few rows that meet its conditions, whatever it joins.

At a small scale a random row hardly ever does: of 28,000 sales not one is of the right day, item,
customer and shop.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qa.tpc.sources import Row
from qa.tpcds.schema import KEYS, referred
from qa.tpcds.wanted import Wanted

_DAYS = 6


@dataclass(frozen=True)
class Niche:
    asked: Wanted
    keys: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """By table those of rows that meet its conditions."""

    def choose(self, table: str, rows: Sequence[Row], chance: random.Random) -> None:
        """Take the keys of days or times that the query asks for: of any if none has it all."""
        columns = self.asked.among(rows[0])
        fit = [row for row in rows if all(self.asked.has(name, row[name]) for name in columns)]
        some = chance.sample(fit or rows, min(len(fit), _DAYS) or 1)
        self.keys[table] = [row[KEYS[table]] for row in some]

    def make(self, table: str, key: int, pattern: Row, chance: random.Random) -> Row:
        """A row with this key, for later rows to refer to."""
        self.keys.setdefault(table, []).append(key)
        return self.like(pattern, chance) | {KEYS[table]: key}

    def like(self, pattern: Row, chance: random.Random) -> Row:
        """The row with what the query asks for, and most of its references to rows of its own."""
        drawn = dict(pattern)
        for column, value in pattern.items():
            table = referred(column)
            if value is not None and self.asked.among([column]):
                drawn[column] = self.asked.draw(column, value, chance)
            elif table in self.keys and chance.random() < 9 / 10:
                drawn[column] = chance.choice(self.keys[table])
        return drawn


def niches(
    asked: Sequence[Wanted], days: Mapping[str, Sequence[Row]], chance: random.Random
) -> list[Niche]:
    """One for each query, with the days and times that it asks for."""
    made = [Niche(each) for each in asked]
    for niche in made:
        for table, rows in days.items():
            niche.choose(table, rows, chance)
    return made
