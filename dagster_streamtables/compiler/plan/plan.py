"""`Plan`: what the runtime is handed: one query, and how its table follows its sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from dagster_streamtables.compiler.analyze.bind import Columns
from dagster_streamtables.compiler.maintain.bag import bag_change, cast, first_rows
from dagster_streamtables.compiler.maintain.fold import Fold
from dagster_streamtables.compiler.maintain.match import Match
from dagster_streamtables.compiler.maintain.partial import Partial
from dagster_streamtables.compiler.maintain.regroup import Regroup
from dagster_streamtables.compiler.maintain.strategy import Entry, Root, root_of
from dagster_streamtables.compiler.operators import (
    Aggregate,
    Filter,
    Moment,
    Operator,
    Project,
    Scan,
    Schema,
    Step,
    column,
)
from dagster_streamtables.compiler.operators.render import render
from dagster_streamtables.compiler.plan.explain import OperatorLine, lines, outline
from dagster_streamtables.compiler.plan.lineage import lineage_of
from dagster_streamtables.compiler.rewrite.fixpoint import named
from dagster_streamtables.compiler.rewrite.intermediate import split
from dagster_streamtables.compiler.rewrite.simplify import simplify
from dagster_streamtables.compiler.text.current_time import asks_for_time
from dagster_streamtables.compiler.text.group_keys import in_own_words
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.compiler.text.types import type_from, type_text

STORED = "__st_table"
"""Stands for the stream table itself among the relations that a plan reads."""
TOUCHED = "__st_touched"
"""Stands for the keys of touched groups, and for a fold what the change adds to each."""


@dataclass(frozen=True)
class Plan:
    """A query and its change, ready to run.

    `view` reads every source after the change and yields the whole table; `view.delta()` reads them
    before, after, and in between, and yields what to add. They satisfy

        view(before) + change = view(after)
    """

    text: Text | None
    """What the user wrote, with what it left open decided; see `determine`. None for an
    intermediate table, which nobody wrote."""
    view: Operator
    root: Root
    name: str = ""
    """Of an intermediate table."""
    intermediates: tuple[Plan, ...] = ()
    """Of the tables that `view` reads beside the sources, each after those that it reads."""
    whole: Plan | None = None
    """The same without intermediate tables, of a plan that has some."""

    @property
    def schema(self) -> Schema:
        """The columns that a reader of the table sees, with the types that could be told."""
        return self.view.schema

    @property
    def sources(self) -> tuple[str, ...]:
        return self.reads if self.text is None else self.text.sources

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The sources that `view` reads, intermediate tables among them."""
        return tuple(dict.fromkeys(scan.table for scan in _scans(self.view)))

    def columns_of(self, source: str) -> frozenset[str]:
        """The columns of a source that the query uses, in lower case."""
        plans = (self, *self.intermediates)
        scans = (scan for plan in plans for scan in _scans(plan.view) if scan.table == source)
        return frozenset(name.lower() for scan in scans for name in scan.schema)

    @cached_property
    def timed(self) -> bool:
        """Whether the result depends on the time of the refresh."""
        return self.text is not None and asks_for_time(self.text)

    @cached_property
    def with_intermediates(self) -> Plan:
        """The same table, maintained over intermediate tables; see `intermediate`."""
        view, tables = (self.view, ()) if self.timed else split(self.view)
        if not tables:
            return self
        plans = (Plan(None, t.view, root_of(t.view, exact=True), t.name) for t in tables)
        return replace(self, view=view, root=root_of(view), intermediates=tuple(plans), whole=self)

    @property
    def entry(self) -> Entry:
        return self.root.entry

    @property
    def key(self) -> tuple[str, ...] | None:
        """The stored columns that identify a row; empty for the one row of a query without
        GROUP BY, None where rows may have copies."""
        return None if self.root.groups is None else tuple(name for name, _ in self.root.key)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The stored columns that no reader sees."""
        keys = (name for name, _ in self.root.hidden_keys)
        return (*keys, *(name for name, _ in self.root.hidden_states))

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """All columns of the stored table, in the order in which `full_text` yields them."""
        return (*self.schema, *self.hidden)

    @cached_property
    def full_text(self) -> Text:
        """The user's own text, with the hidden columns beside the user's."""
        assert self.text is not None
        if not self.hidden:
            return self.text
        if isinstance(self.view, Aggregate):
            [(name, _)] = self.root.hidden_states
            return self.text.counted(name)
        hidden = self.root.hidden_sql(self.text.aliases)
        return self.text.with_columns(in_own_words(hidden, self.text))

    def change(self, *, stored: Columns, unmoved: Set[str] = frozenset()) -> Step:
        """What a refresh does to the table.

        Args:
            stored: The columns of the stored table and their types in Spark's words.
            unmoved: The sources that are after as they were before.

        Returns:
            For a bag: stored rows with the number of copies that came or went, none 0, no row
            twice. Else what `Fold` and `Regroup` yield.
        """
        types = _types(stored)
        old = Scan(STORED, tuple(types.items()), Moment.BEFORE)
        if self.entry is Entry.BAG:
            return simplify(bag_change(self.view, types, old), unmoved=unmoved)
        if self.entry is Entry.FOLD:
            return self._fold(self.touched(stored=stored, unmoved=unmoved), old)
        change = simplify(self._groups.input.change, unmoved=unmoved)
        return simplify(self._regroup(change, old, types), unmoved=unmoved)

    def first_rows(self, *, stored: Columns) -> Step | None:
        """All rows after the change, of a query that asks for the first of an order."""
        return first_rows(self.view, _types(stored)) if self.entry is Entry.BAG else None

    # Where the change is small, it pays to ask in two statements: which groups are touched, and
    # then for their new rows, with the touched groups and their stored rows as local relations.

    def touched(self, *, stored: Columns, unmoved: Set[str] = frozenset()) -> Partial:
        """The keys of the touched groups, and for a fold what the change adds to each."""
        types = _types(stored)
        change = simplify(self._groups.input.change, unmoved=unmoved)
        return Partial(change, self.root, tuple(types.items()))

    def fold(self, *, stored: Columns, matched: bool = False) -> Step:
        """What `Fold` yields for the groups in `TOUCHED`, as `touched` gives them.

        Args:
            stored: The columns of the stored table and their types in Spark's words.
            matched: What is in `TOUCHED` has the stored rows beside it, as `Match` gives them.
        """
        types = _types(stored)
        partial = Partial(self._groups.input.change, self.root, tuple(types.items()))
        touched = Scan(TOUCHED, tuple(partial.schema.items()), Moment.AFTER)
        old = Scan(STORED, tuple(types.items()), Moment.BEFORE)
        if not matched:
            return self._fold(touched, old)
        pairs = Match(touched, old, self.root.key).schema
        return Fold(Scan(TOUCHED, tuple(pairs.items())), self.root, old.columns)

    def regroup(self, *, stored: Columns) -> Step:
        """What `Regroup` yields for the groups whose keys are in `TOUCHED`."""
        types = _types(stored)
        keys = tuple((key, self._groups.schema[key]) for key in self._groups.keys)
        touched = Scan(TOUCHED, keys, Moment.AFTER)
        return self._regroup(touched, Scan(STORED, tuple(types.items()), Moment.BEFORE), types)

    def _fold(self, touched: Step, old: Scan) -> Fold:
        on = tuple((column(name), column(key)) for name, key in self.root.key)
        rows = old.only(touched, on) if on else old
        return Fold(Match(touched, rows, self.root.key), self.root, old.columns)

    @property
    def _groups(self) -> Aggregate:
        assert self.root.groups is not None
        return self.root.groups

    def _regroup(self, touched: Step, old: Scan, types: Mapping[str, exp.DataType]) -> Regroup:
        groups = self._groups
        same = tuple((column(key), column(key)) for key in groups.keys)
        rows = groups.input.after
        measures = (*groups.measures, *self.root.hidden_states)
        now: Operator = (
            Aggregate(rows.only(touched, same), groups.keys, measures)
            if same
            # The one group has a row even over no rows: it is the row that must not come if
            # nothing was touched.
            else Aggregate(rows, (), measures).only(touched, ())
        )
        if self.root.having is not None:
            now = Filter(now, self.root.having)
        hidden = [(name, column(key)) for name, key in self.root.hidden_keys]
        hidden += [(name, column(name)) for name, _ in self.root.hidden_states]
        now = cast(Project(now, (*self.root.outputs, *hidden)), types)
        on = tuple((column(name), column(key)) for name, key in self.root.key)
        return Regroup(now, old.only(touched, on), self.root)

    def change_sql(self, dialect: str = DIALECT) -> str:
        """The change when every source moved, for a person to read, after the changes of the
        intermediate tables.

        The rows of a recursion by UNION stand under its name.
        """
        own = render(named(self._shown), dialect=dialect)
        below = (f"-- {each.called}\n{each.change_sql(dialect)}" for each in self.intermediates)
        return "\n\n".join([*below, f"-- {self.called}\n{own}" if self.intermediates else own])

    def explain(self) -> str:
        """The query and its change as indented trees, one line per operator.

        Of the query, each operator says its law and what its change reads. Before it stand the
        intermediate tables that it is maintained over.
        """
        query, change = outline(self.view, laws=True), outline(self._shown)
        own = f"{self.called}; {self.law}\n{query}\n\nChange\n{change}"
        return "\n\n".join([*(each.explain() for each in self.intermediates), own])

    @property
    def operators(self) -> tuple[OperatorLine, ...]:
        """Those of the query, each with the law that serves it and what its change reads."""
        return tuple(lines(self.view, laws=True))

    @property
    def called(self) -> str:
        """The query, or which intermediate table."""
        return f"Intermediate table {self.name}" if self.name else "Query"

    @cached_property
    def _shown(self) -> Step:
        """The change when every source moved, of a table that need not be there."""
        types = {name: _named(type_) for name, type_ in self.schema.items()}
        return self.change(stored=types | dict.fromkeys(self.hidden, "bigint"))

    def lineage(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """For each output column, the (source, column) pairs that its value is computed from."""
        return lineage_of(self.view)

    @property
    def law(self) -> str:
        """How the change enters the table, in a line."""
        return {
            Entry.BAG: "bag: rows that came are added, rows that went are taken away",
            Entry.FOLD: "fold: what the change adds to each group is added to the stored group",
            Entry.REGROUP: "regroup: the touched groups are computed again",
        }[self.entry]


def _scans(root: Step) -> Iterator[Scan]:
    """The sources that a tree reads, in the order in which it mentions them first."""
    seen: set[int] = set()
    todo = [root]
    while todo:
        step = todo.pop()
        if id(step) in seen:
            continue
        seen.add(id(step))
        if isinstance(step, Scan):
            yield step
        todo += reversed(step.inputs)


def _types(stored: Columns) -> dict[str, exp.DataType]:
    return {name: type_from(type_) for name, type_ in stored.items()}


def _named(type_: exp.DataType) -> str:
    return "string" if type_.is_type(exp.DataType.Type.UNKNOWN) else type_text(type_)
