"""`Explanation`: how a stream table is maintained, or why its change cannot be computed."""

from __future__ import annotations

from dataclasses import dataclass

from dagster_streamtables.compiler import OperatorLine, Plan
from dagster_streamtables.errors import QueryPosition, UnsupportedQuery


@dataclass(frozen=True)
class ExplainedQuery:
    """One maintained query: the table's own, or that of an intermediate table."""

    name: str
    """The name of the intermediate table; empty for the table's own query."""
    law: str
    """How its change enters the stored rows."""
    reads: tuple[str, ...]
    """Sources and intermediate tables."""
    operators: tuple[OperatorLine, ...]
    """Each with its law, and what its change reads."""


@dataclass(frozen=True)
class Explanation:
    """What is known of a stream table without running it."""

    table: str
    mode: str
    sources: tuple[str, ...]
    plan: Plan | None = None
    """None if the query is refused."""
    refusal: UnsupportedQuery | None = None
    """Why its change cannot be computed, with the place in its SQL."""

    @property
    def is_differential(self) -> bool:
        """Whether the table follows the change of its sources."""
        return self.plan is not None

    @property
    def queries(self) -> tuple[ExplainedQuery, ...]:
        """The queries of the intermediate tables first, each after those it reads."""
        plans = (*self.plan.intermediates, self.plan) if self.plan is not None else ()
        return tuple(
            ExplainedQuery(each.name, each.law, each.reads, each.operators) for each in plans
        )

    @property
    def change_sql(self) -> str:
        """The SQL of the change if every source changed; empty if it is not maintained."""
        return self.plan.change_sql() if self.plan is not None else ""

    @property
    def place(self) -> QueryPosition | None:
        """The place in the SQL, or in its file, of what is refused."""
        return self.refusal.place if self.refusal is not None else None

    def __str__(self) -> str:
        return self.plan.explain() if self.plan is not None else str(self.refusal)
