"""What came of one random query."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from compiler.database import Rows
from fuzz.changes import Story
from fuzz.tree import Query


class Verdict(enum.StrEnum):
    REFUSED = "refused"
    """The compiler said no, with a reason."""
    NOT_HERE = "not here"
    """The engine cannot run the user's own text."""
    COMPARED = "compared"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    detail: str = ""
    changed: bool = False
    """The result had other rows after some window."""


@dataclass(frozen=True)
class Trial:
    """A query and what happens to its sources."""

    query: Query
    story: Story
    text: str

    @classmethod
    def of(cls, query: Query, story: Story) -> Trial:
        return cls(query, story, query.sql())


class Engine(Protocol):
    """Where stream tables are refreshed, and compared with their queries."""

    name: str
    batch: int
    """How many trials share one story."""

    def run(self, trial: Trial) -> Outcome: ...

    def run_many(self, trials: list[Trial]) -> list[Outcome]: ...

    def expected(self, trial: Trial) -> list[Rows]: ...

    def shrunk(self, trial: Trial, failure: Outcome) -> Trial: ...
