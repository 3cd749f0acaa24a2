"""`WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 AS (…)`: the levels after which a recursion fails.

sqlglot does not parse the clause. In Spark, 9 levels are the base and 8 rounds of the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token

_CLAUSE = ["MAX", "RECURSION", "LEVEL"]
_ROUNDS = "rounds"


@dataclass(frozen=True)
class Levels:
    """A text without its clauses, of the same length, and what they said."""

    sql: str
    by_name: Mapping[int, int]
    """Rounds, by the position of the recursion's name."""

    @classmethod
    def apart(cls, sql: str, tokens: Sequence[Token]) -> Levels:
        words = [each.text.upper() for each in tokens]
        by_name: dict[int, int] = {}
        for at in range(1, len(words) - len(_CLAUSE)):
            after = at + len(_CLAUSE)
            number, defines = tokens[after], words[after + 1 : after + 2] in (["AS"], ["("])
            if words[at:after] == _CLAUSE and number.text.isdecimal() and defines:
                by_name[_name_before(words, tokens, at).start] = int(number.text) - 1
                start, end = tokens[at].start, number.end + 1
                sql = f"{sql[:start]}{' ' * (end - start)}{sql[end:]}"
        return cls(sql, by_name)

    def mark(self, tree: exp.Expr) -> None:
        """Let each definition in WITH know its rounds."""
        for cte in tree.find_all(exp.CTE) if self.by_name else ():
            rounds = self.by_name.get(cte.args["alias"].this.meta.get("start"))
            if rounds is not None:
                cte.meta[_ROUNDS] = rounds


def rounds_of(cte: exp.CTE) -> int | None:
    """The rounds that its text allows; None where it does not say."""
    return cte.meta.get(_ROUNDS)


def _name_before(words: Sequence[str], tokens: Sequence[Token], at: int) -> Token:
    """The name of a recursion, before its clause and its list of columns."""
    last = at - 1
    if words[last] == ")":
        # Without one, the parser will say so.
        last = max((i for i in range(last) if words[i] == "("), default=1) - 1
    return tokens[last]
