"""GROUP BY: keys, grouping sets, measures, sessions, and the expressions evaluated after it.

session_window() first makes a window of each row; `with_sessions` merges the windows to sessions,
by the other keys of GROUP BY. A session is a run of windows each of which begins no later than the
previous ones end. Three windows, over the rows of the same keys, find it:

    m = the greatest end of the rows that began earlier
    s = the greatest start so far of a row that begins a session, where m IS NULL or start > m
    e = the greatest end of the rows with the same s

Each is the same for rows that begin together, so a change has one answer whatever their order. The
cost is that of a window: the rows of the touched keys, before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, product

import sqlglot
from sqlglot import exp

from dagster_streamtables.compiler.analyze.lateral_views import SESSIONS
from dagster_streamtables.compiler.lower.scope import Scope, rewrite_expression
from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.comparable import as_maps, has_maps, ordered
from dagster_streamtables.compiler.operators.keyed import (
    SET,
    Aggregate,
    Expand,
    WindowColumns,
    grouping_id,
)
from dagster_streamtables.compiler.operators.linear import Project, Unfold, column_outputs
from dagster_streamtables.compiler.operators.sql_builders import column, type_of, typed
from dagster_streamtables.compiler.text.column_names import unflat
from dagster_streamtables.compiler.text.group_by import (
    calls,
    function_of,
    has_sets,
    is_of_window,
    sets_of,
    sets_over,
)
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT

_NUMBER = exp.DataType.build("int")
_MOST_SETS = 64


@dataclass
class Grouping:
    """The groups of one SELECT, over the rows of its FROM and WHERE."""

    rows: Operator
    keys: list[exp.Expr]
    sets: list[frozenset[int]] | None
    """For each grouping set, the indices of its keys; None without grouping sets."""
    parts: list[exp.Expr]
    """All expressions that are evaluated after GROUP BY, with flat names."""
    arguments: dict[exp.Expr, str] = field(default_factory=dict[exp.Expr, str])
    read: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    """Columns that calls read directly."""

    def groups(self) -> tuple[Operator, dict[exp.Expr, exp.Expr]]:
        """The groups, and the column that now holds each key and each call."""
        found = dict.fromkeys(call for part in self.parts for call in calls(part))
        names = {_name(call) for call in found} & _GROUPING
        measured = [call for call in found if _name(call) not in names]
        measures = tuple((f"agg_{i}", self._measure(call)) for i, call in enumerate(measured))
        inputs = {f"key_{i}": _comparable(key) for i, key in enumerate(self.keys)}
        arguments = {name: argument for argument, name in self.arguments.items()}
        rows: Operator = Project(self.rows, tuple((inputs | arguments | self.read).items()))
        by = tuple(inputs)
        if self.sets is not None:
            distinct = tuple(frozenset(by[i] for i in each) for each in dict.fromkeys(self.sets))
            rows = Expand(rows, by, distinct)
            by = (*by, SET)
        rows = Aggregate(rows, by, measures)
        held = {call: _result_column(f"agg_{i}", call) for i, call in enumerate(measured)}
        held |= {key: _key_column(f"key_{i}", key) for i, key in enumerate(self.keys)}
        held |= {call: self._grouping_case(call) for call in found if _name(call) in names}
        return self._repeat_groups(rows), held

    def _repeat_groups(self, rows: Operator) -> Operator:
        """Repeat the groups of a grouping set that is listed twice."""
        copies = {each: (self.sets or []).count(each) for each in self.sets or []}
        if all(count == 1 for count in copies.values()):
            return rows
        case = exp.Case()
        for each, count in copies.items():
            case = case.when(column(SET).eq(self._id(each)), exp.Literal.number(count))
        numbers = exp.Anonymous(this="sequence", expressions=[exp.Literal.number(1), case])
        return Unfold(rows, exp.Explode(this=numbers), (("copy", _NUMBER),))

    def _id(self, within: frozenset[int]) -> int:
        keys = tuple(str(i) for i in range(len(self.keys)))
        return grouping_id(keys, frozenset(keys[i] for i in within))

    def _grouping_case(self, call: exp.Expr) -> exp.Expr:
        """GROUPING(x) or GROUPING_ID(…) as a CASE over the set, on which alone it depends."""
        keys = [self.keys.index(each.unnest()) for each in call.expressions]
        keys = keys or list(range(len(self.keys)))
        if not keys:  # GROUPING SETS (())
            return exp.cast(exp.Literal.number(0), "BIGINT")
        case = exp.Case()
        for each in dict.fromkeys(self.sets or []):
            bits = [str(int(i not in each)) for i in keys]
            number = exp.Literal.number(int("".join(bits), 2))
            case = case.when(column(SET).eq(self._id(each)), number)
        return exp.cast(case, "TINYINT" if _name(call) == "grouping" else "BIGINT")

    def _measure(self, call: exp.Expr) -> exp.Expr:
        """The call, over columns of the aggregate's input."""
        simple = _simple(call)
        if simple is None:
            for each in call.find_all(exp.Column):
                self.read[each.name] = typed(column(each.name), type_of(each))
            return call.copy()
        function, condition = simple
        argument = function.this
        if isinstance(argument, exp.Distinct):
            held = [self._argument(each, condition) for each in argument.expressions]
            return typed(type(function)(this=exp.Distinct(expressions=held)), type_of(function))
        if isinstance(argument, exp.Star) and condition is None:
            return typed(exp.Count(this=exp.Star()), type_of(function))
        return typed(type(function)(this=self._argument(argument, condition)), type_of(function))

    def _argument(self, place: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
        value = exp.Literal.number(1) if isinstance(place, exp.Star) else place.copy()
        if condition is not None:
            # All these aggregates ignore NULL, so a filtered row can become one.
            value = exp.Case().when(condition.copy(), value)
        value = typed(value, type_of(place))
        name = self.arguments.setdefault(value, f"arg_{len(self.arguments)}")
        return typed(column(name), type_of(value))


_GROUPING = {"grouping", "grouping_id"}
_AS_EXTREME: dict[str, type[exp.Expr]] = {
    **dict.fromkeys(("bool_and", "every"), exp.Min),
    **dict.fromkeys(("bool_or", "some", "any"), exp.Max),
}


def _name(call: exp.Expr) -> str:
    function = function_of(call)
    return function.name.lower() if isinstance(function, exp.Anonymous) else function.key


def _simple(call: exp.Expr) -> tuple[exp.Expr, exp.Expr | None] | None:
    """The call as COUNT, SUM, AVG, MIN or MAX, and its FILTER condition; None for other calls."""
    function, condition = call, None
    if isinstance(call, exp.Filter):
        function, condition = call.this, call.expression.this
    if isinstance(function, exp.Anonymous) and len(function.expressions) == 1:
        [argument] = function.expressions
        name = function.name.lower()
        if isinstance(argument, exp.Distinct):
            return None
        if name in _AS_EXTREME:
            # FALSE < TRUE, so AND is MIN and OR is MAX.
            return typed(_AS_EXTREME[name](this=argument), exp.DataType.build("boolean")), condition
        if name == "count_if":
            counted = exp.Case().when(argument.copy(), exp.Literal.number(1))
            return typed(exp.Count(this=counted), exp.DataType.build("bigint")), condition
    if isinstance(function, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
        return None if function.expressions else (function, condition)
    return None


def _result_column(name: str, node: exp.Expr) -> exp.Expr:
    return typed(column(name), type_of(node))


def _comparable(key: exp.Expr) -> exp.Expr:
    """A key by which rows are grouped: a MAP as the list of its entries by key."""
    unknown = exp.DataType.build("UNKNOWN")
    return typed(ordered(key, key.type), unknown) if has_maps(key.type) else key


def _key_column(name: str, key: exp.Expr) -> exp.Expr:
    """The key as the query has it, from the column that holds it."""
    if not has_maps(key.type):
        return _result_column(name, key)
    return typed(as_maps(column(name), key.type), type_of(key))


def replace_by_columns(part: exp.Expr, held: dict[exp.Expr, exp.Expr]) -> exp.Expr:
    """An expression after GROUP BY, with keys and calls replaced by the columns that hold them."""

    def settle(node: exp.Expr) -> exp.Expr:
        return held[node].copy() if node in held and not is_of_window(node) else node

    return rewrite_expression(part, settle)


def keys_and_sets(
    clause: exp.Group | None, scope: Scope
) -> tuple[list[exp.Expr], list[frozenset[int]] | None]:
    """The keys of a GROUP BY clause, and the indices of the keys of each grouping set."""
    if clause is None:
        return [], None
    several = (exp.GroupingSets, exp.Cube, exp.Rollup)
    plain = [scope.flat(key.unnest()) for key in clause.expressions if not isinstance(key, several)]
    parts = [
        *(each for each in clause.expressions if isinstance(each, several)),
        *(clause.args.get("grouping_sets") or []),
        *(clause.args.get("cube") or []),
        *(clause.args.get("rollup") or []),
    ]
    if not parts:
        return list(dict.fromkeys(plain)), None
    given: list[exp.Expr] = []
    if all(not part.expressions for part in parts):
        # GROUP BY a, b WITH ROLLUP
        [part] = parts
        lists, plain = [sets_over(part, [[key] for key in plain])], []
    else:
        lists = [[[scope.flat(key) for key in each] for each in sets_of(part)] for part in parts]
    if clause.args.get("grouping_sets"):
        # GROUP BY a, b GROUPING SETS ((a)): each set has its own keys alone.
        given, plain = plain, []
    if not (plain or given) and lists == [[[]]]:
        # The empty set alone is a plain aggregate, which returns a row even for an empty input.
        return [], None
    chosen = [[*plain, *chain.from_iterable(each)] for each in product(*lists)]
    if len(chosen) > _MOST_SETS:
        raise Refusal(
            clause, f"{len(chosen)} grouping sets",
            why="CUBE and ROLLUP of many columns make many sets that are rarely needed; at most "
            f"{_MOST_SETS} are allowed",
            fix="list the sets that you need with GROUPING SETS",
        )  # fmt: skip
    every = chain(given, plain, chain.from_iterable(chain.from_iterable(lists)))
    keys = list(dict.fromkeys(every))
    return keys, [frozenset(keys.index(key) for key in each) for each in chosen]


def with_sessions(
    rows: Operator, keys: list[exp.Expr], clause: exp.Expr | None, scope: Scope
) -> Operator:
    """The rows with the session of each instead of its window; unchanged without session_window().

    Raises:
        Refusal: GROUP BY has grouping sets.
    """
    session = next((each for each in keys if _is_session(each)), None)
    if session is None:
        return rows
    if clause is not None and has_sets(clause):
        raise Refusal(
            clause,
            "session_window() in grouping sets",
            why="Spark fails on it, in mode FULL too: sessions depend on the other keys, which "
            "differ from set to set",
            fix="combine one query for each set by UNION ALL",
        )
    held = dict(column_outputs(rows.schema))
    by = {scope.unique_name(f"ses_key_{i}"): k for i, k in enumerate(keys) if k is not session}
    start, end, before, first, last = (
        scope.unique_name(f"ses_{name}") for name in ("start", "end", "before", "first", "last")
    )
    ends = {start: _field(session, "start"), end: _field(session, "end")}
    rows = Project(rows, tuple({**held, **by, **ends}.items()))
    own, partition = tuple(by), _partition(tuple(by))
    earlier = "RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '1' MICROSECOND PRECEDING"
    begins = f"CASE WHEN `{before}` IS NULL OR `{start}` > `{before}` THEN `{start}` END"
    steps = (
        (own, before, f"MAX(`{end}`) OVER ({partition} ORDER BY `{start}` {earlier})"),
        (own, first, f"MAX({begins}) OVER ({partition} ORDER BY `{start}`)"),
        ((*own, first), last, f"MAX(`{end}`) OVER ({_partition((*own, first))})"),
    )
    for keys_of_step, name, sql in steps:
        rows = WindowColumns(rows, keys_of_step, ((name, _call(sql)),))
    merged = _call(f"named_struct('start', `{first}`, 'end', `{last}`)")
    held[session.name] = typed(merged, type_of(session))
    return Project(rows, tuple(held.items()))


def _is_session(key: exp.Expr) -> bool:
    return isinstance(key, exp.Column) and unflat(key.name)[0].rstrip("'") == SESSIONS


def _field(session: exp.Expr, name: str) -> exp.Expr:
    return exp.Dot(this=session.copy(), expression=exp.to_identifier(name, quoted=True))


def _partition(keys: tuple[str, ...]) -> str:
    return f"PARTITION BY {', '.join(f'`{key}`' for key in keys)}" if keys else ""


def _call(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, dialect=DIALECT)
