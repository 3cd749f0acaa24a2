"""Table functions in a SELECT list, and time windows, as a LATERAL VIEW.

A table function runs before the other items of the list:

    SELECT id, explode(tags) AS e FROM t       SELECT id, e FROM t LATERAL VIEW explode(tags) g AS e
    SELECT explode(o.tags) AS e                SELECT e FROM explode(o.tags) AS g(e), since o may be
                                               a table of the query around
    SELECT k, explode(collect_list(x)) AS e    SELECT k, e FROM (SELECT k, collect_list(x) AS x
    FROM t GROUP BY k                          FROM t GROUP BY k) LATERAL VIEW explode(x) g AS e

Over groups, the windows of the list come before the function. QUALIFY comes after it, and reads
outputs, as ORDER BY does: that is Spark's order.

window() and session_window() map a row to its windows of time. Spark does so for each row of
``FROM … WHERE …`` before it groups, and names the windows:

    SELECT window.start, COUNT(*) FROM t GROUP BY window(ts, '10 minutes', '5 minutes')
    SELECT window.start, COUNT(*) FROM t LATERAL VIEW explode(…) w AS window GROUP BY window

A row has n = ⌈length / slide⌉ windows, or one fewer if the slide does not divide the length. A row
whose time is NULL is in no window. The windows of sessions are merged as they are grouped; see
`lower/grouping`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import sqlglot
from sqlglot import exp

from dagster_streamtables.compiler.analyze.output_names import columns_of_call
from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.group_by import has_groups, name_of_call, own_nodes
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, named_struct
from dagster_streamtables.compiler.text.table_mentions import own_aliases

_MADE = "st_generated"
_GROUPS = "st_groups"
_OF_GROUPS = (exp.Column, exp.AggFunc, exp.Window)


def desugar_generator(select: exp.Select, columns: Mapping[str, str]) -> None:
    """Move the table function out of the list of a SELECT, which has one or none."""
    for place, item in enumerate(select.expressions):
        call = item.unalias() if isinstance(item, exp.Alias) else item
        call = call.this if isinstance(call, exp.Aliases) else call
        if name_of_call(call) not in spark_functions.TABLE_VALUED:
            continue
        aliased = isinstance(item, exp.Aliases)
        names = [each.name for each in item.expressions] if aliased else [item.alias]
        names = names if any(names) else columns_of_call(call, columns)
        if has_groups(select):
            call = _over_groups(select, place, call, names)
        _become_view(select, place, call, names)
        return


def _become_view(select: exp.Select, place: int, call: exp.Expr, names: list[str]) -> None:
    # Spark takes AS (n, n), and no reference to either.
    distinct = len({name.lower() for name in names}) == len(names)
    own = names if distinct else [f"st_made_{number}" for number in range(len(names))]
    columns = [exp.to_identifier(name, quoted=True) for name in own]
    alias = exp.TableAlias(this=exp.to_identifier(_MADE), columns=columns)
    made = [exp.column(name, table=_MADE, quoted=True) for name in own]
    items = select.expressions
    for item in items:
        if isinstance(item, exp.Star):  # its author meant the other relations
            item.set("except_", [*(item.args.get("except_") or []), *(m.copy() for m in made)])
    outputs = [exp.alias_(m, name, quoted=True) for m, name in zip(made, names, strict=True)]
    select.set("expressions", [*items[:place], *outputs, *items[place + 1 :]])
    if select.args.get("from_") is None:
        select.set("from_", exp.From(this=exp.Table(this=call.copy(), alias=alias)))
    else:
        select.append("laterals", exp.Lateral(this=call.copy(), view=True, alias=alias))


def _over_groups(select: exp.Select, place: int, call: exp.Expr, made_names: list[str]) -> exp.Expr:
    """Put the groups of a SELECT into a subquery; the call, over the columns of that.

    At the place of the call, the subquery has its first argument, so that the numbers in GROUP BY
    mean the same.
    """
    _require_outputs(select, made_names)
    arguments = [each for each in call.iter_expressions() if each.find(*_OF_GROUPS)]
    inner = select.copy()
    for clause in ("with_", "distinct", "qualify", "order", "limit", "offset"):
        inner.set(clause, None)
    items = [each.unalias().copy() for each in select.expressions]
    first = arguments[:1] or [exp.Literal.number(1)]
    listed = [*items[:place], *first, *items[place + 1 :], *arguments[1:]]
    named = [exp.alias_(each.copy(), f"st_{i}", quoted=True) for i, each in enumerate(listed)]
    inner.set("expressions", named)
    after = iter([place, *range(len(items), len(listed))])
    held = {id(each): exp.column(f"st_{next(after)}", table=_GROUPS) for each in arguments}
    made = call.copy()
    for old, new in zip(call.iter_expressions(), list(made.iter_expressions()), strict=True):
        if id(old) in held:
            new.replace(held[id(old)])
    outputs = [
        exp.alias_(exp.column(f"st_{i}", table=_GROUPS), each.alias_or_name, quoted=True)
        for i, each in enumerate(select.expressions)
    ]
    found = {each.alias_or_name.lower(): each.unalias() for each in outputs}
    found |= {name.lower(): exp.column(name, table=_MADE, quoted=True) for name in made_names}
    for column in list(_after(select, "qualify")):
        if isinstance(column, exp.Column):
            column.replace(found[column.name.lower()].copy())
    for clause in ("joins", "laterals", "where", "group", "windows"):
        select.set(clause, None)
    select.set("expressions", outputs)
    select.set("from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(
        this=exp.to_identifier(_GROUPS)
    ))))  # fmt: skip
    return made


def _after(select: exp.Select, *clauses: str) -> Iterator[exp.Expr]:
    """The columns and the aggregates of clauses, but for those of queries in them."""
    for each in filter(None, map(select.args.get, clauses)):
        for node in each.find_all(exp.Column, exp.AggFunc):
            if node.find_ancestor(exp.Query) is select and not isinstance(node.parent, exp.Window):
                yield node


def _require_outputs(select: exp.Select, made: list[str]) -> None:
    """Require that what comes after the function reads outputs only."""
    if (having := select.args.get("having")) is not None:
        raise Refusal(
            having,
            "HAVING with a table function over groups",
            why="Spark runs it only as the whole of a query, of which nothing else can read",
            fix="group in a subquery, and apply the function to its result",
        )
    names = {each.lower() for each in (*select.named_selects, *made)}
    beside = [
        each
        for each in _after(select, "qualify", "order")
        if not isinstance(each, exp.Column) or each.name.lower() not in names
    ]
    stars = [each for each in select.expressions if each.is_star]
    windows = list(select.find_all(exp.Window)) if select.args.get("windows") else []
    named = [each for each in windows if each.find_ancestor(exp.Qualify)]
    if found := [*beside, *stars, *named]:
        raise Refusal(
            found[0],
            "a table function over groups, with QUALIFY or ORDER BY over no output column",
            why="that would come after the function, and Spark reads only outputs there",
            fix="group in a subquery, and apply the function to its result",
        )


_SECOND = 1_000_000
_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": 86_400 * _SECOND,
    "week": 7 * 86_400 * _SECOND,
}
_PART = re.compile(r"\s*([+-]?\d+)\s+([a-z]+?)s?(?=\s|$)")


def microseconds(text: str) -> int | None:
    """The length of a text of numbers and units; None for any other, and for months, which differ.

    >>> microseconds("10 minutes"), microseconds("interval 1 hour 30 minutes"), microseconds("-5")
    (600000000, 5400000000, None)
    """
    rest, total = text.strip().lower().removeprefix("interval "), 0
    if not rest:
        return None
    while rest:
        part = _PART.match(rest)
        if part is None or part[2] not in _UNITS:
            return None
        total += int(part[1]) * _UNITS[part[2]]
        rest = rest[part.end() :]
    return total


SESSIONS = "st_sessions"
"""The table of the column `session_window`, until it is merged with those that it touches."""
_WINDOWS = "st_windows"
_COLUMNS = {_WINDOWS: "window", SESSIONS: "session_window"}
_LATER = "st_in_micros"
"""A call that `expand_time_calls` replaces once types are known: ``x`` in microseconds, or back."""
_BACK = "st_from_micros"
_SPARK_TOO = "Spark refuses it, in mode FULL too"


def desugar_time_windows(select: exp.Select) -> None:
    """Replace the calls of one SELECT by a column of a table function in its FROM."""
    found = dict.fromkeys(_calls(select))
    if not found:
        return
    [call, *others] = found
    if others:
        raise Refusal(
            others[0],
            "two different time windows in one SELECT",
            why="rows would be in each pair of windows; " + _SPARK_TOO,
            fix="compute one of them in a subquery",
        )
    table = SESSIONS if call.name.lower() == "session_window" else _WINDOWS
    name = exp.to_identifier(_COLUMNS[table], quoted=True)
    made = _session(call) if table == SESSIONS else _windows(call)
    column = exp.Column(this=name, table=exp.to_identifier(table))
    for node in list(_calls(select)):
        node.replace(column.copy())
    if name.name not in {each.lower() for each in own_aliases(select)}:
        _qualify_mentions(select, column)
    for item in select.expressions:
        if isinstance(item, exp.Star):
            item.append("except_", exp.Column(this=name.copy()))
    alias = exp.TableAlias(this=exp.to_identifier(table), columns=[name])
    select.append("laterals", exp.Lateral(this=exp.Explode(this=made), view=True, alias=alias))


def _qualify_mentions(select: exp.Select, column: exp.Column) -> None:
    """Qualify ``window`` and ``window.start`` outside the call: SELECT window.start … GROUP BY."""
    for node in [each for each in own_nodes(select) if isinstance(each, exp.Column)]:
        path = [part.name.lower() for part in node.parts]
        if path == [column.name]:
            node.replace(column.copy())
        elif path[0] == column.name and len(path) == 2:
            field: exp.Expr = exp.Dot(this=column.copy(), expression=node.this.copy())
            is_output = node.parent is select and node.arg_key == "expressions"
            node.replace(exp.alias_(field, node.name, quoted=True) if is_output else field)


def _calls(select: exp.Select) -> Iterator[exp.Anonymous]:
    for node in own_nodes(select):
        if isinstance(node, exp.Anonymous) and node.name.lower() in _COLUMNS.values():
            yield node


def _windows(call: exp.Anonymous) -> exp.Expr:
    """The windows of a time, an array of structs; NULL if the time is."""
    time, length, slide, start = _arguments(call)
    count = -(-length // slide)
    since = f"((({_MICROS} - ({start})) % {slide}) + {slide}) % {slide}"
    last = f"({_MICROS} - ({since}))"
    made = _windows_until(last, length, slide, count)
    cases = f"WHEN st_time IS NOT NULL THEN {made}"
    if length % slide:
        # The earliest of them may have ended.
        lasts = f"{last} - {(count - 1) * slide} + {length} > {_MICROS}"
        fewer = _windows_until(last, length, slide, count - 1)
        cases = f"WHEN {lasts} THEN {made} WHEN st_time IS NOT NULL THEN {fewer}"
    template = sqlglot.parse_one(f"CASE {cases} END", dialect=DIALECT)
    return template.transform(lambda e: time.copy() if e == exp.column("st_time") else e)


_MICROS = f"{_LATER}(st_time)"


def _windows_until(last: str, length: int, slide: int, count: int) -> str:
    start = f"{last} - st_k * {slide}"
    ends = (f"{_BACK}({each}, st_time)" for each in (start, f"{start} + {length}"))
    made = "named_struct('start', {}, 'end', {})".format(*ends)
    if count == 1:
        return f"array({made.replace(f' - st_k * {slide}', '')})"
    numbers = f"sequence(CAST(0 AS BIGINT), CAST({count - 1} AS BIGINT))"
    return f"transform({numbers}, st_k -> {made})"


def _arguments(call: exp.Anonymous) -> tuple[exp.Expr, int, int, int]:
    """The time, and in microseconds the length, the slide, and the start of the first window."""
    [*given] = call.expressions
    if not 2 <= len(given) <= 4:
        raise Refusal(
            call,
            f"window() with {len(given)} arguments",
            why="it takes a time and a length, and if wanted a slide and a start",
            fix=_FIX,
        )
    lengths = [_length(each, call) for each in given[1:]]
    slide = lengths[1] if len(lengths) > 1 else lengths[0]
    length, start = lengths[0], lengths[2] if len(lengths) > 2 else 0
    if length <= 0 or not 0 < slide <= length or abs(start) >= slide:
        raise Refusal(
            call,
            "a time window with lengths that do not fit",
            why="its slide must be positive and at most its length, and its start smaller than "
            "its slide",
            fix=_FIX,
        )
    return given[0], length, slide, start


def _length(given: exp.Expr, call: exp.Anonymous) -> int:
    found = microseconds(given.name) if isinstance(given, exp.Literal) and given.is_string else None
    if isinstance(given, exp.Literal) and given.is_int:
        found = int(given.name)
    if found is None:
        raise Refusal(
            call,
            f"{given.sql('spark')} is not a valid length of a time window",
            why="it takes a literal of weeks, days, hours, minutes and seconds",
            fix=_FIX,
        )
    return found


_FIX = "write window(time, '10 minutes')"


def _session(call: exp.Anonymous) -> exp.Expr:
    """The session of a row alone; NULL if its time is, or the session has no length."""
    if len(call.expressions) != 2:
        raise Refusal(
            call,
            f"session_window() with {len(call.expressions)} arguments",
            why="it takes a time and a gap",
            fix="write session_window(time, '5 minutes')",
        )
    time, gap = call.expressions
    end = exp.Add(this=time.copy(), expression=exp.cast(gap.copy(), exp.DType.INTERVAL))
    some = exp.GT(this=end, expression=time.copy())
    pair = named_struct({"start": time, "end": end})
    return exp.Case().when(some, exp.Array(expressions=[pair]))


def expand_time_calls(tree: exp.Expr) -> None:
    """Write the calls for microseconds as the type of their time wants it."""
    # The innermost first: replacing a call copies what is inside it.
    for node in reversed(list(tree.find_all(exp.Anonymous))):
        if node.name in (_LATER, _BACK):
            [*given] = node.expressions
            node.replace(_in_micros(given[0]) if node.name == _LATER else _from_micros(*given))


def _in_micros(time: exp.Expr) -> exp.Expr:
    """A time in microseconds since 1970, of UTC, or for TIMESTAMP_NTZ of no time zone."""
    if _is_local(time):
        unit = exp.var("MICROSECOND")
        return exp.Anonymous(this="timestampdiff", expressions=[unit, _epoch(), time.copy()])
    is_date = time.type is not None and time.type.is_type(exp.DType.DATE)
    time = exp.cast(time.copy(), exp.DType.TIMESTAMPTZ) if is_date else time.copy()
    return exp.UnixMicros(this=time)


def _from_micros(micros: exp.Expr, like: exp.Expr) -> exp.Expr:
    """Microseconds since 1970 as a time of the type that another one has."""
    if _is_local(like):
        unit, epoch = exp.var("MICROSECOND"), _epoch()
        return exp.Anonymous(this="timestampadd", expressions=[unit, micros.copy(), epoch])
    return exp.Anonymous(this="timestamp_micros", expressions=[micros.copy()])


def _is_local(time: exp.Expr) -> bool:
    return time.type is not None and time.type.is_type(exp.DType.TIMESTAMPNTZ)


def _epoch() -> exp.Expr:
    return exp.cast(exp.Literal.string("1970-01-01 00:00:00"), exp.DType.TIMESTAMPNTZ)
