"""Rewritten texts that map their positions back to the original.

Errors are found in the compiled text, in which views are inlined and which may be translated from
another dialect. Its author knows neither, so a message shows the words as the author wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from dagster_streamtables.errors import QueryPosition

Edit = tuple[int, int, str]
"""Start, stop (exclusive), and the replacement."""


def apply_edits(sql: str, edits: Iterable[Edit]) -> str:
    """The text with non-overlapping spans replaced.

    Spans, not words, say what to replace: a literal or a comment may contain the same words.

    >>> apply_edits("SELECT 't' FROM t", [(16, 17, "u")])
    "SELECT 't' FROM u"
    """
    for start, stop, new in sorted(edits, key=lambda each: each[:2], reverse=True):
        sql = sql[:start] + new + sql[stop:]
    return sql


class HasPosition(Protocol):
    """A text whose words have positions."""

    def locate(self, start: int, end: int) -> QueryPosition | str:
        """The position of a span, for the `where` of an error."""
        ...

    def words(self, start: int, end: int) -> list[str]:
        """The words of a span, in lower case."""
        ...

    def span_of(self, words: list[str]) -> tuple[int, int] | None:
        """The span that has the words; None if none has, or several."""
        ...


class Origin(Protocol):
    """The text that another one was made from; it maps positions back."""

    def locate(self, start: int, end: int, made: HasPosition) -> QueryPosition | str: ...


@dataclass(frozen=True)
class EditOrigin:
    """The origin of a text in which spans were replaced."""

    text: HasPosition
    edits: tuple[Edit, ...]
    """In ascending order."""

    def locate(self, start: int, end: int, made: HasPosition) -> QueryPosition | str:
        del made
        return self.text.locate(self._before(start)[0], self._before(end)[1])

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
class RewriteOrigin:
    """The origin of a text printed from a tree, or translated from another dialect."""

    text: HasPosition

    def locate(self, start: int, end: int, made: HasPosition) -> QueryPosition | str:
        span = self.text.span_of(made.words(start, end))
        return "" if span is None else self.text.locate(*span)
