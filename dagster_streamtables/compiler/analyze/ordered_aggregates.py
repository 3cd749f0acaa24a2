"""Make aggregates that depend on the order of rows independent of it.

Calls are found in the text, as a name and its parentheses; `make_deterministic` lists the
insertions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.aggregate_calls import function_of
from dagster_streamtables.compiler.text.edits import Edit
from dagster_streamtables.compiler.text.query_text import Text


@dataclass(frozen=True)
class Insertion:
    at: int
    words: str
    until: int | None = None
    """The end of the replaced span; None if nothing is replaced."""

    @property
    def edit(self) -> Edit:
        return self.at, self.at if self.until is None else self.until, self.words


_LISTS = {"collect_list", "collect_set", "array_agg"}
_STRINGS = {"listagg", "string_agg"}
_EXTREMES = {
    "first": "min",
    "first_value": "min",
    "any_value": "min",
    "last": "max",
    "last_value": "max",
}
_BY = {"max_by", "min_by"}
_INSENSITIVE = {
    "sort_array",
    "size",
    "array_size",
    "cardinality",
    "array_contains",
    "array_max",
    "array_min",
}


@dataclass(frozen=True)
class _Call:
    """A call in the text: its name, the commas and parentheses of its arguments, its clauses."""

    name: Token
    marks: list[Token]
    """The opening parenthesis, the commas between arguments, the closing parenthesis."""
    within: tuple[Token, Token] | None
    end: int
    """The end of the call, including FILTER and its other clauses."""
    inside: str
    """The function whose first argument it is, if any."""
    windowed: bool

    def argument(self, number: int, text: Text) -> str:
        return text.sql[self.marks[number].end + 1 : self.marks[number + 1].start].strip()


def missing_orders(text: Text) -> Iterator[Insertion]:
    """What to insert into aggregates that depend on an order and have none."""
    wanted = _LISTS | _STRINGS | set(_EXTREMES) | _BY | {"mode"}
    tokens = text.tokens
    for i, token in enumerate(tokens[:-1]):
        if token.text.lower() in wanted and tokens[i + 1].token_type is TokenType.L_PAREN:
            call = _call(tokens, i)
            yield from _decided(call, text)


def orders(call: exp.Expr) -> list[exp.Expr]:
    """The arguments of an aggregate by which the rows of its group would be ordered."""
    function = function_of(call)
    name, around = _name(function), call.parent
    arguments = [each for each in function.iter_expressions() if not isinstance(each, exp.Distinct)]
    if name in _BY:
        return arguments[:2]
    insensitive = isinstance(around, exp.Func) and _name(around) in _INSENSITIVE
    ordered = name in _EXTREMES or (name in _LISTS and not insensitive)
    return arguments[:1] if ordered else []


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def _decided(call: _Call, text: Text) -> Iterator[Insertion]:
    name, start, first = call.name.text.lower(), call.name.start, call.marks[0].end + 1
    if name in _LISTS and not call.windowed and call.inside not in _INSENSITIVE:
        yield Insertion(start, "SORT_ARRAY(")
        yield Insertion(call.end, ")")
    elif name in _STRINGS and not call.windowed:
        value = call.argument(0, text)
        bare = value[len("DISTINCT") :].strip() if value.upper().startswith("DISTINCT") else value
        if call.within is None:
            yield Insertion(call.marks[-1].end + 1, f" WITHIN GROUP (ORDER BY {bare})")
        elif bare == value:
            yield Insertion(call.within[1].start, f", {bare}")
    elif name in _EXTREMES and not call.windowed:
        ends = call.marks[1].start, call.end
        yield Insertion(start, f"{_EXTREMES[name]}(", first)
        yield Insertion(ends[0], ")", _after_nulls(text, call))
    elif name in _BY and len(call.marks) == 3:
        by, value = call.argument(1, text), call.argument(0, text)
        yield Insertion(
            call.marks[1].end + 1,
            f" CASE WHEN ({by}) IS NOT NULL THEN STRUCT({by}, {value}) END",
            call.marks[2].start,
        )
    elif name == "mode" and len(call.marks) == 2 and call.argument(0, text):
        yield Insertion(call.marks[1].start, ", true")


def _after_nulls(text: Text, call: _Call) -> int:
    """The position after the arguments and IGNORE NULLS or RESPECT NULLS."""
    following = [each for each in text.tokens if each.start > call.marks[-1].start][:2]
    words = " ".join(each.text.upper() for each in following)
    return (following[1] if words in ("IGNORE NULLS", "RESPECT NULLS") else call.marks[-1]).end + 1


def _call(tokens: list[Token], i: int) -> _Call:
    close = _closing(tokens, i + 1)
    depth, marks = 0, list[Token]()
    for token in tokens[i + 1 : close + 1]:
        kind = token.token_type
        depth += kind in _OPEN
        if depth == 1 and (
            kind is TokenType.COMMA or kind in (TokenType.L_PAREN, TokenType.R_PAREN)
        ):
            marks.append(token)
        depth -= kind in _CLOSE
    end, within, windowed = close, None, False
    while end + 1 < len(tokens):
        words = [each.text.upper() for each in tokens[end + 1 : end + 3]]
        if words in (["IGNORE", "NULLS"], ["RESPECT", "NULLS"]):
            end += 2
        elif words[:1] in (["FILTER"], ["WITHIN"]) and "(" in [
            t.text for t in tokens[end + 1 : end + 4]
        ]:
            opening = next(k for k in range(end + 1, end + 4) if tokens[k].text == "(")
            closing = _closing(tokens, opening)
            within = (tokens[opening], tokens[closing]) if words[0] == "WITHIN" else within
            end = closing
        else:
            windowed = words[:1] == ["OVER"]
            break
    before = tokens[i - 2].text.lower() if i > 1 and tokens[i - 1].text == "(" else ""
    return _Call(tokens[i], marks, within, tokens[end].end + 1, before, windowed)


_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET)


def _closing(tokens: list[Token], opening: int) -> int:
    depth = 0
    for k in range(opening, len(tokens)):
        depth += (tokens[k].token_type in _OPEN) - (tokens[k].token_type in _CLOSE)
        if depth == 0:
            return k
    return len(tokens) - 1
