"""Positions of nodes in the text of a query, which error messages underline.

A `Refusal` is raised where only the node is known; its caller adds the text.
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
    """Why a node of the tree cannot be maintained."""

    error: type[InvalidDefinition] = UnsupportedQuery

    def __init__(self, node: exp.Expr, what: str, *, why: str, fix: str) -> None:
        super().__init__(what)
        self.node, self.what, self.why, self.fix = node, what, why, fix

    def in_text(self, text: Text) -> InvalidDefinition:
        """The user's error, with the position in their text."""
        return self.error(self.what, where=place(self.node, text), why=self.why, fix=self.fix)


class Mistake(Refusal):
    """Why Spark refuses a node too, so that no mode helps."""

    error = InvalidDefinition
