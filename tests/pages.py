"""Reading docs/*.md: the fenced blocks of a page, and its tables.

The words after the backticks are the language of a block and its role, as in ``sql change``.
A comment right above says why a block is not run: ``<!-- not run: needs a cluster -->``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parent.parent
DOCS = PROJECT / "docs"

_FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^\n]+) -->\n)?"
    r"^```(?P<language>\w+)(?P<role>[^\n]*)\n(?P<text>.*?)^```$",
    flags=re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    language: str
    role: str
    text: str
    line: int
    """Of the page, the first of the text."""
    not_run: str = ""


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page's text, in order."""
    return [
        Block(
            found["language"],
            found["role"].strip(),
            found["text"],
            page.count("\n", 0, found.start("text")) + 1,
            found["why"] or "",
        )
        for found in _FENCE.finditer(page)
    ]


def filled(page: str, texts: dict[int, str]) -> str:
    """The page with other texts in some of its blocks, by their place among all blocks."""
    number = iter(range(len(page)))

    def write(found: re.Match[str]) -> str:
        text = texts.get(next(number))
        if text is None:
            return found[0]
        start = found.start("text") - found.start()
        return f"{found[0][:start]}{text.rstrip()}\n```"

    return _FENCE.sub(write, page)


def rows(page: str, first: str) -> list[list[str]]:
    """The rows of all tables of a page whose first column is headed so, cell by cell."""
    found: list[list[str]] = []
    tables = re.findall(r"(?:^\|[^\n]*\n)+", page, flags=re.M)
    for table in tables:
        head, _, *body = (
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
            for line in table.splitlines()
        )
        found += body if head[0] == first else []
    return found


def code(cell: str) -> list[str]:
    """What stands in backticks."""
    return [one or two for two, one in re.findall(r"``\s?(.+?)\s?``|`([^`]+)`", cell)]
