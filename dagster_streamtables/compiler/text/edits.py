"""Texts made of other texts, and where in those their words were.

What is wrong with a query is found in the text that is compiled: its views stand in their places,
and it may be translated. Its author knows neither, and is shown the words as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dagster_streamtables.errors import Place

if TYPE_CHECKING:
    from dagster_streamtables.compiler.text.query_text import Text

Edit = tuple[int, int, str]
"""The first character, the one after the last, and what stands there instead."""


def edited(sql: str, edits: Iterable[Edit]) -> str:
    """A text with words exchanged at their places, which do not overlap.

    Never by what the words are: a literal or a comment may hold the same.

    >>> edited("SELECT 't' FROM t", [(16, 17, "u")])
    "SELECT 't' FROM u"
    """
    for start, stop, new in sorted(edits, key=lambda each: each[:2], reverse=True):
        sql = sql[:start] + new + sql[stop:]
    return sql


class Origin(Protocol):
    """What a text was made of, which knows where its words are from."""

    def shown(self, start: int, end: int, made: Text) -> Place | str: ...


@dataclass(frozen=True)
class Edited:
    """A text with some words exchanged."""

    text: Text
    edits: tuple[Edit, ...]
    """In their order."""

    def shown(self, start: int, end: int, made: Text) -> Place | str:
        del made
        return self.text.shown(self._before(start)[0], self._before(end)[1])

    def _before(self, position: int) -> tuple[int, int]:
        """Where a character was; for one that came with an edit, the words that went for it."""
        moved = 0
        for start, stop, new in self.edits:
            if position < start + moved:
                break
            if position < start + moved + len(new):
                return start, max(start, stop - 1)
            moved += len(new) - (stop - start)
        return position - moved, position - moved


@dataclass(frozen=True)
class Retold:
    """A text in other words: printed from a tree, or translated from another dialect."""

    text: Text

    def shown(self, start: int, end: int, made: Text) -> Place | str:
        words = [t.text.lower() for t in made.tokens if start <= t.start and t.end <= end]
        there = self.text.tokens
        found = [
            i
            for i in range(len(there) - len(words) + 1)
            if words and [t.text.lower() for t in there[i : i + len(words)]] == words
        ]
        if len(found) != 1:
            return ""
        return self.text.shown(there[found[0]].start, there[found[0] + len(words) - 1].end)
