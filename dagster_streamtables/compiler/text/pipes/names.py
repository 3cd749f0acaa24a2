"""Names along a pipe whose tables are several.

|> EXTEND e AS x                  x is e in what follows: the SELECT stays open, as do the names
                                  of its tables
|> SELECT t.a                     t.a is the column `a` of the step in what follows
|> AGGREGATE … GROUP BY t.a       likewise
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.token_ranges import TokenRanges

STEP = "__st_pipe"
"""The name of the rows of a step that has chosen columns of several tables."""
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_MANY = {"OVER", "SELECT", *(name.upper() for name in spark_functions.TABLE_VALUED)}
"""What is not a function of one row, or is better written once."""

_BEFORE_STAR = (",", "(", "DISTINCT")
_OPEN, _CLOSE = ("(", "["), (")", "]")

Names = Mapping[tuple[str, ...], str]
"""A name in its parts, in lower case → what it stands for."""


class Stars(NamedTuple):
    """What all columns are that the user sees."""

    hidden: Sequence[str] = ()
    """Columns that are not among them."""
    more: Sequence[str] = ()
    """What is added to the columns of the tables."""


def folded(name: str) -> str:
    return name.strip("`").lower()


@dataclass(frozen=True)
class PipeNames:
    """Finds names in ranges of the tokens of a text."""

    sql: str
    tokens: Sequence[Token]
    words: Sequence[str]
    ranges: TokenRanges

    def outputs(self, start: int, stop: int, names: Names, stars: Stars) -> str | None:
        """The words of a list of outputs, each of which keeps its name; see `retold`.

        Returns:
            None also if Spark names an output by the words that would be replaced: `SUM(x)`.
        """
        items = [each for each in self.ranges.items(start, stop) if each[0] < each[1]]
        alone = {first for first, end in items if end - first == 1}
        for first, end in items:
            unnamed = first not in alone and self.words[end - 2] != "AS"
            if unnamed and any((self._name(i),) in names for i in range(first, end)):
                return None
        return self.retold(start, stop, names, stars, alone)

    def retold(
        self, start: int, stop: int, names: Names, stars: Stars, alone: Collection[int] = ()
    ) -> str | None:
        """The words of a range with what its names stand for.

        Args:
            start: Its first token.
            stop: The token after it.
            names: What is replaced.
            stars: What ``*`` for all columns stands for.
            alone: Tokens that are outputs, whose names what replaces them gets.

        Returns:
            None if a name may mean another column: one of a query inside of the range, a parameter
            of a lambda, or a struct that is called like a table.
        """
        edits = list[tuple[int, int, str]]()
        i = start
        while i < stop:
            if self.words[i + 1 : i + 2] == ["."] and (self._name(i),) in names:
                return None
            length, told = self._at(i, start, stop, names)
            told += f" AS {self.written(i)}" if length and i in alone else ""
            edits += [(i, i + length - 1, told)] if length else []
            i += length or 1
        if edits and self._is_doubtful(start, stop):
            return None
        found = self._stars(start, stop, stars)
        return None if found is None else self._edited(start, stop, sorted([*edits, *found]))

    def _stars(self, start: int, stop: int, stars: Stars) -> list[tuple[int, int, str]] | None:
        """The edits of what stands for all columns; None if it must be closed before."""
        found = list[tuple[int, int, str]]()
        outer = set(self.ranges.outer(start, stop))
        for i in range(start, stop):
            if not self._is_star(i, start) or not (stars.hidden or stars.more):
                continue
            excepts = self.words[i + 1 : i + 3] == ["EXCEPT", "("]
            if i not in outer and (self._counts(i) or self._is_of_query(i, start)):
                continue
            if stars.more and (excepts or i not in outer):
                return None
            hidden = ", ".join(stars.hidden)
            if excepts:
                found += [(i + 2, i + 2, f"({hidden}, ")]
            else:
                told = f"* EXCEPT ({hidden})" if hidden else "*"
                found += [(i, i, ", ".join([told, *stars.more]))]
        return found

    def _counts(self, i: int) -> bool:
        return self.words[i - 2 : i] == ["COUNT", "("] and self.words[i + 1 : i + 2] == [")"]

    def _is_of_query(self, i: int, start: int) -> bool:
        """Whether a star stands in a query inside of the range."""
        depth = 0
        for at in range(i - 1, start - 1, -1):
            depth += (self.words[at] in _CLOSE) - (self.words[at] in _OPEN)
            if depth < 0 and self.words[at + 1] in ("SELECT", "FROM", "WITH"):
                return True
            depth = max(depth, 0)
        return False

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
        return self.words[i] == "*" and (i == start or self.words[i - 1] in _BEFORE_STAR)

    def _is_doubtful(self, start: int, stop: int) -> bool:
        told = {*self.words[start:stop], *(each.text for each in self.tokens[start:stop])}
        return bool(told & {"SELECT", "->", "|>", "FROM", "TABLE"})

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

    def tables(self, start: int, stop: int, last: int) -> tuple[tuple[str, int], ...]:
        """The tables of a FROM or a join.

        Args:
            start: The first token after FROM, or of the join.
            stop: The token after it.
            last: The token after the pipe.

        Returns:
            Each with the number of the last token that names a column by it later; -1 for none.
        """
        said = {self._name(i): i for i in range(stop, last - 1) if self.words[i + 1] == "."}
        names = (self._table(*each) for each in self.ranges.joined(start, stop))
        return tuple((name, said.get(folded(name), -1)) for name in names if name)

    def _table(self, start: int, stop: int) -> str:
        """The name of a table: ``t`` of ``orders AS t``, and of ``VALUES (1, 2) AS t(a, b)``."""
        at = stop - 1
        if self.words[start] == "VIEW":  # LATERAL VIEW explode(list) t AS a
            at = self.ranges.closing(self.words.index("(", start), stop) + 1
        elif self.words[at] == ")":
            at = next(i for i in range(start, stop) if self.ranges.closing(i, stop) == at) - 1
            at = at if self.words[at - 1] in ("AS", ")") else start
        named = start < at < stop or at == start == stop - 1
        return self.written(at) if named and self.tokens[at].token_type in _NAMES else ""

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
