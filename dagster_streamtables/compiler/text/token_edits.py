"""The clauses of a SELECT by their tokens, and edits of a query's text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

Edit = tuple[int, int, str]
"""Start, stop (exclusive), and the replacement."""


def apply_edits(sql: str, edits: Iterable[Edit]) -> str:
    """The text with non-overlapping spans replaced.

    Spans, not words, say what to replace: a literal or a comment may contain the same words.

    >>> apply_edits("SELECT 't' FROM t", [(16, 17, "u")])
    "SELECT 't' FROM u"
    """
    for start, stop, new in sorted(edits, key=lambda each: each[:2], reverse=True):
        sql = sql[:start] + new + sql[stop:]
    return sql


def keyword_of(token: Token) -> str:
    """The first word of a keyword in capitals: GROUP for GROUP BY. Empty for a quoted name and a
    literal: the text of a token is the same for LIMIT, `limit` and 'limit'."""
    quoted = token.token_type is TokenType.IDENTIFIER or "STRING" in token.token_type.name
    return "" if quoted else token.text.upper().split()[0]


def clause_at(tokens: Sequence[Token], i: int) -> str:
    """The keyword at a position where a clause may begin; empty for one that names a column.

    Spark reserves few words: ``ORDER BY rows, limit + offset LIMIT 3`` sorts by three columns.
    """
    before = tokens[i - 1] if i else None
    if before is None or before.token_type is TokenType.PIPE_GT:
        return keyword_of(tokens[i])
    if before.token_type is TokenType.STAR:
        is_name = i > 1 and tokens[i - 2].token_type not in _BEFORE_STAR
    elif set(before.text) == {">"}:
        is_name = not _ends_type(tokens, i - 1)
    else:
        word = keyword_of(before)
        is_name = word in _BEFORE_NAME or bool(_OPERATOR.fullmatch(word))
    return "" if is_name else keyword_of(tokens[i])


def _ends_type(tokens: Sequence[Token], i: int) -> bool:
    """Whether > ends a type: ``ORDER BY tags::ARRAY<INT> LIMIT 3``."""
    depth = 0
    for k in range(i, 0, -1):
        depth += tokens[k].text.count(">") - tokens[k].text.count("<")
        if depth == 0:
            return keyword_of(tokens[k - 1]) in ("ARRAY", "MAP", "STRUCT")
    return False


_OPERATOR = re.compile(r"[^\w)\]]+")
_BEFORE_NAME = {
    "AND", "AS", "BETWEEN", "BY", "CASE", "CLUSTER", "DISTINCT", "DISTRIBUTE", "DIV", "ELSE",
    "FROM", "GROUP", "HAVING", "ILIKE", "LIKE", "NOT", "ON", "OR", "ORDER", "PARTITION", "QUALIFY",
    "RLIKE", "SELECT", "SORT", "THEN", "WHEN", "WHERE",
}  # fmt: skip


_DEEPER = {
    TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1,
}  # fmt: skip


def depths(tokens: Sequence[Token]) -> list[int]:
    """The number of parentheses and brackets around each token, not counting its own pair."""
    found, depth = list[int](), 0
    for token in tokens:
        change = _DEEPER.get(token.token_type, 0)
        found.append(depth + min(change, 0))
        depth += change
    return found


def closing(tokens: Sequence[Token], at: int) -> int:
    """The position of the parenthesis that closes one, or of the last token if none does; any
    other token is its own end."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += _DEEPER.get(tokens[i].token_type, 0)
        if depth == 0:
            return i
    return len(tokens) - 1


def opening_around(tokens: Sequence[Token], at: int) -> int | None:
    """The position of the innermost parenthesis that is open at a token."""
    levels = depths(tokens)
    return next((i for i in range(at - 1, -1, -1) if levels[i] < levels[at]), None)


def outermost(tokens: Sequence[Token], kind: TokenType) -> list[int]:
    """The tokens of a kind outside all parentheses, without those of IS [NOT] DISTINCT FROM."""
    comparing = _comparing(tokens) if kind in (TokenType.DISTINCT, TokenType.FROM) else ()
    levels = enumerate(depths(tokens))
    found = (i for i, depth in levels if not depth and tokens[i].token_type is kind)
    return [i for i in found if i not in comparing]


_AFTER_LIST = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "LIMIT"}
    | {"DISTRIBUTE", "OFFSET", "QUALIFY", "LATERAL", "UNION", "EXCEPT", "INTERSECT"})  # fmt: skip

_WITHIN_LIST = {("WITHIN", "GROUP"), ("*", "EXCEPT")}


def end_of_list(sql: str, tokens: Sequence[Token]) -> int:
    """The position after the outermost SELECT list, which FROM may stand before; of a pipe, after
    the list of its last step."""
    if pipes := outermost(tokens, TokenType.PIPE_GT):
        begin = pipes[-1] + 1
    else:
        begin, from_ = (outermost(tokens, k)[0] for k in (TokenType.SELECT, TokenType.FROM))
        if begin < from_:
            return tokens[from_].start
    levels, comparing = depths(tokens), _comparing(tokens)
    for i in range(begin + 1, len(tokens)):
        if levels[i] or i in comparing:
            continue
        word = clause_at(tokens, i)
        within = (keyword_of(tokens[i - 1]), word) in _WITHIN_LIST
        if not within and (word in _AFTER_LIST or begins_windows(tokens, i)):
            return tokens[i].start
    return len(sql)


def begins_windows(tokens: Sequence[Token], position: int) -> bool:
    """Whether the word begins a clause, WINDOW name AS (…); it may also name a column."""
    following = [each.token_type for each in tokens[position + 2 : position + 4]]
    defines = following == [TokenType.ALIAS, TokenType.L_PAREN]
    return defines and keyword_of(tokens[position]) == "WINDOW"


def _comparing(tokens: Sequence[Token]) -> set[int]:
    """Positions of `IS [NOT] DISTINCT FROM`, whose DISTINCT and FROM belong to no SELECT."""
    words = list(map(keyword_of, tokens))
    found: set[int] = set()
    for position, word in enumerate(words):
        start = position + 2 if words[position + 1 : position + 2] == ["NOT"] else position + 1
        if word == "IS" and words[start : start + 2] == ["DISTINCT", "FROM"]:
            found |= {start, start + 1}
    return found


@dataclass(frozen=True)
class SelectList:
    """What stands between the words SELECT and FROM, which are tokens of a text."""

    tokens: Sequence[Token]
    select: int
    from_: int

    @classmethod
    def around(cls, tokens: Sequence[Token], at: int) -> SelectList | None:
        """The list of the SELECT that a token belongs to; None if its FROM does not follow."""
        levels, comparing = depths(tokens), _comparing(tokens)
        words = (i for i in range(at - 1, -1, -1) if tokens[i].token_type is TokenType.SELECT)
        select = next((i for i in words if levels[i] == min(levels[i : at + 1])), None)
        if select is None:
            return None
        for i in range(select + 1, len(tokens)):
            own, kind = levels[i] == levels[select], tokens[i].token_type
            if levels[i] < levels[select] or (own and kind is TokenType.PIPE_GT):
                return None
            if own and kind is TokenType.FROM and i not in comparing:
                return cls(tokens, select, i)
        return None

    @property
    def end(self) -> int:
        """The position of FROM."""
        return self.tokens[self.from_].start

    @property
    def stars(self) -> list[int]:
        """The tokens ``*`` that stand for columns in the result."""
        return [i for i, inside in self._columns() if not inside]

    @property
    def has_stars_inside(self) -> bool:
        """Whether a star stands for columns in an expression, which ``COUNT(*)`` does not."""
        found = (i for i, inside in self._columns() if inside)
        return any(self.tokens[i - 2].text.upper() != "COUNT" for i in found)

    def without(self, name: str) -> list[Edit]:
        """What leaves a column out of the stars."""
        return [self._except_edit(star, name) for star in self.stars]

    def _columns(self) -> Iterator[tuple[int, bool]]:
        """The stars that are no multiplication, and whether they stand in parentheses."""
        levels = depths(self.tokens)
        for i in range(self.select + 1, self.from_):
            after = self.tokens[i - 1].token_type
            if self.tokens[i].token_type is TokenType.STAR and after in _BEFORE_STAR:
                yield i, levels[i] > levels[self.select]

    def _except_edit(self, star: int, name: str) -> Edit:
        if self.tokens[star + 1].token_type is not TokenType.EXCEPT:
            end = self.tokens[star].end + 1
            return end, end, f" EXCEPT ({name})"
        end = self.tokens[closing(self.tokens, star + 2)].start
        return end, end, f", {name}"


_BEFORE_STAR = {TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.COMMA,
    TokenType.DOT, TokenType.L_PAREN}  # fmt: skip
