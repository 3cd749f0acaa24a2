"""A window with a name that several calls share, of which some need a further order.

    ROW_NUMBER() OVER w, RANK() OVER w … WINDOW w AS (ORDER BY x)

ROW_NUMBER tells rows that tie apart, and RANK must not: with more columns in the ORDER BY of w, no
rows would tie. So the call that needs them has a definition of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.analyze.ordered_aggregates import Insertion
from dagster_streamtables.compiler.text.places import span
from dagster_streamtables.compiler.text.query_text import Text

_DEFINITION = ("partition_by", "order", "spec")


def is_shared(
    meant: exp.Expr,
    calls: Iterable[exp.Expr],
    named: dict[str, exp.Expr],
    needs_order: Callable[[exp.Expr, exp.Expr], bool],
) -> bool:
    """Whether rows that tie are the same to some of the calls over a window with a name.

    Args:
        meant: The window.
        calls: The windows of the same SELECT.
        named: Its windows with names, by these in lower case.
        needs_order: Whether a call over a window needs a further order.
    """
    for each in calls:
        window = named.get(each.alias.lower()) if each.args.get("alias") else None
        same = window is not None and all(
            window.args.get(part) == meant.args.get(part) for part in _DEFINITION
        )
        if window is not None and same and not needs_order(each, window):
            return True
    return False


def apart(call: exp.Expr, added: Iterable[Insertion], text: Text) -> Iterator[Insertion]:
    """The definition of the window, with what is added to it, in place of its name after OVER."""
    place = span(call.args["alias"])
    for each in added:
        opening, closing = _parentheses(text.tokens, each.at)
        if place is not None:
            before, after = text.sql[opening.start : each.at], text.sql[each.at : closing.end + 1]
            yield Insertion(place[0], f"{before}{each.words}{after}", place[1] + 1)


def _parentheses(tokens: list[Token], at: int) -> tuple[Token, Token]:
    """The innermost parentheses around a position."""
    open_: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            open_.append(token)
        elif token.token_type is TokenType.R_PAREN:
            opening = open_.pop()
            if opening.start < at <= token.start:
                return opening, token
    raise AssertionError("a definition stands in parentheses")
