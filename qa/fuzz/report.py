"""A failure as a case of tests/compiler/cases, and the summary of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rich.table import Table

from compiler.database import Rows
from qa.fuzz.changes import change_script, script
from qa.fuzz.outcome import Outcome, Trial, Verdict
from qa.fuzz.schema import OWN_TABLES
from qa.fuzz.switches import CONSTRUCTS, OF_SPARK
from qa.fuzz.tree import constructs_of


def as_case(title: str, trial: Trial, expected: list[Rows] | None, tables: tuple[str, ...]) -> str:
    """The trial in the words of tests/compiler/cases/*.sql.

    A case has one window; what windows come before the last is written as comments.
    """
    states = trial.story.states(tables)
    lines = [f"--- case: {title}"]
    for table in tables:
        if table in OWN_TABLES:
            columns = ", ".join(f"{name} {type_}" for name, type_ in OWN_TABLES[table].items())
            lines.append(f"-- needs in tables.sql: CREATE TABLE {table} ({columns});")
    lines += [f"{trial.text};", "--- before", *script(states[0]), "--- change"]
    for i, window in enumerate(trial.story.windows):
        if len(trial.story.windows) > 1:
            lines.append(f"-- window {i + 1}")
        if window.gross:
            lines.append("-- the change mentions every row, netted it may not fail")
        lines += change_script(states[i], states[i + 1])
    lines.append("--- delta")
    if expected is not None:
        change = {r: expected[-1][r] - expected[0][r] for r in expected[-1] | expected[0]}
        lines += [
            f"-- {weight:+d} | {' | '.join(row)}"
            for row, weight in sorted(change.items())
            if weight
        ]
    return "\n".join(lines)


@dataclass
class Tally:
    """What came of all queries, by construct."""

    engine: str
    verdicts: Counter[Verdict] = field(default_factory=Counter[Verdict])
    by_construct: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    refusals: Counter[str] = field(default_factory=Counter[str])
    not_here: Counter[str] = field(default_factory=Counter[str])

    def add(self, trial: Trial, outcome: Outcome) -> None:
        self.verdicts[outcome.verdict] += 1
        for construct in constructs_of(trial.query) | {"(any)"}:
            counted = self.by_construct.setdefault(construct, Counter())
            counted["generated"] += 1
            counted[outcome.verdict] += 1
            counted["changed"] += outcome.changed and outcome.verdict is Verdict.COMPARED
        if outcome.verdict is Verdict.REFUSED:
            self.refusals[outcome.detail.replace("\n", " ")[:90]] += 1
        if outcome.verdict is Verdict.NOT_HERE:
            self.not_here[_gist(outcome.detail)] += 1

    def line(self) -> str:
        return ", ".join(f"{n} {word}" for word, n in sorted(self.verdicts.items()))

    def table(self) -> Table:
        words = ["generated", *Verdict, "changed"]
        shown = Table(title=f"Random queries on {self.engine}")
        shown.add_column("construct")
        for word in words:
            shown.add_column(str(word), justify="right")
        for construct in ("(any)", *CONSTRUCTS, *OF_SPARK):
            counted = self.by_construct.get(construct, Counter[str]())
            shown.add_row(construct, *(str(counted[word]) for word in words))
        return shown

    def reasons(self, most: int = 12) -> list[str]:
        lines = [f"refused {n}: {what}" for what, n in self.refusals.most_common(most)]
        lines += [f"not on {self.engine} {n}: {w}" for w, n in self.not_here.most_common(most)]
        return lines


def _gist(detail: str) -> str:
    """An error without what differs from query to query."""
    return detail.split('"')[0].split(" at character")[0][:110]
