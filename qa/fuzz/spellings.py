"""Other ways in which Spark lets a query be written: pipes, and what its reader skips."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from qa.fuzz.queries import Group, Output, Select, holds
from qa.fuzz.schema import SOURCES, Kind
from qa.fuzz.tree import Columns, Key, Over, Query, quoted, walk

SPELLINGS = ("comment", "loud", "other case")
_COMMENTS = (" /* it's; */ ", ' -- "one\n', "\n\t", " /**/ ", " /* `a */ ")
_QUOTED = re.compile(r"('[^']*'|`[^`]*`|/\*.*?\*/|--[^\n]*\n)", re.DOTALL)


@dataclass(frozen=True)
class Piped(Query):
    """One step for each clause."""

    query: Select

    own_constructs: ClassVar[tuple[str, ...]] = ("pipe",)

    @property
    def outputs(self) -> Columns:
        return self.query.outputs

    def sql(self) -> str:
        query, here = self.query, self.query.here
        steps = [query.sources(here)]
        if query.where:
            steps.append(f"WHERE {query.where.sql(here)}")
        outputs = query.select_list(here)
        if query.group is not None:
            steps.append(self._aggregate(query.group))
            outputs = ", ".join(quoted(each.name) for each in query.select)
        steps.append(f"SELECT {'DISTINCT ' * query.distinct}{outputs}")
        text = query.top.sql([name for name, _ in self.outputs]) if query.top else ""
        steps += [part for part in re.split(r" (?=ORDER BY|LIMIT)", text) if part]
        return " |> ".join(steps)

    def _aggregate(self, group: Group) -> str:
        here = self.query.here
        totals = [o.sql(here) for o in self.query.select if not isinstance(o.value, Key)]
        names = {o.value.position: o.name for o in self.query.select if isinstance(o.value, Key)}
        keys = [
            f"{key.sql(here)} AS {quoted(names.get(i, f'unseen{i}'))}"
            for i, key in enumerate(group.keys)
        ]
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"AGGREGATE {', '.join(totals)}{grouped}"


def can_be_piped(query: Select) -> bool:
    """Whether each of its clauses is a step that knows the same names."""
    values = [output.value for output in query.select]
    if query.qualify is not None or any(holds(Over, value) for value in values):
        return False
    group = query.group
    return group is None or (
        query.having is None and not group.kind and not group.ordinal and not group.all
        and _no_key_inside(query.select)
        and len({v.position for v in values if isinstance(v, Key)})
        == sum(isinstance(v, Key) for v in values)
    )  # fmt: skip


def all_keys_are_outputs(group: Group, outputs: tuple[Output, ...]) -> bool:
    """Whether GROUP BY ALL finds the same keys."""
    there = {each.value.position for each in outputs if isinstance(each.value, Key)}
    plain = not group.kind and not group.ordinal and _no_key_inside(outputs)
    return plain and bool(group.keys) and there == set(range(len(group.keys)))


def _no_key_inside(outputs: tuple[Output, ...]) -> bool:
    values = (each.value for each in outputs if not isinstance(each.value, Key))
    return not any(isinstance(part, Key) for value in values for part in walk(value))


@dataclass(frozen=True)
class Spelled(Query):
    """The same query, in capitals, in mixed case, or with comments between its words."""

    query: Query
    way: str
    seed: int = 0

    @property
    def constructs(self) -> tuple[str, ...]:
        return (self.way,)

    @property
    def outputs(self) -> Columns:
        return self.query.outputs

    def sql(self) -> str:
        parts = _QUOTED.split(self.query.sql())
        random = Random(self.seed)
        for i in range(0, len(parts), 2):
            parts[i] = _WAYS[self.way](parts[i], random)
        return "".join(parts)


def _loud(text: str, _: Random) -> str:
    """In capitals, but for the tables, which are folders."""
    return re.sub(r"\w+", lambda word: word[0] if word[0] in SOURCES else word[0].upper(), text)


def _in_other_case(text: str, random: Random) -> str:
    """Some words, those of tables included."""

    def spelled(word: re.Match[str]) -> str:
        return random.choice((str.upper, str.lower, str.title, *(str,) * 9))(word[0])

    return re.sub(r"\w+", spelled, text)


def _commented(text: str, random: Random) -> str:
    words = text.split(" ")
    between = (random.choice(_COMMENTS) if random.random() < 0.1 else " " for _ in words[1:])
    return words[0] + "".join(b + word for b, word in zip(between, words[1:], strict=True))


_WAYS = {"comment": _commented, "loud": _loud, "other case": _in_other_case}
_UNPIVOTED: Columns = (("id", Kind.INT), ("n", Kind.STRING), ("v", Kind.INT))
_TIMES: Columns = (("w", Kind.TIMESTAMP), ("kind", Kind.STRING), ("n", Kind.INT), ("m", Kind.INT))
_GROUPED = "SELECT {0}.{1} AS w, kind, COUNT(*) AS n, MAX(id) AS m FROM events GROUP BY {2}, kind"


def _times(name: str, end: str, window: str) -> tuple[str, Columns]:
    return _GROUPED.format(name, end, window), _TIMES


TEXTS: Mapping[str, tuple[tuple[str, Columns], ...]] = {
    "unpivot": (
        ("SELECT * FROM orders UNPIVOT (v FOR n IN (customer, amount))", _UNPIVOTED),
        (
            "SELECT * FROM orders UNPIVOT INCLUDE NULLS (v FOR n IN (customer AS c, amount AS a))",
            _UNPIVOTED,
        ),
        ("FROM orders |> UNPIVOT (v FOR n IN (amount, customer))", _UNPIVOTED),
    ),
    "window of time": (
        _times("window", "start", "window(happened, '30 minutes')"),
        _times("window", "end", "window(happened, '2 hours', '1 hour')"),
        _times("session_window", "start", "session_window(happened, '10 hours')"),
    ),
}
"""Construct → derived tables, each with its columns."""
