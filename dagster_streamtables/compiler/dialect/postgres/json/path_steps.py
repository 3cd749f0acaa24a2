"""Reads paths of SQL/JSON: their steps, and the conditions of their filters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

_SPACE = re.compile(r"\s*")
_STEP = re.compile(
    r'\s*(?:\.\s*(?:(?P<key>[A-Za-z_]\w*)|"(?P<quoted>[^"\'\\]*)")|\[\s*(?P<at>\d+|last|\*)\s*\])\s*'
)
_METHOD, _FILTER = re.compile(r"\s*\("), re.compile(r"\s*\?\s*\(")
_OPERATOR = re.compile(r"(==|!=|<>|<=|>=|<|>|starts\s+with\b)\s*")
_CONSTANT = re.compile(
    r'(?P<NUMBER>-?\d{1,20}(?:\.\d{1,18})?)(?![\w.])|"(?P<STRING>[^"\\]*)"'
    r"|(?P<BOOLEAN>true|false)\b|(?P<VOID>null)\b"
)


class Key(NamedTuple):
    name: str


class Place(NamedTuple):
    place: str
    """A number, ``last`` or ``*``."""


class Test(NamedTuple):
    operator: str
    """As in Spark, or ``starts with``."""
    kind: str
    text: str


class Of(NamedTuple):
    """Some item of a path passes a test, or is there."""

    path: list[Step]
    test: Test | None


class Several(NamedTuple):
    all: bool
    parts: list[Condition]


class Filter(NamedTuple):
    condition: Condition


Condition = Of | Several
Step = Key | Place | Filter


class _Unknown(ValueError):
    """A part of a path that is not translated."""


def read(text: str) -> list[Step] | None:
    """The steps of a path after its ``$``; None if it has others than those above.

    >>> read(".a[*]"), read(".a.size()")
    ([Key(name='a'), Place(place='*')], None)
    """
    reader = _Reader(text)
    try:
        steps = reader.steps(filters=True)
    except _Unknown:
        return None
    return steps if reader.at == len(text) else None


@dataclass
class _Reader:
    text: str
    at: int = 0

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def _word(self, word: str) -> bool:
        self._take(_SPACE)
        return self._take(re.compile(re.escape(word))) is not None

    def _require(self, word: str) -> None:
        if not self._word(word):
            raise _Unknown

    def steps(self, *, filters: bool) -> list[Step]:
        found: list[Step] = []
        while True:
            step = self._take(_STEP)
            if step is not None:
                if _METHOD.match(self.text, self.at):
                    raise _Unknown
                key = step["key"] if step["key"] is not None else step["quoted"]
                found.append(Key(key) if key is not None else Place(step["at"]))
            elif filters and self._take(_FILTER):
                found.append(Filter(self._either()))
                self._require(")")
                self._take(_SPACE)
            else:
                return found

    def _either(self) -> Condition:
        parts = [self._both()]
        while self._word("||"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Several(all=False, parts=parts)

    def _both(self) -> Condition:
        parts = [self._one()]
        while self._word("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Several(all=True, parts=parts)

    def _one(self) -> Condition:
        if self._word("("):
            inner = self._either()
            self._require(")")
            return inner
        if self._word("exists"):
            self._require("(")
            self._require("@")
            found = Of(self.steps(filters=False), None)
            self._require(")")
            return found
        self._require("@")
        return Of(self.steps(filters=False), self._test())

    def _test(self) -> Test:
        self._take(_SPACE)
        operator, constant = self._take(_OPERATOR), self._take(_CONSTANT)
        if operator is None or constant is None or constant.lastgroup is None:
            raise _Unknown
        name, kind = re.sub(r"\s+", " ", operator[1]), constant.lastgroup
        if name == "starts with" and kind != "STRING":
            raise _Unknown
        return Test({"==": "=", "!=": "<>"}.get(name, name), kind, constant[kind])
