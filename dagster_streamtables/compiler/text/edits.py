"""Rewritten texts that map their positions back to the original.

Errors are found in the compiled text, in which views are inlined and which may be translated from
another dialect. Its author knows neither, so a message shows the words as the author wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dagster_streamtables.errors import Place

if TYPE_CHECKING:
    from dagster_streamtables.compiler.text.query_text import Text

Edit = tuple[int, int, str]
"""Start, stop (exclusive), and the replacement."""


def edited(sql: str, edits: Iterable[Edit]) -> str:
    """The text with non-overlapping spans replaced.

    Spans, not words, say what to replace: a literal or a comment may contain the same words.

    >>> edited("SELECT 't' FROM t", [(16, 17, "u")])
    "SELECT 't' FROM u"
    """
    for start, stop, new in sorted(edits, key=lambda each: each[:2], reverse=True):
        sql = sql[:start] + new + sql[stop:]
    return sql


class Origin(Protocol):
    """The text that another one was made from; it maps positions back."""

    def shown(self, start: int, end: int, made: Text) -> Place | str: ...


@dataclass(frozen=True)
class Edited:
    """The origin of a text in which spans were replaced."""

    text: Text
    edits: tuple[Edit, ...]
    """In ascending order."""

    def shown(self, start: int, end: int, made: Text) -> Place | str:
        del made
        return self.text.shown(self._before(start)[0], self._before(end)[1])

    def _before(self, position: int) -> tuple[int, int]:
        """The first and last original position of a character; for a new one, the replaced span."""
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
    """The origin of a text printed from a tree, or translated from another dialect."""

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
