"""The time of a refresh: one value, named in the text in one way.

``current_timestamp()`` has another value in another refresh, so a query that asks for it has one
more input, which moves without any commit. The text is made to ask for that input by name,
``st_now()``; a refresh reads it as the time at which it began, stores that time in its commit, and
the next one knows from it which rows time has let in and which it has put out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.edits import Edit
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.spark import DIALECT

NOW = "st_now"
"""The function that stands for the time in a text, and the column that holds it in a tree."""

_WRITTEN = {
    "current_timestamp": f"{NOW}()",
    "now": f"{NOW}()",
    "current_date": f"CAST({NOW}() AS DATE)",
    "curdate": f"CAST({NOW}() AS DATE)",
    "localtimestamp": f"CAST({NOW}() AS TIMESTAMP_NTZ)",
    "unix_timestamp": f"UNIX_TIMESTAMP({NOW}())",
}
_BARE = {"current_timestamp", "current_date"}
"""Those that need no parentheses."""


def with_clock(text: Text) -> Text:
    """The text asking for the time by one name; the same text if it does not ask."""
    edits = [(start, end, _WRITTEN[word]) for word, start, end in _calls(text, _WRITTEN)]
    return text.with_edits(edits)


def at_time(text: Text, now: str) -> list[Edit]:
    """The time as a value, wherever a text that `with_clock` made asks for it.

    Args:
        text: By its tokens: the same letters in a literal, a comment or a name are something else.
        now: The time as ISO 8601 with its offset from UTC.
    """
    value = literal(now).sql(DIALECT)
    return [(start, end, value) for _, start, end in _calls(text, {NOW})]


def literal(now: str) -> exp.Expr:
    """
    >>> literal("2026-11-21T12:00:00+00:00").sql("spark")
    "CAST('2026-11-21T12:00:00+00:00' AS TIMESTAMP)"
    """
    return exp.cast(exp.Literal.string(now), "TIMESTAMP")


def is_now(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == NOW


def asks_for_time(text: Text) -> bool:
    return any(True for _ in _calls(text, {NOW}))


def _calls(text: Text, words: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Where one of the words is called: the word, its first character, and the one after it."""
    tokens = text.tokens
    for i, token in enumerate(tokens):
        # As it is written: the text of a token is the same for now, `now` and 'now'.
        word = text.sql[token.start : token.end + 1].lower()
        if word in words and not _is_name(tokens, i):
            called = _kinds(tokens, i + 1) == [TokenType.L_PAREN, TokenType.R_PAREN]
            if called or word in _BARE:
                yield word, token.start, (tokens[i + 2] if called else token).end + 1


def _is_name(tokens: list[Token], i: int) -> bool:
    """Whether the word is a column: after a dot, or after AS."""
    return i > 0 and (tokens[i - 1].text == "." or tokens[i - 1].text.upper() == "AS")


def _kinds(tokens: list[Token], i: int) -> list[TokenType]:
    return [each.token_type for each in tokens[i : i + 2]]
