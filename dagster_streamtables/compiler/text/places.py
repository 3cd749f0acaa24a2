"""Positions in the text of a query: of a node of its tree, of a window, of an ORDER BY.

Error messages underline the position of a node, and further orders are inserted at the end of an
ORDER BY or of a window. A `Refusal` is raised where only the node is known; its caller adds the
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.token_edits import (
    begins_windows,
    clause_at,
    deeper,
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
    """The position where an ORDER BY can be inserted into an unordered window.

    Args:
        window: The function with its OVER, of a tree whose nodes have the positions of the text.
        text: The query.

    Returns:
        None if the function has no known position, or its window has a name that two have.
    """
    known = span(window.this)
    if known is None:
        return None
    tokens = text.tokens
    over = next(
        (i for i, t in enumerate(tokens) if t.start > known[1] and keyword_of(t) == "OVER"),
        None,
    )
    if over is None:
        return None
    following = tokens[over + 1]
    if following.token_type is TokenType.L_PAREN:
        return _end(tokens, over + 1)
    named = [i for i in range(len(tokens)) if _defines(tokens, i, following.text)]
    return _end(tokens, named[0] + 2) if len(named) == 1 else None


def word_of_order(order: exp.Expr, text: Text) -> int | None:
    """The number of the token that an ORDER BY begins with.

    Its first part with a position may stand in parentheses, as in ``ORDER BY (a), CAST(b AS INT)``,
    or in an ORDER BY inside of this one.

    Returns:
        None if no part of it has a position.
    """
    marked = [each for each in order.walk() if "start" in each.meta]
    if not marked:
        return None
    first = min(marked, key=lambda each: each.meta["start"])
    inside = sum(1 for each in _ancestors(first, order) if isinstance(each, exp.Order))
    before = [i for i, each in enumerate(text.tokens) if each.start < first.meta["start"]]
    depth = lowest = 0
    for i in reversed(before):
        depth -= deeper(text.tokens[i])
        lowest = min(lowest, depth)
        if text.tokens[i].token_type is TokenType.ORDER_BY and depth == lowest:
            inside -= 1
            if inside == 0:
                return i
    return None


def last_order_before(position: int, text: Text) -> int:
    """The number of the token that the ORDER BY of a LIMIT begins with.

    Args:
        position: Of the word LIMIT or OFFSET.
        text: The query; it has an ORDER BY there.
    """
    depth = 0
    before = [i for i, each in enumerate(text.tokens) if each.start < position]
    for i in reversed(before):
        if depth == 0 and text.tokens[i].token_type is TokenType.ORDER_BY:
            return i
        depth -= deeper(text.tokens[i])
    raise AssertionError("an ORDER BY is none of the text's words")


def end_of_order(begin: int, text: Text) -> int:
    """The position after the last word of the ORDER BY that begins with a token."""
    tokens = text.tokens
    depth, end = 0, tokens[begin].end + 1
    for i, token in enumerate(tokens[begin + 1 :], start=begin + 1):
        last = token.token_type is TokenType.R_PAREN or clause_at(tokens, i) in _AFTER_ORDER
        if depth == 0 and (last or begins_windows(tokens, i)):
            return end
        depth += deeper(token)
        end = token.end + 1
    return end


_AFTER_ORDER = {*_FRAMES, "GROUPS", "LIMIT", "OFFSET", "FETCH", ";", "|>"}


def _ancestors(node: exp.Expr, last: exp.Expr) -> Iterator[exp.Expr]:
    while node is not last and node.parent is not None:
        node = node.parent
        yield node


def _defines(tokens: Sequence[Token], i: int, name: str) -> bool:
    """Whether a token begins ``name AS (…)`` in a WINDOW clause, as far as its words tell."""
    if i + 2 >= len(tokens) or tokens[i].text.lower() != name.lower():
        return False
    defined = tokens[i + 1].token_type is TokenType.ALIAS
    return defined and tokens[i + 2].token_type is TokenType.L_PAREN


def _end(tokens: Sequence[Token], opening: int) -> int:
    """The position before the frame of the window that begins at a parenthesis, or of its end."""
    depth = 0
    for i, token in enumerate(tokens[opening:], start=opening):
        if depth == 1 and clause_at(tokens, i) in _FRAMES:
            return token.start
        depth += deeper(token)
        if depth == 0:
            return token.start
    return tokens[-1].end + 1
