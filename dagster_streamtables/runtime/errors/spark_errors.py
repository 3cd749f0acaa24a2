"""Errors of a Spark statement about its rows or about itself, with their place in the query.

Spark names a position in the SQL that it ran, in which views of versions replace the tables. That
SQL maps it back. Compiled expressions lose their positions, and so do subqueries that Spark turns
into joins; the error then belongs to the only call, or the only scalar subquery, that can raise it.
If there are several, its place is unknown.

Spark's own advice is no fix if it names a setting of the session: the query of a stream table must
mean the same in every session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dagster_streamtables.compiler import Text, span
from dagster_streamtables.errors import (
    FailedQuery,
    InvalidDefinition,
    QueryPosition,
    RejectedQuery,
    RunawayRecursion,
)
from dagster_streamtables.runtime.errors.environment_errors import STAYS
from dagster_streamtables.runtime.errors.error_messages import condition_of, first_line, sqlstate_of

if TYPE_CHECKING:
    from pyspark.errors import PySparkException


_CLASSES = ("21", "22")
_OF_HISTORY = "DELTA_VERSION_NOT_FOUND"  # 22003, a number out of range
_OF_ROWS = ("USER_RAISED_EXCEPTION", "DUPLICATED_MAP_KEY", "INVALID_FORMAT.MISMATCH_INPUT")
"""Conditions of other classes."""
_TASK = re.compile(r"Job aborted due to stage failure: .*\([^()]*executor [^()]*\): (.*)")


def row_problem(error: Exception) -> FailedQuery | None:
    """The problem with the rows that a statement read; None for other errors."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    state, condition, message = sqlstate_of(error), condition_of(error), str(error)
    if condition.startswith("RECURSION_"):
        # Spark's own recursion, which only a LIMIT ends; see `Rounds`.
        return RunawayRecursion(
            "the recursion has not ended within the limits of Spark",
            why=first_line(message),
            fix="bound it in the query (WHERE depth < 50), or leave out the LIMIT, and the bounds "
            f"are max_recursion_levels and max_recursion_rows; {STAYS}",
        )
    if (state[:2] in _CLASSES and condition != _OF_HISTORY) or condition in _OF_ROWS:
        return _row_failure(first_line(message), condition)
    return None


def statement_problem(error: Exception) -> FailedQuery | RejectedQuery | None:
    """The problem with a statement that Spark does not run, whatever the rows; or with rows, in an
    error without a condition, such as one about a regular expression."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException) or not _is_about_the_statement(error):
        return None
    task = None if condition_of(error) else _TASK.search(str(error))
    if task is not None:
        return _row_failure(task[1])
    return RejectedQuery(
        "Spark does not run the query",
        why=first_line(str(error)),
        fix=f"correct the query, or the columns and functions that it names; {STAYS}",
    )


def _row_failure(why: str, condition: str = "") -> FailedQuery:
    return FailedQuery(
        "the query fails on the rows of its sources",
        why=without_settings(why),
        fix=f"{row_fix(condition)}; {STAYS}",
    )


def _is_about_the_statement(error: PySparkException) -> bool:
    """Whether Spark rejected the statement itself: not over rows, files, or the machine.

    SQLSTATE class 42, syntax error or access rule violation, 0A, feature not supported, or XX, an
    error inside Spark, which may have the trace of its planner only. Some errors of the analysis
    have another SQLSTATE or none; the client's errors for types without a counterpart in Arrow have
    none either.
    """
    from pyspark.errors import AnalysisException

    state, condition = sqlstate_of(error)[:2], condition_of(error)
    if isinstance(error, AnalysisException) or condition.startswith("UNSUPPORTED_"):
        return True
    return state in ("42", "0A", "XX") or (not state and "spark.sql.catalyst" in str(error))


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
"""The parents of a subquery that is no scalar one."""
_UNDERLINED = re.compile(r"== SQL \(line (\d+), position (\d+)\) ==\n(.*)\n( *\^+)")
_SYNTAX = re.compile(r"\[PARSE_\w+\].*\(line (\d+), pos (\d+)\)")


def place_of(error: Exception, text: Text) -> QueryPosition | str:
    """The place of an error of Spark in `text`, the SQL that it ran, made from the author's; else
    the output column that it is in; empty if both are unknown."""
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
    """The span of the words: Spark's position may be one in another statement."""
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
    """The column of the result that contains a place: a query in another dialect has other words
    than its author wrote."""
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


_FIXES = (
    (
        r"SCALAR_SUBQUERY_TOO_MANY_ROWS",
        "let the subquery return one row for each row around it: compare all of the key in its "
        "WHERE, or aggregate its value (max, any_value, array_agg); or delete the rows that repeat "
        "the key",
    ),
    (
        r"CAST_|NUMERIC_VALUE_OUT_OF_RANGE|INVALID_VARIANT_CAST",
        "correct the rows, or write try_cast (try_variant_get for a VARIANT), which gives NULL for "
        "such a value",
    ),
    (
        r"(DIVIDE|REMAINDER|INTERVAL_DIVIDED)_BY_ZERO",
        "correct the rows, or write try_divide (try_mod for a remainder) or a / nullif(b, 0), "
        "which give NULL",
    ),
    (
        r"\w*ARITHMETIC_OVERFLOW",
        "correct the rows, cast the operands to a wider type (BIGINT, DECIMAL), or write try_add, "
        "try_subtract, try_multiply, try_sum or try_avg, which give NULL",
    ),
    (r"INVALID_INDEX_OF_ZERO", "count from 1 in element_at and the like; array[n] counts from 0"),
    (
        r"INVALID_ARRAY_INDEX",
        "correct the rows, or write get(array, n), which counts from 0, or "
        "try_element_at(array, n), which counts from 1: both give NULL for a missing element",
    ),
    (
        r"CANNOT_PARSE_(TIMESTAMP|TIME|DATE)|INVALID_DATETIME_PATTERN|FAILED_TO_PARSE",
        "correct the rows or the pattern, or write try_to_timestamp or try_to_date, which give "
        "NULL for such a text",
    ),
    (
        r"DATETIME_FIELD_OUT_OF_BOUNDS",
        "correct the rows, or test the parts of the date first, in a CASE",
    ),
    (
        r"DUPLICATED_MAP_KEY",
        "correct the rows, or make the keys distinct before the map is built: GROUP BY the key, "
        "and max_by the value",
    ),
    (r"NULL_MAP_KEY", "correct the rows, or leave out those without a key: WHERE key IS NOT NULL"),
    (
        r"USER_RAISED_EXCEPTION",
        "correct the rows, or the condition under which the query calls raise_error or assert_true",
    ),
    (
        r"MALFORMED_RECORD_IN_PARSING",
        "correct the rows, or write try_parse_json, or from_json in the mode PERMISSIVE, which "
        "give NULL for such a text",
    ),
    (r"INVALID_FORMAT", "correct the rows or the format, or write try_to_number, which gives NULL"),
    (r"INVALID_URL", "correct the rows, or write try_parse_url, which gives NULL"),
    (
        r"INVALID_UTF8_STRING",
        "correct the rows, or write make_valid_utf8, or try_validate_utf8, which gives NULL",
    ),
)
_ANY = "correct the rows, or write an expression that has a value for them, such as a CASE"
_ADVICE = re.compile(
    r' (If necessary|If you want to [^,"]+, you can) set "spark\.[^"]+" to "[^"]*"[^.]*\.'
)


def row_fix(condition: str) -> str:
    """What to do about rows on which a query fails.

    >>> row_fix("NULL_MAP_KEY")
    'correct the rows, or leave out those without a key: WHERE key IS NOT NULL'
    """
    return next((fix for pattern, fix in _FIXES if re.match(pattern, condition)), _ANY)


def without_settings(message: str) -> str:
    """A message of Spark without its advice to change a setting.

    >>> without_settings('overflow. If necessary set "spark.x" to "false" to bypass this error.')
    'overflow.'
    """
    return _ADVICE.sub("", message)
