"""The damage of a query: tokens that are missing, doubled, swapped, or come from elsewhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from dagster_streamtables.compiler.text.syntax import tokens_of

_WORDS = (
    ",", "(", ")", ".", "*", "=", "-", "'a'", "1", "NULL", "ALL", "AND", "AS", "ASC", "BETWEEN",
    "BY", "CASE", "CROSS", "DESC", "DISTINCT", "ELSE", "END", "EXCEPT", "FILTER", "FROM", "FULL",
    "GROUP BY", "HAVING", "IN", "INNER", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT 1", "NOT",
    "NULLS LAST", "OFFSET 1", "ON", "OR", "ORDER BY", "OVER", "OVER (ORDER BY id)", "PARTITION BY",
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "SELECT", "SEMI", "UNION", "UNION ALL", "USING",
    "USING (id)", "VALUES", "WHERE", "WHEN", "WINDOW", "WITH", "id", "amount", "customer", "DATE",
    "INTERVAL 1 DAY", "COUNT(*)", "SUM(amount)", "lag(id)", "rank()", "IGNORE NULLS", "::INT",
)  # fmt: skip


def damage(query: str, random: random.Random) -> str:
    """The query with one or two accidents."""
    parts = _parts(query)
    for _ in range(random.choice((1, 1, 2))):
        random.choice(_ACCIDENTS)(parts, random)
    return " ".join(parts)


def _parts(query: str) -> list[str]:
    return [query[token.start : token.end + 1] for token in tokens_of(query, "spark")]


def _drop(parts: list[str], random: random.Random) -> None:
    if parts:
        del parts[random.randrange(len(parts))]


def _double(parts: list[str], random: random.Random) -> None:
    place = random.randrange(len(parts) + 1)
    parts[place:place] = parts[max(0, place - random.choice((1, 1, 1, 2, 3))) : place]


def _swap(parts: list[str], random: random.Random) -> None:
    if len(parts) > 1:
        place = random.randrange(len(parts) - 1)
        parts[place : place + 2] = reversed(parts[place : place + 2])


def _insert(parts: list[str], random: random.Random) -> None:
    parts.insert(random.randrange(len(parts) + 1), random.choice(_WORDS))


def _replace(parts: list[str], random: random.Random) -> None:
    if parts:
        parts[random.randrange(len(parts))] = random.choice(_WORDS)


_ACCIDENTS: Sequence[Callable[[list[str], random.Random], None]] = (
    _drop, _double, _swap, _insert, _replace,
)  # fmt: skip
