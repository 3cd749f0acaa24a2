"""What Dagster shows as markdown, in which no name and no text of somebody else is markup.

A description is its author's own markdown; everything else is quoted here.
"""

from __future__ import annotations

import re

from dagster_streamtables.errors import legible, one_line

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~#&$!])")


def fenced(text: str, language: str = "") -> str:
    """A block of code. Its fence is longer than any in the text, which could end the block.

    >>> print(fenced("SELECT 1", "sql"))
    ```sql
    SELECT 1
    ```
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{legible(text).strip()}\n{fence}"


def words(text: str) -> str:
    """A line of words.

    >>> print(words("a [link](x) in <b>"))
    a \\[link\\](x) in \\<b\\>
    """
    return _MARKUP.sub(r"\\\1", one_line(text))
