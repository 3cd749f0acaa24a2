"""Names along a pipe whose tables are several.

|> EXTEND e AS x                  x is e in what follows: the SELECT stays open, as do the names
                                  of its tables
|> SELECT t.a                     t.a is the column `a` of the step in what follows
|> AGGREGATE … GROUP BY t.a       likewise
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.token_ranges import TokenRanges

STEP = "__st_pipe"
"""The name of the rows of a step that has chosen columns of several tables."""
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_MANY = {"OVER", "SELECT", *(name.upper() for name in spark_functions.TABLE_VALUED)}
"""What is not a function of one row, or is better written once."""

Names = Mapping[tuple[str, ...], str]
"""A name in its parts, in lower case → what it stands for."""


def folded(name: str) -> str:
    return name.strip("`").lower()


@dataclass(frozen=True)
class PipeNames:
    """Finds names in ranges of the tokens of a text."""

    sql: str
    tokens: Sequence[Token]
    words: Sequence[str]
    ranges: TokenRanges

    def retold(self, start: int, stop: int, names: Names, stars: str) -> str | None:
        """The words of a range with what its names stand for.

        Args:
            start: Its first token.
            stop: The token after it.
            names: What is replaced.
            stars: What ``*`` for all columns stands for.

        Returns:
            None if a name may mean another column: one of a query inside of the range, a parameter
            of a lambda, or a struct that is called like a table.
        """
        edits = list[tuple[int, int, str]]()
        outer = set(self.ranges.outer(start, stop))
        i = start
        while i < stop:
            if self.words[i + 1 : i + 2] == ["."] and (self._name(i),) in names:
                return None
            length, told = self._at(i, start, stop, names)
            if i in outer and self._is_star(i, start) and stars != "*":
                length, told = 1, stars
            edits += [(i, i + length - 1, told)] if length else []
            i += length or 1
        if edits and self._is_doubtful(start, stop):
            return None
        return self._edited(start, stop, edits)

    def _at(self, i: int, start: int, stop: int, names: Names) -> tuple[int, str]:
        """How many tokens the name at a token has that is replaced, and by what; 0 for none."""
        before = self.words[i - 1] if i > start else ""
        if self.tokens[i].token_type not in _NAMES or before in (".", "AS"):
            return 0, ""
        after = self.words[i + 1 : i + 3] if i + 1 < stop else [""]
        if after[:1] == ["."] and i + 2 < stop:
            told = names.get((self._name(i), self._name(i + 2)), "")
            return (3, told) if told else (0, "")
        told = "" if after[:1] == ["("] else names.get((self._name(i),), "")
        return (1, told) if told else (0, "")

    def _is_star(self, i: int, start: int) -> bool:
        return self.words[i] == "*" and (i == start or self.words[i - 1] in (",", "DISTINCT"))

    def _is_doubtful(self, start: int, stop: int) -> bool:
        told = {*self.words[start:stop], *(each.text for each in self.tokens[start:stop])}
        excepted = any(
            self.words[i] == "*" and self.words[i + 1 : i + 2] == ["EXCEPT"]
            for i in range(start, stop)
        )
        return excepted or bool(told & {"SELECT", "->", "|>", "FROM", "TABLE"})

    def _edited(self, start: int, stop: int, edits: list[tuple[int, int, str]]) -> str:
        sql, at = "", self.tokens[start].start if start < stop else 0
        for first, last, told in edits:
            sql += f"{self.sql[at : self.tokens[first].start]}{told}"
            at = self.tokens[last].end + 1
        return sql + self.sql[at : self.tokens[stop - 1].end + 1] if start < stop else ""

    def _name(self, i: int) -> str:
        return folded(self.written(i))

    def written(self, i: int) -> str:
        return self.sql[self.tokens[i].start : self.tokens[i].end + 1]

    def is_loose(self, start: int, stop: int) -> bool:
        """Whether a column stands there without its table."""
        return any(
            self.tokens[i].token_type in _NAMES
            and (i == start or self.words[i - 1] != ".")
            and self.words[i + 1 : i + 2] not in (["."], ["("])
            for i in range(start, stop)
        )

    def chosen(self, items: Sequence[tuple[int, int]]) -> tuple[tuple[str, str], ...]:
        """The columns among items that are named with their table, and whose name is unique."""
        named = [self.written(stop - 1) for start, stop in items if start < stop]
        unique = [folded(name) for name in named]
        return tuple(
            (self.written(start), self.written(start + 2))
            for start, stop in items
            if stop - start == 3 and self.words[start + 1] == "."
            and unique.count(self._name(start + 2)) == 1
        )  # fmt: skip

    def value(self, start: int, stop: int) -> tuple[str, int] | None:
        """The name of an item ``e AS x`` of one row, and the token after ``e``."""
        named = stop - start > 2 and self.words[stop - 2] == "AS"
        named = named and self.tokens[stop - 1].token_type in _NAMES
        if not named or _MANY & {word.lstrip("`") for word in self.words[start:stop]}:
            return None
        return self.written(stop - 1), stop - 2
