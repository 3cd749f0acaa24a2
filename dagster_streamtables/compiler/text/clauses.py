"""The clauses of the outermost SELECT, by the tokens of the text."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType


def deeper(token: Token) -> int:
    """The change in parenthesis depth: 1, 0 or -1."""
    return (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)


def outermost(tokens: list[Token], kind: TokenType, *, last: bool = False) -> Token:
    """The first (or last) token of a kind outside all parentheses."""
    depth, found = 0, []
    comparing = _comparing(tokens)
    for position, token in enumerate(tokens):
        depth += deeper(token)
        if depth == 0 and token.token_type is kind and position not in comparing:
            found.append(token)
    return found[-1 if last else 0]


_AFTER_LIST = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "LIMIT"}
    | {"DISTRIBUTE", "OFFSET", "QUALIFY", "LATERAL", "UNION", "EXCEPT", "INTERSECT"})  # fmt: skip

_WITHIN_LIST = {("WITHIN", "GROUP"), ("*", "EXCEPT")}


def end_of_list(sql: str, tokens: list[Token]) -> int:
    """The position after the outermost SELECT list, which FROM may stand before."""
    select, clause = outermost(tokens, TokenType.SELECT), outermost(tokens, TokenType.FROM)
    if select.start < clause.start:
        return clause.start
    depth, comparing = 0, _comparing(tokens)
    for position, token in enumerate(tokens):
        depth += deeper(token)
        if depth == 0 and token.start > select.start and position not in comparing:
            word = sql[token.start : token.end + 1].upper().split()[0]
            if (tokens[position - 1].text.upper(), word) in _WITHIN_LIST:
                continue
            if word in _AFTER_LIST or (word == "WINDOW" and _defines_window(tokens, position)):
                return token.start
    return len(sql)


def _defines_window(tokens: list[Token], position: int) -> bool:
    """Whether the word begins a clause, WINDOW name AS (…); it may also name a column."""
    following = [each.token_type for each in tokens[position + 2 : position + 4]]
    return following == [TokenType.ALIAS, TokenType.L_PAREN]


def _comparing(tokens: list[Token]) -> set[int]:
    """Positions of `IS [NOT] DISTINCT FROM`, whose DISTINCT and FROM belong to no SELECT."""
    words = [token.text.upper() for token in tokens]
    found: set[int] = set()
    for position, word in enumerate(words):
        start = position + 2 if words[position + 1 : position + 2] == ["NOT"] else position + 1
        if word == "IS" and words[start : start + 2] == ["DISTINCT", "FROM"]:
            found |= {start, start + 1}
    return found
