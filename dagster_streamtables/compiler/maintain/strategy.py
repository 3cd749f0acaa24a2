"""How a change enters the stored table: the shapes of a query's root that are cheaper than the law.

    bag         anything          rows of the change are added and taken away
    fold        γ at the root     stored group + what ΔR adds to it; R is not read
    regroup     γ at the root     γ(R⁺ ⋉ K) in place of the stored groups of K

All three are special cases of ``stored + Δ``. They lean on one fact: at the root, the result
*before* is what the table holds, so it is read there instead of being computed again from R⁻.

A fold keeps what it needs beside the user's columns, in columns that begin with ``__st_``:

    __st_n      the number of rows of the group; a group without rows goes
    __st_cN     COUNT(x)
    __st_sN     SUM(x)
    __st_mN     MIN(x) or MAX(x)
    __st_kN     a key of the group that the query does not return

A fold cannot answer for every group. A MIN that lost its minimum, a sum of floats that lost an
addend (subtracting floats can be wrong by more than rounding), and a sum of decimals too wide to be
multiplied by a weight exactly: those groups are *lost*, and grouped again from the source.
"""

from __future__ import annotations

import enum
from collections.abc import Set
from dataclasses import dataclass, replace

from sqlglot import exp

from dagster_streamtables.compiler.operators import (
    SET,
    Aggregate,
    Expand,
    Filter,
    Operator,
    Project,
    column,
)
from dagster_streamtables.compiler.text.column_names import unflat
from dagster_streamtables.compiler.text.query_text import DIALECT

ROWS = "__st_n"


class Entry(enum.StrEnum):
    """How a change enters the stored table."""

    BAG = "bag"
    FOLD = "fold"
    REGROUP = "regroup"


@dataclass(frozen=True)
class Root:
    """The part of a query's root that decides how its change enters the table."""

    entry: Entry
    outputs: tuple[tuple[str, exp.Expr], ...]
    """The user's columns, over the keys and measures of `groups`; over the view for a bag."""
    groups: Aggregate | None
    having: exp.Expr | None
    key: tuple[tuple[str, str], ...]
    """(stored column, key of `groups`) for each key; together they identify a stored row."""
    states: tuple[tuple[str, exp.Expr], ...]
    """(stored column, aggregate call over the input of `groups`) for what a fold builds upon."""
    exact: bool = False
    """No sum of floats is folded: what reads the groups may compare it."""

    @property
    def hidden_keys(self) -> tuple[tuple[str, str], ...]:
        visible = {name for name, _ in self.outputs}
        return tuple((name, key) for name, key in self.key if name not in visible)

    @property
    def hidden_states(self) -> tuple[tuple[str, exp.Expr], ...]:
        visible = {name for name, _ in self.outputs}
        return tuple((name, call) for name, call in self.states if name not in visible)

    @property
    def can_be_written(self) -> bool:
        """Whether all hidden columns can be said in the query's own SELECT.

        A call over the answer of a subquery, for one, reads a column that the text does not have.
        """
        assert self.groups is not None
        below = self._below
        hidden = [column(key) for _, key in self.hidden_keys if key != SET]
        parts = [*hidden, *(call for _, call in self.hidden_states)]
        columns = (each for part in parts for each in part.find_all(exp.Column))
        read = (each for one in columns for each in below[one.name].find_all(exp.Column))
        return all("." in each.name for each in read)

    @property
    def _below(self) -> dict[str, exp.Expr]:
        """What the columns below the groups are computed from, in the names of the FROM clause."""
        assert self.groups is not None
        rows = self.groups.input
        rows = rows.input if isinstance(rows, Expand) else rows
        return dict(rows.outputs) if isinstance(rows, Project) else {}

    def hidden_sql(self, aliases: Set[str]) -> dict[str, str]:
        """The hidden columns as the user could have written them in the query's own SELECT.

        Args:
            aliases: The names of tables and subqueries that are in the text, in lower case. A
                subquery without one has columns that can be named without it, and only so.
        """
        assert self.groups is not None
        keys = {name: column(key) for name, key in self.hidden_keys}
        calls: dict[str, exp.Expr] = {**keys, **dict(self.hidden_states)}
        return {name: self._written(call, aliases) for name, call in calls.items()}

    def _written(self, expression: exp.Expr, aliases: Set[str]) -> str:
        """An expression over the input of the groups, in the words of the FROM clause below it."""
        below = self._below
        if expression == column(SET):
            return "GROUPING_ID()"

        def in_words(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column):
                table, name = unflat(node.name)
                return column(name, table if table.lower() in aliases else None)
            return node

        def settle(node: exp.Expr) -> exp.Expr:
            return below[node.name].transform(in_words) if isinstance(node, exp.Column) else node

        return expression.copy().transform(settle).sql(DIALECT)


def root_of(view: Operator, *, exact: bool = False) -> Root:
    """Recognize the root of a query."""
    return replace(_root_of(view), exact=exact)


def _root_of(view: Operator) -> Root:
    if isinstance(view, Aggregate) and not view.measures:
        outputs = tuple((name, column(name)) for name in view.keys)
        key = tuple((name, name) for name in view.keys)
        return Root(Entry.FOLD, outputs, view, None, key, ((ROWS, exp.Count(this=exp.Star())),))
    if isinstance(view, Project):
        below, having = view.input, None
        if isinstance(below, Filter):
            below, having = below.input, below.predicate
        if isinstance(below, Aggregate):
            return _grouped(view.outputs, below, having)
    return _bag(tuple((name, column(name)) for name in view.schema))


def _grouped(
    outputs: tuple[tuple[str, exp.Expr], ...], groups: Aggregate, having: exp.Expr | None
) -> Root:
    stored = {e.name: name for name, e in outputs if isinstance(e, exp.Column)}
    key = tuple((stored.get(each, f"__st_k{i}"), each) for i, each in enumerate(groups.keys))
    # Groups that HAVING keeps out have no stored row to fold into.
    if having is not None or not all(foldable(call) for _, call in groups.measures):
        return _by_key(outputs, groups, having, key)
    visible = {call: stored[name] for name, call in groups.measures if name in stored}
    needed = dict.fromkeys(s for _, call in groups.measures for s in state_calls(call))
    rows = exp.Count(this=exp.Star())
    states: list[tuple[str, exp.Expr]] = [(visible.get(rows, ROWS), rows)]
    for i, call in enumerate(each for each in needed if each != rows):
        states.append((visible.get(call, f"__st_{_LETTER[type(call)]}{i}"), call))
    root = Root(Entry.FOLD, outputs, groups, having, key, tuple(states))
    return root if root.can_be_written else _by_key(outputs, groups, having, key)


def _by_key(
    outputs: tuple[tuple[str, exp.Expr], ...],
    groups: Aggregate,
    having: exp.Expr | None,
    key: tuple[tuple[str, str], ...],
) -> Root:
    root = Root(Entry.REGROUP, outputs, groups, having, key, ())
    return root if root.can_be_written else _bag(outputs)


def _bag(outputs: tuple[tuple[str, exp.Expr], ...]) -> Root:
    return Root(Entry.BAG, tuple((name, column(name)) for name, _ in outputs), None, None, (), ())


_LETTER: dict[type[exp.Expr], str] = {exp.Count: "c", exp.Sum: "s", exp.Min: "m", exp.Max: "m"}


def foldable(call: exp.Expr) -> bool:
    """Whether the measure of a group follows from its stored state and the change of its rows."""
    simple = isinstance(call, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max)
    return simple and not isinstance(call.this, exp.Distinct) and not call.expressions


def state_calls(call: exp.Expr) -> tuple[exp.Expr, ...]:
    """The aggregates whose values the measure is computed from."""
    if isinstance(call, exp.Sum | exp.Avg):
        return exp.Sum(this=call.this.copy()), exp.Count(this=call.this.copy())
    if isinstance(call, exp.Count):
        return (exp.Count(this=call.this.copy()),)
    return (type(call)(this=call.this.copy()),)
