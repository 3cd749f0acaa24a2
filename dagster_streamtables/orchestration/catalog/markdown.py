"""Escapes names and foreign texts for Markdown, which Dagster renders.

Only a description is Markdown as its author wrote it.
"""

from __future__ import annotations

import re

from dagster_streamtables.errors import legible, one_line

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~#&$!])")


def code_block(text: str, language: str = "") -> str:
    """A code block. Its fence is longer than any in the text, so the text cannot end the block.

    >>> print(code_block("SELECT 1", "sql"))
    ```sql
    SELECT 1
    ```
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{legible(text).strip()}\n{fence}"


def words(text: str) -> str:
    """One line of text without markup.

    >>> print(words("a [link](x) in <b>"))
    a \\[link\\](x) in \\<b\\>
    """
    return _MARKUP.sub(r"\\\1", one_line(text))
