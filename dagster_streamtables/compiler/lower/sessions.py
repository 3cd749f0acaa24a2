"""session_window(): windows of one row each → sessions, by the other keys of GROUP BY.

A session is a run of windows of which each begins before the ones so far have ended, or just then.
Three windows, over the rows of the same keys, find it:

    m = the greatest end of the rows that began earlier
    s = the greatest start so far of a row that begins a session, where m IS NULL or start > m
    e = the greatest end of the rows with the same s

Each is the same for rows that begin together, so a change has one answer whatever their order. The
cost is that of a window: the rows of the touched keys, before and after.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from dagster_streamtables.compiler.analyze.time_windows import SESSIONS
from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.operators import (
    Operator,
    Project,
    Windowed,
    column,
    type_of,
    typed,
)
from dagster_streamtables.compiler.text.column_names import unflat
from dagster_streamtables.compiler.text.refusal import Refusal
from dagster_streamtables.compiler.text.spark import DIALECT


def with_sessions(
    rows: Operator, keys: list[exp.Expr], clause: exp.Expr | None, scope: Scope
) -> Operator:
    """The rows with the session of each in place of its own window; as they are without one.

    Args:
        rows: What is grouped.
        keys: The keys of GROUP BY, with flat names.
        clause: GROUP BY.
        scope: That of the query.

    Raises:
        Refusal: GROUP BY has grouping sets.
    """
    session = next((each for each in keys if _is_session(each)), None)
    if session is None:
        return rows
    if clause is not None and clause.find(exp.GroupingSets, exp.Cube, exp.Rollup):
        raise Refusal(
            clause,
            "session_window() in grouping sets",
            why="Spark fails on it, in mode FULL too: sessions depend on the other keys, which "
            "differ from set to set",
            fix="combine one query for each set by UNION ALL",
        )
    held = {name: typed(column(name), type_) for name, type_ in rows.schema.items()}
    by = {scope.marked(f"ses_key_{i}"): k for i, k in enumerate(keys) if k is not session}
    start, end, before, first, last = (
        scope.marked(f"ses_{name}") for name in ("start", "end", "before", "first", "last")
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
        rows = Windowed(rows, keys_of_step, ((name, _call(sql)),))
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
