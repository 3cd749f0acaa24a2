"""Words such as `current_date`: a function, unless a column has that name, which Spark then takes.

sqlglot reads the word as the function wherever it stands. Two more characters say which is meant,
so a query that leaves it open is refused in every mode: a full refresh replaces the word, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import TokenType

from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.errors import InvalidDefinition

_NEITHER = (TokenType.DOT, TokenType.ALIAS)
"""Before such words that are names."""


def require_one_meaning(text: Text, sources: Mapping[str, Mapping[str, str]]) -> None:
    """
    Raises:
        InvalidDefinition: A word may be a function, or a column of that name.
    """
    words = Spark.Parser.NO_PAREN_FUNCTIONS
    if not any(each.token_type in words for each in text.tokens):
        return
    names = {column.lower() for columns in sources.values() for column in columns}
    names |= {each.name.lower() for each in text.tree.find_all(exp.Identifier)}
    around = zip([None, *text.tokens], text.tokens, [*text.tokens[1:], None], strict=False)
    for before, token, after in around:
        if token.token_type not in words or token.text.lower() not in names:
            continue
        named = before is not None and before.token_type in _NEITHER
        called = after is not None and after.token_type is TokenType.L_PAREN
        if not (named or called):
            raise InvalidDefinition(
                f"{token.text} is the name of a column, and of a function",
                where=text.locate(token.start, token.end),
                why="Spark takes the column where it is in reach, and the function elsewhere",
                fix=f"write `{token.text}` in backticks for the column, or {token.text}() for the "
                "function",
            )
