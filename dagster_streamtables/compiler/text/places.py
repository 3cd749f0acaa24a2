"""Positions in the text of a query: of a node of its tree, of a window, of an ORDER BY.

Error messages underline the position of a node, and further orders are inserted at the end of an
ORDER BY or of a window. A `Refusal` is raised where only the node is known; its caller adds the
text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.token_edits import (
    before,
    begins_windows,
    clause_at,
    depths,
    keyword_of,
)
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


_FRAMES = {"ROWS", "RANGE"}


def end_of_partition(window: exp.Expr, text: Text) -> int | None:
    """The position where an ORDER BY can be inserted into the unordered window of a call; None if
    the call has no known position, or its window has a name that two have."""
    known = span(window.this)
    if known is None:
        return None
    tokens = text.tokens
    after = (i for i, t in enumerate(tokens) if t.start > known[1] and keyword_of(t) == "OVER")
    over = next(after, None)
    if over is None:
        return None
    following = tokens[over + 1]
    if following.token_type is TokenType.L_PAREN:
        return _end(tokens, over + 1)
    named = [i for i in range(len(tokens) - 2) if _defines(tokens[i : i + 3], following.text)]
    return _end(tokens, named[0] + 2) if len(named) == 1 else None


def word_of_order(order: exp.Expr, text: Text) -> int | None:
    """The number of the token that an ORDER BY begins with; None if no part of it has a position.

    Its first part with a position may stand in parentheses, as in ``ORDER BY (a), CAST(b AS INT)``,
    or in an ORDER BY inside it.
    """
    marked = [each for each in order.walk() if "start" in each.meta]
    if not marked:
        return None
    first = min(marked, key=lambda each: each.meta["start"])
    at = sum(each.start < first.meta["start"] for each in text.tokens)
    inside, around = 0, first.find_ancestor(exp.Order)
    while around is not order and around is not None:
        inside, around = inside + 1, around.find_ancestor(exp.Order)
    return next(islice(before(text.tokens, at, TokenType.ORDER_BY), inside, None), None)


def order_of_limit(limit: int, text: Text) -> int:
    """The number of the token that the ORDER BY before a token LIMIT or OFFSET begins with."""
    return next(before(text.tokens, limit, TokenType.ORDER_BY))


def end_of_order(begin: int, text: Text) -> int:
    """The position after the last word of the ORDER BY that begins with a token."""
    tokens, levels = text.tokens, depths(text.tokens)
    for i in range(begin + 1, len(tokens)):
        own = levels[i] == levels[begin]
        after = own and (clause_at(tokens, i) in _AFTER_ORDER or begins_windows(tokens, i))
        if after or levels[i] < levels[begin]:
            return tokens[i - 1].end + 1
    return tokens[-1].end + 1


_AFTER_ORDER = {*_FRAMES, "GROUPS", "LIMIT", "OFFSET", "FETCH", ";", "|>"}


def _defines(tokens: Sequence[Token], name: str) -> bool:
    """Whether three tokens begin ``name AS (…)`` in a WINDOW clause, as far as words show."""
    kinds = [each.token_type for each in tokens[1:]]
    called = tokens[0].text.lower() == name.lower()
    return called and kinds == [TokenType.ALIAS, TokenType.L_PAREN]


def _end(tokens: Sequence[Token], opening: int) -> int:
    """The position before the frame of the window that begins at a parenthesis, or of its end."""
    levels = depths(tokens)
    for i in range(opening + 1, len(tokens)):
        depth = levels[i] - levels[opening]
        if depth == 0 or (depth == 1 and clause_at(tokens, i) in _FRAMES):
            return tokens[i].start
    return tokens[-1].end + 1
