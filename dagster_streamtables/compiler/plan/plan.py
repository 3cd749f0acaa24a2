"""`Plan`, the compiler's result: one query, and how its table follows its sources."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from sqlglot import exp

from dagster_streamtables.compiler.analyze.bind import Columns
from dagster_streamtables.compiler.analyze.normalize import has_field_names
from dagster_streamtables.compiler.analyze.ordered_aggregates import has_other_ties
from dagster_streamtables.compiler.analyze.tie_numbers import NUMBER
from dagster_streamtables.compiler.lower.lowering import has_parentheses_below
from dagster_streamtables.compiler.maintain.strategy import AnyStrategy, StrategyKind, strategy_of
from dagster_streamtables.compiler.operators.algebra import Operator, Schema, Step
from dagster_streamtables.compiler.operators.keyed import Aggregate
from dagster_streamtables.compiler.operators.leaves import Scan, scans_of
from dagster_streamtables.compiler.operators.linear import Project
from dagster_streamtables.compiler.operators.step_trees import render
from dagster_streamtables.compiler.plan.plan_description import (
    OperatorLine,
    columns_of_time,
    lineage_of,
    lines,
    outline,
)
from dagster_streamtables.compiler.rewrite.fixpoint import name_closures
from dagster_streamtables.compiler.rewrite.intermediate_groups import split
from dagster_streamtables.compiler.rewrite.simplify import simplify
from dagster_streamtables.compiler.scope.scopes import has_wide_natural_join
from dagster_streamtables.compiler.text.current_time import asks_for_time
from dagster_streamtables.compiler.text.group_by import in_own_words
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, type_from, type_text
from dagster_streamtables.compiler.text.table_mentions import (
    definitions_with_column_aliases,
    tables_before_pivot,
)


@dataclass(frozen=True)
class Plan:
    """The rows of a table and their change: of a query, or of an intermediate table.

    `view` reads the sources after the change and returns the whole table; `view.delta()` reads them
    before, after, and in between, and returns the change of the table.
    """

    view: Operator
    strategy: AnyStrategy
    """How the change is applied to the table."""
    name: str = ""
    """The name of an intermediate table; empty for the query itself."""
    intermediates: tuple[Plan, ...] = ()
    """The plans of the intermediate tables that `view` reads, each after those that it reads."""
    whole: Plan | None = None
    """The same plan without intermediate tables; None if it has none."""

    @cached_property
    def is_time_dependent(self) -> bool:
        return False

    @property
    def schema(self) -> Schema:
        """The visible columns of the table, with the types that can be inferred."""
        return self.view.schema

    @property
    def sources(self) -> tuple[str, ...]:
        """The tables that the query reads, without intermediate ones."""
        return self.reads

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The sources that `view` reads, including intermediate tables."""
        return tuple(dict.fromkeys(scan.table for scan in scans_of(self.view)))

    def columns_of(self, source: str) -> frozenset[str]:
        """The columns of a source that the query uses, in lower case."""
        plans = (self, *self.intermediates)
        scans = (scan for plan in plans for scan in scans_of(plan.view) if scan.table == source)
        return frozenset(name.lower() for scan in scans for name in scan.schema)

    @cached_property
    def with_intermediates(self) -> Self:
        """The same table, maintained over intermediate tables; see `intermediate_groups`."""
        view, tables = (self.view, ()) if self.is_time_dependent else split(self.view)
        if not tables:
            return self
        plans = (Plan(t.view, strategy_of(t.view, exact=True), t.name) for t in tables)
        return replace(
            self, view=view, strategy=strategy_of(view), intermediates=tuple(plans), whole=self
        )

    @property
    def strategy_kind(self) -> StrategyKind:
        return self.strategy.kind

    @property
    def key(self) -> tuple[str, ...] | None:
        """The stored columns that identify a row; empty for the one row of a query without
        GROUP BY, None if rows may have copies."""
        return self.strategy.key

    @property
    def internal_columns(self) -> tuple[str, ...]:
        """The stored columns that readers do not see."""
        return self.strategy.internal_columns

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """All columns of the stored table, in the order of `full_text`."""
        return (*self.schema, *self.internal_columns)

    def change(self, *, stored: Columns, unmoved: Set[str] = frozenset()) -> Step:
        """The change of the table in a refresh, if the sources in `unmoved` have not changed."""
        return simplify(self.strategy.change(types_of(stored)), unmoved=unmoved)

    def change_sql(self, dialect: str = DIALECT) -> str:
        """SQL for people to read: the changes of the intermediate tables, then of the query, if
        every source has changed. A recursion by UNION appears by name only."""
        own = render(name_closures(self._complete_change), dialect=dialect)
        below = (f"-- {each.heading}\n{each.change_sql(dialect)}" for each in self.intermediates)
        return "\n\n".join([*below, f"-- {self.heading}\n{own}" if self.intermediates else own])

    def explain(self) -> str:
        """The intermediate tables, the query and its change as indented trees, one line per
        operator. The operators of the query show their law and what their change reads."""
        query, change = outline(self.view, laws=True), outline(self._complete_change)
        own = f"{self.heading}; {self.law}\n{query}\n\nChange\n{change}"
        return "\n\n".join([*(each.explain() for each in self.intermediates), own])

    @property
    def operators(self) -> tuple[OperatorLine, ...]:
        """The operators of the query, each with its law and what its change reads."""
        return tuple(lines(self.view, laws=True))

    @property
    def heading(self) -> str:
        return f"Intermediate table {self.name}" if self.name else "Query"

    @cached_property
    def _complete_change(self) -> Step:
        """The change if every source has changed; the stored table need not exist."""
        types = {name: type_text(type_) for name, type_ in self.schema.items()}
        return self.change(stored=types | dict.fromkeys(self.internal_columns, "bigint"))

    def lineage(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """Output column → the (source, column) pairs that its value is computed from."""
        return lineage_of(self.view)

    @cached_property
    def time_columns(self) -> tuple[str, ...]:
        """The columns that hold the time of the refresh: they change in all rows as it passes."""
        return columns_of_time(self.view)

    @property
    def law(self) -> str:
        """How the change is applied to the table, on one line."""
        return self.strategy.law


@dataclass(frozen=True)
class QueryPlan(Plan):
    text: Text = field(kw_only=True)
    """The user's text, with a unique answer; see `make_deterministic`."""
    counted: tuple[str, ...] = field(default=(), kw_only=True)
    """The columns of its sources, in order, if its meaning depends on all of them, read or not: a
    key of AGGREGATE is the number of one."""
    ties: tuple[str, ...] = field(default=(), kw_only=True)
    """Ties that windows below others leave open; see `tie_numbers`."""
    quoted: tuple[str, ...] = field(default=(), kw_only=True)
    """Texts that its author may have meant as names; see `texts_like_columns`."""

    @property
    def sources(self) -> tuple[str, ...]:
        return self.text.sources

    def explain(self) -> str:
        timed = (", ".join(self.time_columns), _KEEP_TIME) if self.time_columns else ()
        parts = {
            "Represented differently": self.text.notes,
            "Texts in double quotes that columns are called like": self.quoted,
            "Ties that the window around may take in another order": self.ties,
            "All rows change as time passes, by the columns": timed,
        }
        notes = (f"\n\n{what}\n  " + "\n  ".join(each) for what, each in parts.items() if each)
        return super().explain() + "".join(notes)

    @property
    def newer_rules(self) -> tuple[str, ...]:
        """Rules that older versions did not have, and by which they would have other rows."""
        rules = {
            "names of fields": has_field_names(self.text.tree),
            "numbers of copies": NUMBER in self.text.sql,
            "parentheses below": has_parentheses_below(self.text.tree),
            "names of definitions": any(definitions_with_column_aliases(self.text.tree)),
            "names of NATURAL": has_wide_natural_join(self.text.tree),
            "values of ties": has_other_ties(self.text.tree),
        }
        return tuple(rule for rule, holds in rules.items() if holds)

    @property
    def has_stars_below(self) -> bool:
        every = self.text.tree.find_all(exp.Star)
        stars = (each for each in every if not isinstance(each.parent, exp.Count))
        selects = (each.find_ancestor(exp.Select) for each in stars)
        return any(select is not None and select.parent is not None for select in selects)

    @cached_property
    def is_time_dependent(self) -> bool:
        return asks_for_time(self.text)

    @property
    def is_table(self) -> bool:
        """Whether its rows are those of one source, each column unchanged and under its name."""
        view, names = self.view, {name: name for name in self.schema}
        while isinstance(view, Project):
            outputs = dict(view.outputs)
            below = {name: outputs[inner] for name, inner in names.items()}
            # Projections below the last one may have names that are unique in the query.
            names = {name: e.name for name, e in below.items() if isinstance(e, exp.Column)}
            if len(names) < len(below):
                return False
            view = view.input
        # A scan has the names of its columns in lower case.
        return isinstance(view, Scan) and all(n.lower() == inner for n, inner in names.items())

    @cached_property
    def full_text(self) -> Text:
        """The user's own text, with the hidden columns added."""
        if not self.internal_columns:
            return self.text
        if isinstance(self.view, Aggregate):
            [name] = self.internal_columns
            return self.text.with_copy_counts(name)
        aliases = self.text.aliases - tables_before_pivot(self.text.tree)
        hidden = self.strategy.internal_sql(aliases)
        return self.text.with_columns(in_own_words(hidden, self.text))


_KEEP_TIME = (
    "For the time at which a row last changed, leave the column out of the query and set changed_at"
)


def types_of(stored: Columns) -> dict[str, exp.DataType]:
    return {name: type_from(type_) for name, type_ in stored.items()}
