"""The time of a refresh: one value, with one name in the text.

``current_timestamp()`` changes from refresh to refresh, so it is an input that moves without a
commit. All its spellings are rewritten to ``st_now()``. A refresh reads that as the time at which
it began, and stores the time in its commit. From it, the next refresh knows which rows start or
stop matching as time passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.compiler.text.syntax import tokens_of
from dagster_streamtables.compiler.text.token_edits import Edit, keyword_of

NOW = "st_now"
"""The function that returns the time in the text, and the column that holds it in the tree."""

_WRITTEN = {
    "current_timestamp": f"{NOW}()",
    "now": f"{NOW}()",
    "current_date": f"CAST({NOW}() AS DATE)",
    "curdate": f"CAST({NOW}() AS DATE)",
    "localtimestamp": f"CAST({NOW}() AS TIMESTAMP_NTZ)",
    "unix_timestamp": f"UNIX_TIMESTAMP({NOW}())",
}
WORDS = frozenset(_WRITTEN)
"""Without one of them, `with_clock` changes nothing."""
_BARE = {"current_timestamp", "current_date"}
"""Functions that may be called without parentheses."""


def with_clock(text: Text) -> Text:
    """The text with each spelling of the current time rewritten to ``st_now()``."""
    edits = [(start, end, _WRITTEN[word]) for word, start, end in _calls(text, _WRITTEN)]
    return text.with_edits(edits)


def unrepeatable_word(sql: str) -> str | None:
    """The function in an expression whose result may differ from call to call; None without."""
    tokens = tokens_of(sql, DIALECT)
    never = spark_functions.UNREPEATABLE | spark_functions.CLOCK | set(_WRITTEN)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        word = token.text.lower()
        called = following is not None and following.token_type is TokenType.L_PAREN
        if word in _BARE or (called and word in never):
            return word
    return None


def at_time(text: Text, now: str) -> list[Edit]:
    """Edits that replace each ``st_now()`` with the time, in ISO 8601 with its UTC offset. The same
    letters in a literal, a comment or a name stay."""
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
    return any(True for _ in _calls(text, {NOW, *_WRITTEN}))


def _calls(text: Text, words: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Calls of any of the words: the word, the call's first character, the one after its last."""
    tokens = text.tokens
    for i, token in enumerate(tokens):
        # Take the word from the SQL: token.text is the same for now, `now` and 'now'.
        word = text.sql[token.start : token.end + 1].lower()
        # After a dot or AS, it names a column.
        if word in words and not (i and keyword_of(tokens[i - 1]) in (".", "AS")):
            kinds = [each.token_type for each in tokens[i + 1 : i + 3]]
            called = kinds == [TokenType.L_PAREN, TokenType.R_PAREN]
            if called or word in _BARE:
                yield word, token.start, (tokens[i + 2] if called else token).end + 1
