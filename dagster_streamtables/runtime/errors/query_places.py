"""Where in the author's query an error of Spark is.

Spark names a position in the SQL that it ran, in which views of versions replace the tables. That
SQL maps it back. Compiled expressions lose their positions, and so do subqueries that Spark turns
into joins; the error then belongs to the only call, or the only scalar subquery, that can raise it.
If there are several, its place is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dagster_streamtables.compiler import Text, span
from dagster_streamtables.errors import InvalidDefinition, QueryPosition
from dagster_streamtables.runtime.errors.foreign_words import condition_of

Span = tuple[int, int]

_BUILD_MAPS = ("map", "map_from_arrays", "map_from_entries", "map_concat", "str_to_map")
_READ_JSON = ("from_json", "from_csv", "from_xml", "parse_json")
_READ_TIMES = ("to_timestamp", "to_date", "unix_timestamp", "to_unix_timestamp", "to_time")
_CASTS = ("cast", "::", "tinyint", "smallint", "int", "bigint")
_SUMS = ("sum", "avg", "mean")
_CALLS = {
    "CANNOT_PARSE_TIMESTAMP": _READ_TIMES,
    "CAST_OVERFLOW": _CASTS,
    "DATETIME_FIELD_OUT_OF_BOUNDS": ("make_date", "make_timestamp", "make_timestamp_ntz"),
    "DUPLICATED_MAP_KEY": (*_BUILD_MAPS, "transform_keys"),
    "INCONSISTENT_BEHAVIOR_CROSS_VERSION": (*_READ_TIMES, "date_format", "from_unixtime"),
    "INVALID_FORMAT": ("to_number", "to_char", "like"),
    "INVALID_URL": ("parse_url",),
    "INVALID_UTF8_STRING": ("validate_utf8",),
    "INVALID_VARIANT_CAST": ("variant_get", *_CASTS),
    "MALFORMED_RECORD_IN_PARSING": _READ_JSON,
    "NULL_MAP_KEY": (*_BUILD_MAPS, "transform_keys"),
    "USER_RAISED_EXCEPTION": ("raise_error", "assert_true"),
}
"""The functions whose errors have no position."""
_NO_VALUE = (
    *(exp.From, exp.Join, exp.Lateral, exp.SetOperation, exp.Subquery),
    *(exp.In, exp.Exists, exp.Any, exp.All),
)
"""What a subquery is part of if it is no scalar one."""
_UNDERLINED = re.compile(r"== SQL \(line (\d+), position (\d+)\) ==\n(.*)\n( *\^+)")
_SYNTAX = re.compile(r"\[PARSE_\w+\].*\(line (\d+), pos (\d+)\)")


def place_of(error: Exception, text: Text) -> QueryPosition | str:
    """The place of an error, or the output column that it is in; empty if both are unknown.

    Args:
        error: One of Spark.
        text: The SQL that Spark ran, made from the author's.
    """
    span = _span_of_position(error, text) or _span_of_cause(error, text)
    return "" if span is None else text.locate(*span) or _output_column(span, text)


def _span_of_position(error: Any, text: Text) -> Span | None:
    for context in error.getQueryContext():
        if getattr(context.contextType(), "name", "") == "SQL" and context.fragment():
            return _span(context.fragment(), context.startIndex(), text.sql)
    if found := _UNDERLINED.search(str(error)):  # all that an error in another one has
        line, column, shown, carets = found.groups()
        words = shown[carets.find("^") : len(carets)]
        return _span(words, _index(text.sql, int(line), int(column) - 1), text.sql)
    if found := _SYNTAX.search(str(error)):
        start = _index(text.sql, int(found[1]), int(found[2]))
        return next(((t.start, t.end) for t in text.tokens if t.start >= start), None)
    return None


def _index(sql: str, line: int, column: int) -> int:
    return sum(len(each) + 1 for each in sql.split("\n")[: line - 1]) + column


def _span(words: str, expected: int, sql: str) -> Span | None:
    """Where the words are: Spark's position may be one in another statement."""
    starts = [found.start() for found in re.finditer(re.escape(words), sql)]
    if expected not in starts and len(starts) != 1:
        return None
    start = expected if expected in starts else starts[0]
    return start, start + len(words) - 1


def _span_of_cause(error: Any, text: Text) -> Span | None:
    condition = condition_of(error).partition(".")[0]
    if condition == "SCALAR_SUBQUERY_TOO_MANY_ROWS":
        found = list(_scalar_subqueries(text))
        return span(found[0]) if len(found) == 1 else None
    return _span_of_call(_CALLS.get(condition) or _functions(error), text)


def _output_column(place: Span, text: Text) -> str:
    """The column of the result that a place is in: the author of a query in another dialect wrote
    it in other words."""
    tree = _tree(text)
    if tree is None or tree.find(exp.With) is not None:
        return ""
    selects = tree.find_all(exp.Select, bfs=True)
    outputs = next((each.selects for each in selects if not each.is_star), [])
    for output in outputs:
        found = span(output)
        if found is None:  # where it ends is unknown, and with it where the next one begins
            return ""
        if place[0] <= found[1]:
            name = output.alias_or_name
            return f'the output column "{name}"' if name else ""
    return ""


def _functions(error: Any) -> tuple[str, ...]:
    """The functions that the parameters of an error name."""
    told = error.getMessageParameters() or {}
    if "try_add" in told.get("alternative", ""):  # an addition has a position, a sum has none
        return _SUMS
    return tuple(re.findall(r"\w+", told.get("functionName", "").lower()))


def _span_of_call(functions: tuple[str, ...], text: Text) -> Span | None:
    pairs = zip(text.tokens, text.tokens[1:], strict=False)
    calls = [
        one
        for one, after in pairs
        if one.text.lower() in functions and (after.text == "(" or one.text == "::")
    ]
    if len(calls) != 1 or calls[0].text == "::":
        return None
    [name] = calls
    depth = 0
    for token in text.tokens[text.tokens.index(name) + 1 :]:
        depth += (token.text == "(") - (token.text == ")")
        if not depth:
            return name.start, token.end
    return None


def _scalar_subqueries(text: Text) -> Iterator[exp.Subquery]:
    tree = _tree(text)
    for each in tree.find_all(exp.Subquery) if tree is not None else ():
        if each.parent is not None and not isinstance(each.parent, _NO_VALUE):
            yield each


def _tree(text: Text) -> exp.Query | None:
    try:
        return text.tree
    except (InvalidDefinition, SqlglotError):  # only Spark has to parse it
        return None
