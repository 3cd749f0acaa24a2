"""A stream table refreshed and compared on DuckDB: milliseconds a query."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
from sqlglot import exp
from sqlglot.errors import SqlglotError

from compiler.database import Prepared, Rows, Stored, over, spark_names
from dagster_streamtables.compiler import Text, read
from dagster_streamtables.compiler.text.current_time import with_clock
from dagster_streamtables.errors import InvalidDefinition
from named_rows import NamedRows
from qa.fuzz.changes import Bag, Story, change_rows
from qa.fuzz.outcome import Outcome, Trial, Verdict, compiled, said
from qa.fuzz.schema import FuzzDatabase
from qa.fuzz.shrink import same_failure, shrink


class NotHere(Exception):
    """DuckDB cannot run the user's own text."""


@dataclass(frozen=True)
class _Answers:
    """The rows of the user's own text, before and after each window."""

    names: list[str]
    """The outputs as DuckDB names them, in their order."""
    rows: list[Rows]

    def by_name(self, names: tuple[str, ...]) -> list[NamedRows]:
        """By the names of the plan."""
        there = spark_names(self.names, names)
        return [NamedRows.of(there, rows) for rows in self.rows]


def _visible(stored: Stored) -> NamedRows:
    return NamedRows.of(stored.plan.schema, stored.visible)


class DuckEngine:
    name = "DuckDB"
    batch = 1

    def __init__(self) -> None:
        self.database = FuzzDatabase()

    def run(self, trial: Trial) -> Outcome:
        try:
            text = read(trial.text)
        except InvalidDefinition as error:
            return Outcome(Verdict.REFUSED, f"cannot be read: {error.what}")
        plan = compiled(text)
        if isinstance(plan, Outcome) and plan.verdict is Verdict.REFUSED:
            return plan
        try:
            expected = self._expected(text, trial.story)
        except NotHere as error:
            return Outcome(Verdict.NOT_HERE, str(error))
        changed = any(rows != expected.rows[0] for rows in expected.rows)
        if isinstance(plan, Outcome):
            return plan
        try:
            wrong = self._follow(Prepared(plan), trial.story, expected)
        except Exception as error:
            self._forget()
            wrong = said(error)
        if wrong and _has_total(text):
            return Outcome(Verdict.NOT_HERE, "over no rows, DuckDB gives the set () a row")
        if wrong and _counts_in_pivot(text):
            return Outcome(Verdict.NOT_HERE, "where a value of PIVOT has no rows, DuckDB counts 0")
        if "cannot be referenced before it is defined" in wrong:
            # Spark makes the rows of an EXPLODE before it looks at windows, DuckDB after.
            return Outcome(Verdict.NOT_HERE, "a window ordered by what EXPLODE makes")
        return Outcome(Verdict.FAILED if wrong else Verdict.COMPARED, wrong, changed)

    def run_many(self, trials: list[Trial]) -> list[Outcome]:
        return [self.run(trial) for trial in trials]

    def shrunk(self, trial: Trial, failure: Outcome) -> Trial:
        return shrink(trial, same_failure(self, failure), seconds=45)

    def expected(self, trial: Trial) -> list[Rows]:
        """The rows of the user's own text, before and after each window."""
        return self._expected(read(trial.text), trial.story).rows

    def _expected(self, text: Text, story: Story) -> _Answers:
        try:
            sql = over(with_clock(text), "after")
            with self.database.fresh():
                found = _Answers(self.database.outputs(sql), [])
                for state in story.states(text.sources):
                    self._hold(state, "after")
                    found.rows.append(self.database.rows(sql))
                return found
        except (InvalidDefinition, SqlglotError, duckdb.Error) as error:
            # The text of a pipe for DuckDB comes from the binder, whose refusal may be the failure.
            self._forget()
            raise NotHere(said(error)) from None

    def _follow(self, prepared: Prepared, story: Story, answers: _Answers) -> str:
        """What is wrong after some window; nothing, if nothing is."""
        tables = prepared.plan.sources
        states = story.states(tables)
        expected = answers.by_name(tuple(prepared.plan.schema))
        with self.database.fresh():
            self.database.stop_time()
            self._hold(states[0], "before")
            stored = Stored(self.database, prepared)
            if wrong := _visible(stored).difference(expected[0]):
                return f"full refresh: {wrong}"
            for i, window in enumerate(story.windows):
                self._hold(states[i], "before")
                self._hold(states[i + 1], "after")
                for table in tables:
                    self.database.hold(f"{table}@change", change_rows(window, table))
                moved = {row.table for row in window.rows}
                stored.refresh(unmoved=frozenset(set(tables) - moved if window.told else ()))
                if wrong := _visible(stored).difference(expected[i + 1]):
                    return f"window {i + 1}: {wrong}"
                if wrong := stored.difference():
                    return f"window {i + 1}, hidden: {wrong}"
        return ""

    def _hold(self, state: dict[str, Bag], moment: str) -> None:
        for table, bag in state.items():
            self.database.hold(f"{table}@{moment}", list(bag.elements()))

    def _forget(self) -> None:
        """An error inside a transaction may leave it open."""
        try:
            self.database.run("ROLLBACK")
        except duckdb.Error:
            return


def _counts_in_pivot(text: Text) -> bool:
    pivots = text.tree.find_all(exp.Pivot)
    return any(each.find(exp.Count) for pivot in pivots for each in pivot.expressions)


def _has_total(text: Text) -> bool:
    """Whether rows are grouped by no key in one of several grouping sets."""
    sets = text.tree.find_all(exp.GroupingSets)
    empty = any(
        isinstance(part, exp.Tuple) and not part.expressions for s in sets for part in s.walk()
    )
    return empty or text.tree.find(exp.Cube, exp.Rollup) is not None
