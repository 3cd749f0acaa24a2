"""What some histories covered."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

from rich.table import Table

from dagster_streamtables import Action, Refresh
from qa.histories.kinds import CREATIONS, KINDS
from qa.histories.roots import QUERIES, Root


@dataclass
class Tally:
    histories: int = 0
    compared: int = 0
    """Stream tables compared with their queries."""
    done: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    why: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    actions: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    reasons: Counter[str] = field(default_factory=Counter[str])
    captures: Counter[str] = field(default_factory=Counter[str])
    writers: Counter[str] = field(default_factory=Counter[str])
    failures: Counter[str] = field(default_factory=Counter[str])
    seconds: Counter[str] = field(default_factory=Counter[str])

    def add(self, other: Tally) -> None:
        """Count what another one counted."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            setattr(self, each.name, mine + theirs)

    def step(self, kind: str, refused: str, seconds: float) -> None:
        (self.refused if refused else self.done)[kind] += 1
        if refused:
            self.why[kind, _short(refused)] += 1
        self.seconds["step"] += seconds  # type: ignore[assignment]

    def refresh(self, root: Root, done: Refresh) -> None:
        self.actions[root.kind, done.action] += 1
        self.reasons[f"{done.action}: {_short(done.reason)}"] += 1
        self.captures.update(w.capture for w in done.windows.values())
        if done.writer:
            self.writers[done.writer] += 1

    def failed(self, root: Root, error: str) -> None:
        """A refresh that failed as the query itself does."""
        self.actions[root.kind, "failed"] += 1
        self.failures[_short(error)] += 1

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[what] += time.monotonic() - began  # type: ignore[assignment]

    @property
    def steps(self) -> int:
        return self.done.total() + self.refused.total()

    def line(self) -> str:
        return (
            f"{self.histories} histories, {self.steps} steps ({self.refused.total()} refused), "
            f"{self.compared} comparisons"
        )

    def tables(self) -> list[Table]:
        return [self._by_step(), self._by_root()]

    def _by_step(self) -> Table:
        shown = Table("step", "done", "refused", "mostly because")
        for kind in (*CREATIONS, *KINDS):
            whys = Counter({why: n for (k, why), n in self.why.items() if k == kind})
            [(why, _)] = whys.most_common(1) or [("", 0)]
            shown.add_row(kind, str(self.done[kind]), str(self.refused[kind]), why[:70])
        return shown

    def _by_root(self) -> Table:
        words = [*map(str, Action), "failed"]
        shown = Table("root", *words)
        for kind in QUERIES:
            shown.add_row(kind, *(str(self.actions[kind, word]) for word in words))
        return shown

    def lines(self) -> list[str]:
        spent = ", ".join(f"{what} {s:.0f} s" for what, s in self.seconds.most_common())
        found = [
            f"seconds: {spent}",
            f"captures: {dict(self.captures)}",
            f"writers: {dict(self.writers)}",
        ]
        found += [f"{n:6} {reason}" for reason, n in self.reasons.most_common(30)]
        found += [f"{n:6} failed as the query does: {e}" for e, n in self.failures.most_common(10)]
        return found


def _short(reason: str) -> str:
    """Without numbers and names."""
    return re.sub(r"\d[\d,.]*", "N", reason)[:110]
