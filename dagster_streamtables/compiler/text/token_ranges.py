"""Ranges of the tokens of a text, by the numbers of their first token and of the one after them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET)
JOINS = {"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "LATERAL"}
"""The words with which a join may begin."""
_CONDITIONS = {"ON", "USING"}
_QUERIES = {"SELECT", "VALUES", "WITH", "FROM", "TABLE"}


class TokenRanges:
    def __init__(self, tokens: Sequence[Token], words: Sequence[str]) -> None:
        """
        Args:
            tokens: Those of the text.
            words: The first word of each, in upper case.
        """
        self._tokens, self._words = tokens, words

    def outer(self, start: int, stop: int) -> Sequence[int]:
        """The tokens of a range that are in no parentheses of it."""
        depth, found = 0, list[int]()
        for i in range(start, stop):
            kind = self._tokens[i].token_type
            depth -= kind in _CLOSE
            found += [i] if depth == 0 and kind not in _CLOSE else []
            depth += kind in _OPEN
        return found

    def closing(self, opening: int, stop: int) -> int:
        """The token that closes the parenthesis at another."""
        depth = 0
        for i in range(opening, stop):
            depth += (self._tokens[i].token_type in _OPEN) - (self._tokens[i].token_type in _CLOSE)
            if depth == 0:
                return i
        return stop - 1

    def items(self, start: int, stop: int) -> list[tuple[int, int]]:
        """What the commas of a range separate."""
        commas = [i for i in self.outer(start, stop) if self._words[i] == ","]
        return list(zip([start, *(i + 1 for i in commas)], [*commas, stop], strict=True))

    def joined(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The tables of a FROM, without conditions; of a join in parentheses those inside."""
        found, begin, asks = list[tuple[int, int]](), start, False
        for i in [*self.outer(start, stop), stop]:
            ends = i == stop or (self._words[i] in {*JOINS, ","} and not self._is_call(i, stop))
            if ends or self._words[i] in _CONDITIONS:
                found += self._unpacked(begin, i) if begin < i and not asks else []
                begin, asks = i + 1, not ends
        return found

    def _is_call(self, i: int, stop: int) -> bool:
        """Whether it is the function, not the join: ``ON LEFT(a, 1) = b``."""
        return self._words[i] in ("LEFT", "RIGHT") and self._words[i + 1 : i + 2] == ["("]

    def _unpacked(self, start: int, stop: int) -> list[tuple[int, int]]:
        inner = self._words[start] == "(" and self.closing(start, stop) == stop - 1
        joins = inner and self._words[start + 1] not in _QUERIES
        return self.joined(start + 1, stop - 1) if joins else [(start, stop)]

    def after_with(self, start: int, stop: int) -> int:
        """The first token after the definitions of WITH."""
        if start >= stop or self._words[start] != "WITH":
            return start
        defined = (i for i in self.outer(start, stop) if self._words[i] == "AS")
        at = start
        for each in defined:
            at = self.closing(each + 1, stop) + 1
            if at >= stop or self._words[at] != ",":
                break
        return at
