"""Tree node → its position in the text, which error messages underline.

A refusal raised where only the node is known; the caller adds the text.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.errors import InvalidDefinition, QueryPosition, UnsupportedQuery


def span(node: exp.Expr) -> tuple[int, int] | None:
    """The first and last character of the node's parts whose positions are known."""
    marked = [each.meta for each in node.walk() if "start" in each.meta]
    if not marked:
        return None
    return min(meta["start"] for meta in marked), max(meta["end"] for meta in marked)


def place(node: exp.Expr, text: Text) -> QueryPosition | str:
    """The node's line with the node underlined, or the nearest ancestor whose position is known."""
    if isinstance(node, exp.Literal):  # the tree has no positions of literals
        words = [token for token in text.tokens if token.text == node.name]
        if len(words) == 1:
            return text.locate(words[0].start, words[0].end)
    here: exp.Expr | None = node
    while here is not None:
        found = span(here)
        if found:
            return text.locate(*found)
        here = here.parent
    return text.locate()


def place_of_word(word: str, text: Text) -> QueryPosition | str:
    """The first line that contains the word, with the word underlined; empty if none does."""
    for token in text.tokens:
        if token.text.lower() == word.lower():
            return text.locate(token.start, token.end)
    return ""


class Refusal(Exception):
    def __init__(
        self, node: exp.Expr, what: str, *, why: str, fix: str, invalid: bool = False
    ) -> None:
        """
        Args:
            invalid: Whether Spark refuses it, too, so that no mode helps.
        """
        super().__init__(what)
        self.node, self.what, self.why, self.fix, self.invalid = node, what, why, fix, invalid

    def in_text(self, text: Text) -> UnsupportedQuery | InvalidDefinition:
        """The user's error, with the position in their text."""
        kind = InvalidDefinition if self.invalid else UnsupportedQuery
        return kind(self.what, where=place(self.node, text), why=self.why, fix=self.fix)
