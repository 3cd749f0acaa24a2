"""Ranges of the tokens of a text, by the numbers of their first token and of the one after them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET)


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
