"""Names for output columns that Delta cannot store, or that repeat.

An alias is added where the list of the outermost SELECT has no other; else the whole query is put
into parentheses, and its columns are named after them. Plain Spark is given the same text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler import Text, is_storable, tokenize_query
from dagster_streamtables.compiler.text.token_edits import depths, end_of_list, outermost
from dagster_streamtables.errors import StreamTablesError

_SPAN = {TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}


def names_needed(names: Sequence[str]) -> list[str]:
    """The names with others for those that Delta has not, or that an earlier column has.

    >>> names_needed(["a", "count(1)", "A"])
    ['a', 'c2', 'c3']
    """
    taken: set[str] = set()
    made: list[str] = []
    for position, name in enumerate(names, start=1):
        fits = is_storable(name) and name.lower() not in taken and name != ""
        new = name if fits else _unused(f"c{position}", names, taken)
        taken.add(new.lower())
        made.append(new)
    return made


def _unused(name: str, names: Sequence[str], taken: set[str]) -> str:
    used = {each.lower() for each in names} | taken
    while name.lower() in used:
        name += "_"
    return name


def texts_with(sql: str, names: Sequence[str], new: Sequence[str], *, mark: str = "`") -> list[str]:
    """Texts that give the columns of a query their new names, the best first."""
    if list(names) == list(new):
        return [sql]
    quoted = [f"{mark}{each.replace(mark, mark * 2)}{mark}" for each in new]
    wrapped = f"SELECT * FROM (\n{sql}\n) AS named ({', '.join(quoted)})"
    aliased = _aliased(sql, names, new, mark)
    return [wrapped] if aliased is None else [aliased, wrapped]


def _aliased(sql: str, names: Sequence[str], new: Sequence[str], mark: str) -> str | None:
    """None if the list of the outermost SELECT has stars, or aliases where others are needed."""
    try:
        text = tokenize_query(sql)
        ends = _ends_of_items(text)
        items = text.tree.expressions if isinstance(text.tree, exp.Select) else None
    except (StreamTablesError, IndexError):
        return None
    if len(ends) != len(names) or text.has_pipes:
        return None
    edits: list[tuple[int, int, str]] = []
    for position, (name, wanted) in enumerate(zip(names, new, strict=True)):
        if name == wanted:
            continue
        item = items[position] if items is not None and len(items) == len(names) else None
        if item is None or isinstance(item, exp.Alias | exp.Aliases | exp.Star):
            return None
        edits.append((ends[position], ends[position], f" AS {mark}{wanted}{mark}"))
    return text.with_edits(edits).sql


def _ends_of_items(text: Text) -> list[int]:
    """The positions after the items in the list of the outermost SELECT."""
    select = text.tokens[outermost(text.tokens, TokenType.SELECT)[0]]
    end = end_of_list(text.sql, text.tokens)
    inside = [each for each in text.tokens if select.start < each.start < end]
    ends: list[int] = []
    angle = 0
    last: Token | None = None
    for token, depth in zip(inside, depths(inside), strict=True):
        angle += _SPAN.get(token.token_type, 0)
        if depth == angle == 0 and token.token_type is TokenType.COMMA and last is not None:
            ends.append(last.end + 1)
        last = token
    return ends if last is None else [*ends, last.end + 1]
