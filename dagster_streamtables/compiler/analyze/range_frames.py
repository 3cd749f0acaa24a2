"""The first row of a frame between values, where several tie: the least of them.

    FIRST_VALUE(v) OVER (ORDER BY t RANGE 5 PRECEDING)
    MIN_BY(v, STRUCT(t, every other column)) OVER (ORDER BY t RANGE 5 PRECEDING)

    LAST_VALUE(v)                   MAX_BY; the other way round with ORDER BY t DESC
    FIRST_VALUE(v) IGNORE NULLS     MIN_BY(v, CASE WHEN v IS NOT NULL THEN STRUCT(…) END)
    NTH_VALUE(v, 3)                 GET(MIN_BY(v, STRUCT(…), 3) OVER (…), 2)

Spark takes no further column in the ORDER BY of such a frame. Rows that tie have the same frame, so
NTH_VALUE needs it in each frame of values: by more columns, it would miss the rows that tie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from dagster_streamtables.compiler.analyze.ordered_aggregates import (
    Call,
    Insertion,
    words_of_call,
)
from dagster_streamtables.compiler.text.aggregate_calls import function_of
from dagster_streamtables.compiler.text.clauses import deeper
from dagster_streamtables.compiler.text.places import span
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.spark import DIALECT

_FIRST = {"first", "first_value", "any_value", "nth_value"}
_LAST = {"last", "last_value"}


def is_over_values(frame: exp.Expr | None, order: exp.Expr | None) -> bool:
    """Whether a frame ends where the values of its order do, with all rows that tie."""
    return order is not None if frame is None else frame.args.get("kind") != "ROWS"


def chooses_a_row(name: str, frame: exp.Expr | None, order: exp.Expr | None) -> bool:
    """Whether a call is written as MIN_BY or MAX_BY.

    Args:
        name: Of the function, in lower case.
        frame: Of its window.
        order: Of its window.
    """
    if not is_over_values(frame, order) or not _one_way(order):
        return False
    return name == "nth_value" or (name in _FIRST | _LAST and has_bounds(frame))


def rewrite_as_extreme(
    node: exp.Expr, order: exp.Expr, name: str, keys: Sequence[str], text: Text
) -> Iterator[Insertion]:
    """The call, of the least or the greatest row.

    Args:
        node: The call with its OVER.
        order: Of its window.
        name: Of the function, in lower case.
        keys: Columns that tell apart rows that tie.
        text: The query; nothing is inserted if it has no place there.
    """
    call = _words(node, name, text)
    if call is None:
        return
    is_least = (name in _FIRST) is not bool(order.expressions[0].args.get("desc"))
    values = [*(field for each in order.expressions for field in _fields(each)), *keys]
    fields = (f"{each} AS st_{place}" for place, each in enumerate(values))
    row = f"STRUCT({', '.join(fields)})"
    if _ignores_nulls(node, call, name, text):
        row = f"CASE WHEN ({call.argument(0, text)}) IS NOT NULL THEN {row} END"
    several = ""
    if name == "nth_value":
        several = call.argument(1, text) if len(call.marks) > 2 else "1"
        yield Insertion(_end_of_window(call, text), f", {several} - 1)")
    made = "MIN_BY" if is_least else "MAX_BY"
    yield Insertion(call.name.start, f"{'GET(' if several else ''}{made}(", call.marks[0].end + 1)
    yield Insertion(call.marks[1].start, f", {', '.join(filter(None, [row, several]))})", call.end)


def _one_way(order: exp.Expr | None) -> bool:
    """Whether all keys go up, or all go down."""
    keys = order.expressions if order is not None else []
    return len({bool(each.args.get("desc")) for each in keys}) == 1


def _fields(key: exp.Expr) -> Iterator[str]:
    """A key as the fields of a STRUCT, to which NULL is less than all values."""
    value = key.this.sql(DIALECT)
    if bool(key.args.get("nulls_first")) is bool(key.args.get("desc")):
        yield f"{value} IS NULL"
    yield value


def has_bounds(frame: exp.Expr | None) -> bool:
    """Whether a frame begins or ends at a value, for which Spark takes no further ORDER BY."""
    ends = [] if frame is None else [frame.args.get("start"), frame.args.get("end")]
    return any(isinstance(each, exp.Expr) for each in ends)


def _words(node: exp.Expr, name: str, text: Text) -> Call | None:
    place = span(function_of(node.this))
    calls = [
        words_of_call(text.tokens, i)
        for i, (token, following) in enumerate(zip(text.tokens, text.tokens[1:], strict=False))
        if token.text.lower() == name and following.token_type is TokenType.L_PAREN
    ]
    around = (c for c in calls if place and c.name.start <= place[0] and place[1] <= c.end)
    return next((each for each in around if each.windowed), None)


def _ignores_nulls(node: exp.Expr, call: Call, name: str, text: Text) -> bool:
    flag = 2 if name == "nth_value" else 1
    said = len(call.marks) > flag + 1 and call.argument(flag, text).upper() == "TRUE"
    return said or node.find(exp.IgnoreNulls) is not None


def _end_of_window(call: Call, text: Text) -> int:
    """The position after OVER w, or OVER (…)."""
    tokens = text.tokens
    at = next(i for i, each in enumerate(tokens) if each.start >= call.end) + 1
    depth = 0
    for token in tokens[at:]:
        depth += deeper(token)
        if depth == 0:
            return token.end + 1
    return len(text.sql)
