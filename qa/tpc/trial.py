"""One query over all windows: what each refresh did, and whether the table was its query after."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.errors import StreamTablesError


@dataclass
class Trial:
    """A stream table, its twin in mode FULL, and what is known of the two."""

    number: int
    query: str
    entry: str = ""
    actions: str = ""
    """A letter for each window: D, N for NO_DATA, and what must not be: F, R, X for an error."""
    rows: int | None = None
    seconds: list[float] = field(default_factory=list)
    seconds_in_full: list[float] = field(default_factory=list)
    refused: str = ""
    problems: list[str] = field(default_factory=list)
    unequal: int = 0
    changed: bool = False
    """Whether a window inserted or deleted rows."""

    @property
    def passed(self) -> bool:
        return not self.refused and not self.problems

    def begin(self, lake: Lake, *, twin: bool) -> None:
        """Create the table, and its twin; a query that is refused takes no part from then on.

        What the first refresh wrote stays in the table, so the comparison after a window sees it.
        """
        try:
            self.entry = lake.plan(self._table).strategy_kind.value
        except StreamTablesError as error:
            self.refused = str(error)
            return
        try:
            self.rows = lake.refresh(self._table).row_count
            if twin:
                lake.refresh(self._twin)
        except Exception as error:
            self._failed("at the beginning", error)
            self.refused = "its first refresh failed"

    def window(self, lake: Lake, number: int) -> str:
        """Refresh and compare; a table that is wrong is made anew, for the windows to come."""
        when = f"in window {number}"
        try:
            done = lake.refresh(self._table)
            self.actions += done.action[0]
            self.rows = done.row_count
            self.changed |= bool(done.inserted or done.deleted)
            if "compute" in done.phases:
                self.seconds.append(done.seconds)
            if done.action not in (Action.DIFFERENTIAL, Action.NO_DATA):
                self.problems.append(f"{when}: {done.action}, {done.reason}")
            equal = self._compare(lake, when)
            if not equal:
                lake.refresh(self._table, full=True)
        except Exception as error:
            self.actions += "X"
            self._failed(when, error)
            return f"Q{self.number}: FAILED, {error}"
        phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in done.phases.items())
        rows = f"-{done.deleted} +{done.inserted} of {done.row_count} rows"
        verdict = "" if equal else ", NOT EQUAL"
        return f"Q{self.number}: {done.action} {done.seconds:.2f} s ({phases}), {rows}{verdict}"

    def in_full(self, lake: Lake) -> None:
        """Measure the recomputation, on the twin."""
        done = lake.refresh(self._twin)
        if done.action is Action.FULL:
            self.seconds_in_full.append(done.seconds)

    def medians(self) -> tuple[float | None, float | None]:
        """Of the refreshes that computed something: in DIFFERENTIAL, in FULL."""
        ours, full = self.seconds, self.seconds_in_full
        return (
            statistics.median(ours) if ours else None,
            statistics.median(full) if full else None,
        )

    @property
    def _table(self) -> StreamTable:
        # No part of changed rows is so large that it may hide a difference behind a recomputation.
        return StreamTable(
            f"differential.q{self.number:02}", self.query, differential_max_change_ratio=0
        )

    @property
    def _twin(self) -> StreamTable:
        return StreamTable(f"full.q{self.number:02}", self.query, mode=Mode.FULL)

    def _compare(self, lake: Lake, when: str) -> bool:
        found = lake.check(self._table)
        if not found.equal:
            self.unequal += 1
            self.problems.append(
                f"{when}: {found.missing} rows missing, {found.unexpected} unexpected; "
                f"for example {found.sample[:4]}"
            )
        return found.equal

    def _failed(self, when: str, error: Exception) -> None:
        self.problems.append(f"{when}: {type(error).__name__}: {error}")
