"""The time of a refresh: one value, named in the text in one way.

``current_timestamp()`` has another value in another refresh, so a query that asks for it has one
more input, which moves without any commit. The text is made to ask for that input by name,
``st_now()``; a refresh reads it as the time at which it began, stores that time in its commit, and
the next one knows from it which rows time has let in and which it has put out.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text import Text, read

NOW = "st_now"
"""The function that stands for the time in a text, and the column that holds it in a tree."""

_TYPE = "TIMESTAMP"
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
    sql, tokens = text.sql, text.tokens
    for i in reversed(range(len(tokens))):
        word = tokens[i].text.lower()
        if word in _WRITTEN and not _is_name(tokens, i):
            bare = _kinds(tokens, i + 1) == [TokenType.L_PAREN, TokenType.R_PAREN]
            if bare or word in _BARE:
                end = tokens[i + 2].end if bare else tokens[i].end
                sql = f"{sql[: tokens[i].start]}{_WRITTEN[word]}{sql[end + 1 :]}"
    return text if sql == text.sql else read(sql)


def at_time(sql: str, now: str) -> str:
    """SQL with the time as a value.

    Args:
        sql: A text that `with_clock` made.
        now: The time as ISO 8601 with its offset from UTC.
    """
    return sql.replace(f"{NOW}()", literal(now))


def literal(now: str) -> str:
    """
    >>> literal("2026-11-21T12:00:00+00:00")
    "TIMESTAMP '2026-11-21T12:00:00+00:00'"
    """
    return f"{_TYPE} '{now}'"


def is_now(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == NOW


def asks_for_time(text: Text) -> bool:
    return any(map(is_now, text.tree.walk()))


def _is_name(tokens: list[Token], i: int) -> bool:
    """Whether the word is a column: in backticks, after a dot, or after AS."""
    before = tokens[i - 1] if i else None
    quoted = tokens[i].token_type is TokenType.IDENTIFIER
    return quoted or (before is not None and (before.text == "." or before.text.upper() == "AS"))


def _kinds(tokens: list[Token], i: int) -> list[TokenType]:
    return [each.token_type for each in tokens[i : i + 2]]
