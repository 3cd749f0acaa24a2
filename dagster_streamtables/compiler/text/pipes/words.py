"""The words of a text with pipes, by the numbers of its tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.pipes.names import PipeNames
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.token_ranges import TokenRanges
from dagster_streamtables.errors import Place


def is_pipe(token: Token) -> bool:
    return token.token_type is TokenType.PIPE_GT


class PipeWords(ABC):
    """Ranges of a text as they are written, but for the queries in them."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._tokens = text.tokens
        self._words = [text.sql[t.start : t.end + 1].upper().split()[0] for t in text.tokens]
        self._ranges = TokenRanges(self._tokens, self._words)
        self._names = PipeNames(text.sql, self._tokens, self._words, self._ranges)

    @abstractmethod
    def query(self, start: int, stop: int) -> str:
        """The query of a range of tokens without pipes."""

    def _alias(self, start: int, stop: int) -> str:
        """The name by which the only table of FROM qualifies columns."""
        last = self._tokens[stop - 1]
        named = last.token_type is not TokenType.R_PAREN
        return self._text.sql[last.start : last.end + 1] if named and stop > start else ""

    def _defined(self, at: int) -> str:
        """The definitions of WITH that end before a token."""
        begins = {token.start: i for i, token in enumerate(self._tokens[:at])}
        starts = [begins[each.start] for each in self._text.definitions if each.start in begins]
        found = list[str]()
        for start in starts:
            body = next(i for i in self._ranges.outer(start, at) if self._words[i] == "AS") + 1
            end = self._ranges.closing(body, len(self._tokens)) + 1
            found += [self._copied(start, end)] if end <= at else []
        recursive = "RECURSIVE " * ("RECURSIVE" in self._words[:at])
        return f"WITH {recursive}{', '.join(found)}\n" if found else ""

    def _shown(self, at: int) -> Place | str:
        token = self._tokens[min(at, len(self._tokens) - 1)]
        return self._text.shown(token.start, token.end)

    def _copied(self, start: int, stop: int) -> str:
        """The words of a range as written, with the queries inside it without pipes."""
        if start >= stop:
            return ""
        sql, at = "", self._tokens[start].start
        i = start
        while i < stop:
            end = (
                self._ranges.closing(i, stop)
                if self._tokens[i].token_type is TokenType.L_PAREN
                else i
            )
            if any(is_pipe(each) for each in self._tokens[i:end]):
                sql += f"{self._text.sql[at : self._tokens[i].end + 1]}{self.query(i + 1, end)}"
                at = self._tokens[end].start
            i = end + 1
        return sql + self._text.sql[at : self._tokens[stop - 1].end + 1]
