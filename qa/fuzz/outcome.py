"""What came of one random query."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from compiler.database import Rows
from dagster_streamtables.compiler import Plan, Text, compile_query
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery
from qa.fuzz.changes import Story
from qa.fuzz.schema import SOURCES
from qa.fuzz.tree import Query


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


def compiled(text: Text | str) -> Plan | Outcome:
    """The plan of a query; without one, a refusal, or what failed if an engine runs the text."""
    try:
        return compile_query(text, SOURCES)
    except UnsupportedQuery as error:
        return Outcome(Verdict.REFUSED, error.what)
    except InvalidDefinition as error:
        return Outcome(Verdict.FAILED, f"called invalid: {error.what}")
    except Exception as error:
        return Outcome(Verdict.FAILED, f"the compiler broke: {said(error)}")


def said(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0][:300]}"


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
