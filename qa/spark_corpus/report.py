"""The figures of a run, and each query as a line of JSON."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from qa.spark_corpus.files import FileReport
from qa.spark_corpus.outcome import ASKED, DEFECTS, Outcome, Result

_REASONS = 60


@dataclass
class Tally:
    files: int = 0
    statements: int = 0
    without_tables: int = 0
    seconds: float = 0.0
    outcomes: Counter[Outcome] = field(default_factory=Counter[Outcome])
    reasons: Counter[tuple[Outcome, str]] = field(default_factory=Counter[tuple[Outcome, str]])
    windows: int = 0
    changed: int = 0
    unfinished: list[str] = field(default_factory=list[str])
    """Files that a defect of the harness ended early."""

    def add(self, report: FileReport) -> None:
        self.files += 1
        self.statements += report.statements
        self.without_tables += report.without_tables
        self.unfinished += [report.file] if report.problem else []
        for result in report.results:
            self.count(result)

    @classmethod
    def of(cls, report: FileReport) -> Tally:
        made = cls()
        made.add(report)
        return made

    def count(self, result: Result) -> None:
        self.outcomes[result.outcome] += 1
        self.windows += result.windows
        self.changed += result.changed
        if result.reason:
            self.reasons[result.outcome, result.reason] += 1

    @property
    def asked(self) -> int:
        return sum(self.outcomes[each] for each in ASKED)

    @property
    def has_defects(self) -> bool:
        return bool(self.unfinished) or any(self.outcomes[each] for each in DEFECTS)

    def table(self) -> Table:
        taken = self.outcomes.total()
        made = Table(title=f"{taken} queries of {self.files} files in {self.seconds / 60:.0f} min")
        for heading in ("outcome", "queries", "of those that are asked"):
            made.add_column(heading, justify="left" if heading == "outcome" else "right")
        for outcome in (each for each in Outcome if each in ASKED or self.outcomes[each]):
            share = self.outcomes[outcome] / self.asked if self.asked else 0.0
            shown = f"{share:.1%}" if outcome in ASKED else ""
            made.add_row(outcome, str(self.outcomes[outcome]), shown)
        return made

    def lines(self) -> Iterator[str]:
        """What the table does not say."""
        yield (
            f"{self.statements} statements, {self.without_tables} queries without tables; "
            f"{self.windows} windows compared; {self.changed} results changed in a window"
        )
        if self.unfinished:
            yield f"ended early by a defect of the harness: {', '.join(self.unfinished)}"
        for (outcome, reason), count in self.reasons.most_common(_REASONS):
            if outcome is not Outcome.EXACT:
                yield f"{count:5} {outcome}: {reason}"


def json_lines(results: Iterable[Result]) -> Iterator[str]:
    """Each query as an object.

    >>> print(*json_lines([Result("a.sql", 3, "SELECT 1 AS a", Outcome.EXACT)]))
    {"file": "a.sql", "number": 3, "text": "SELECT 1 AS a", "outcome": "exact", "reason": "", \
"windows": 0, "changed": false, "detail": [], "seconds": 0.0}
    """
    for each in results:
        yield json.dumps(asdict(each), ensure_ascii=False)


def tell(reports: Iterable[FileReport], files: int, path: Path | None) -> Tally:
    """Print each report as it comes, and the figures of all; write each query to the path."""
    console = Console(soft_wrap=True, highlight=False)
    tally, begin = Tally(), time.monotonic()
    lines = path.open("w") if path else None
    for done in reports:
        tally.add(done)
        tally.seconds = time.monotonic() - begin
        counts = ", ".join(f"{n} {kind}" for kind, n in Tally.of(done).outcomes.items())
        console.print(f"{tally.files}/{files} {done.file}: {counts or 'no queries'}", markup=False)
        console.print(done.problem, markup=False, end="")
        sys.stdout.flush()
        if lines is not None:
            lines.writelines(f"{line}\n" for line in json_lines(done.results))
            lines.flush()
    console.print(tally.table())
    for line in tally.lines():
        console.print(line, markup=False)
    return tally
