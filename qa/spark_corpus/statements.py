"""A file of Spark's SQL tests → its settings and statements, as the suite reads it.

    --SET k=v,…           settings of the whole file
    --CONFIG_DIM1 k=v,…   one of several groups of settings; the first group of each dimension is
                          taken, since the others change how Spark runs a query, not its rows
    --IMPORT file         the code of another file comes first
    --ONLY_IF word        which systems the file is for: always Spark here
    --QUERY-DELIMITER-START, --QUERY-DELIMITER-END
                          what is between is one statement, with its semicolons

Other lines that begin with ``--`` are comments. Statements end at a semicolon outside of quotes and
comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DIMENSION = re.compile(r"--CONFIG_DIM(\d+)\s+(.*)")
_START, _END = "--QUERY-DELIMITER-START", "--QUERY-DELIMITER-END"
_QUERY = re.compile(r"(?i)[\s(]*(SELECT|WITH|VALUES|TABLE|FROM|MAP|REDUCE)\b")
# The suite's identity function, in Scala and Python. COALESCE of one argument is Spark's own.
_IDENTITY = re.compile(r"(?i)(?<![\w.`'\"])udf(?=\s*\()")


@dataclass(frozen=True)
class Statement:
    number: int
    """Its place in the file, from 1."""
    text: str

    @property
    def is_query(self) -> bool:
        """Whether it begins like a query; the name of a table can follow TABLE and FROM."""
        return _QUERY.match(_without_comments(self.text)) is not None


@dataclass(frozen=True)
class TestFile:
    name: str
    """Its path below the inputs."""
    settings: dict[str, str]
    statements: tuple[Statement, ...]
    dimensions: int
    """How many groups of settings were left out."""


def read_file(inputs: Path, name: str) -> TestFile:
    lines = (inputs / name).read_text().split("\n")
    settings, dimensions = _settings(lines)
    code = [*_imported(inputs, lines), *_code(lines)]
    texts = [_IDENTITY.sub("coalesce", text) for text in _statements(code)]
    numbered = tuple(Statement(number, text) for number, text in enumerate(texts, start=1))
    return TestFile(name, settings, numbered, dimensions)


def _settings(lines: list[str]) -> tuple[dict[str, str], int]:
    """Those of the file and of the first group of each dimension; how many groups remain."""
    made: dict[str, str] = {}
    seen: set[str] = set()
    left = 0
    for line in lines:
        if line.startswith("--SET "):
            made |= _pairs(line.removeprefix("--SET "))
        elif found := _DIMENSION.match(line):
            if found[1] in seen:
                left += 1
            else:
                seen.add(found[1])
                made |= _pairs(found[2])
    return made, left


def _pairs(text: str) -> dict[str, str]:
    """
    >>> _pairs("spark.a=1,spark.b = x=y")
    {'spark.a': '1', 'spark.b': 'x=y'}
    """
    parts = (each.partition("=") for each in text.split(",") if "=" in each)
    return {name.strip(): value.strip() for name, _, value in parts}


def _imported(inputs: Path, lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith("--IMPORT "):
            name = line.removeprefix("--IMPORT ").strip()
            yield from _code((inputs / name).read_text().split("\n"))


def _code(lines: list[str]) -> Iterator[str]:
    kept = (line for line in lines if not line.strip().startswith("--") or _delimits(line))
    yield from kept


def _delimits(line: str) -> bool:
    return line.strip().startswith((_START, _END))


def _statements(code: list[str]) -> Iterator[str]:
    """The statements; those between delimiters are whole."""
    part: list[str] = []
    for line in code:
        if _delimits(line):
            text = "\n".join(part)
            whole = line.strip().startswith(_END)
            yield from [text.strip().removesuffix(";")] if whole else split(text)
            part = []
        else:
            part.append(line)
    yield from split("\n".join(part))


_TOKEN = re.compile(
    r"""
    (?P<raw>\b[rR]'[^']*'|\b[rR]"[^"]*")
  | (?P<quoted>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`)
  | (?P<line>--[^\n]*)
  | (?P<block>/\*)
  | (?P<end>\\?;)
    """,
    re.VERBOSE | re.DOTALL,
)


def split(text: str) -> list[str]:
    """The statements of a text.

    >>> split("SELECT ';', a -- ; b\\n; SELECT /* ; /* ; */ ; */ `;`;;")
    ["SELECT ';', a -- ; b", 'SELECT /* ; /* ; */ ; */ `;`']
    """
    found: list[str] = []
    begin = at = 0
    while token := _TOKEN.search(text, at):
        at = _end_of_block(text, token.end()) if token.lastgroup == "block" else token.end()
        if token["end"] == ";":
            found.append(text[begin : token.start()])
            begin = at
    found.append(text[begin:])
    return [each.strip() for each in found if _without_comments(each).strip()]


def _end_of_block(text: str, at: int) -> int:
    """Where a comment ends; comments can be nested."""
    depth = 1
    while depth and (found := re.compile(r"/\*|\*/").search(text, at)):
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return len(text) if depth else at


def _without_comments(text: str) -> str:
    kept: list[str] = []
    begin = at = 0
    while token := _TOKEN.search(text, at):
        at = token.end()
        if token.lastgroup in ("line", "block"):
            at = _end_of_block(text, at) if token.lastgroup == "block" else at
            kept.append(text[begin : token.start()])
            begin = at
    return " ".join([*kept, text[begin:]])
