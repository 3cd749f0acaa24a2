"""All windows of a benchmark, and the table of what happened."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from dagster_streamtables import Lake
from qa.tpc.trial import Trial

CONSOLE = Console(soft_wrap=True)


@dataclass(frozen=True)
class Run:
    title: str
    lake: Lake
    trials: Sequence[Trial]
    changes: Sequence[Sequence[Callable[[], None]]]
    """What happens to the sources in each window; after the last one it begins anew."""
    windows: int
    full_every: int
    """A recomputation is measured after so many windows."""
    verbose: bool

    def __call__(self) -> None:
        """Refresh and compare, print, and end the process: 1 if any query was refused or wrong."""
        for trial in self.trials:
            trial.begin(self.lake, twin=self.full_every <= self.windows)
        going = [trial for trial in self.trials if not trial.refused]
        CONSOLE.print(f"{len(going)} of {len(self.trials)} queries are maintained")
        for number in range(1, self.windows + 1):
            self._window(number, going)
        self._report()
        sys.exit(not all(trial.passed for trial in self.trials))

    def _window(self, number: int, going: Sequence[Trial]) -> None:
        changes = self.changes[(number - 1) % len(self.changes)]
        for change in changes:
            change()
        begin = time.perf_counter()
        names = ", ".join(change.__name__ for change in changes)
        CONSOLE.print(f"window {number}: {names}")
        for trial in going:
            line = trial.window(self.lake, number)
            if self.verbose:
                CONSOLE.print(f"  {line}", highlight=False)
            if number % self.full_every == 0:
                trial.in_full(self.lake)
        CONSOLE.print(f"  {time.perf_counter() - begin:.0f} s")

    def _report(self) -> None:
        table = Table(title=f"{self.title}, {self.windows} windows (D: DIFFERENTIAL, N: NO_DATA)")
        for heading in ("query", "entry", "windows", "rows", "DIFFERENTIAL", "FULL", "equal"):
            right = heading in ("rows", "DIFFERENTIAL", "FULL")
            table.add_column(heading, justify="right" if right else "left")
        for trial in self.trials:
            seconds = ["" if median is None else f"{median:.2f} s" for median in trial.medians()]
            rows = "" if trial.rows is None else str(trial.rows)
            equal = "refused" if trial.refused else "no" if trial.unequal else "yes"
            equal = "failed" if "X" in trial.actions else equal
            table.add_row(f"Q{trial.number}", trial.entry, trial.actions, rows, *seconds, equal)
        CONSOLE.print(table)
        still = [f"Q{trial.number}" for trial in self.trials if not trial.changed]
        if still:
            CONSOLE.print(f"No row of these ever changed: {', '.join(still)}")
        for trial in self.trials:
            for problem in [*([trial.refused] if trial.refused else []), *trial.problems]:
                CONSOLE.print(f"\nQ{trial.number} {problem}", markup=False, highlight=False)
