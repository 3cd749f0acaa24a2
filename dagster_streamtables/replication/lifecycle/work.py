"""`Work`: one refresh of a replication under way, and what it has done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.apply.applied import Applied
from dagster_streamtables.replication.apply.choices import Choices
from dagster_streamtables.replication.lifecycle.connect import require_slot
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.report import TableRefresh
from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.replication.lifecycle.targets import Targets
from dagster_streamtables.replication.lifecycle.turn import Turn
from dagster_streamtables.replication.model.publisher import Publisher
from dagster_streamtables.replication.target.target import Target

Step = Callable[[str], None]
"""Told before each step that a crash could separate from the one before: see `Work.step`."""


@dataclass
class Work:
    turn: Turn
    publisher: Publisher
    targets: Targets
    overlaps: Callable[[], list[str]]
    """Which other replications write to a target, each in a sentence."""
    require_no_circle: Callable[[Collection[str]], None]
    """Refuse published tables whose rows would come back to where they come from."""
    step: Step = lambda step: None
    """Called between two steps, with the name of the one that comes."""
    done: dict[str, TableRefresh] = field(default_factory=dict[str, TableRefresh])
    """By the name of the published table."""
    skipped: list[str] = field(default_factory=list[str])
    failed: list[StreamTablesError] = field(default_factory=list[StreamTablesError])
    """Copies that failed, which stops nothing but their tables."""

    @property
    def state(self) -> State:
        return self.turn.state

    @property
    def replication(self) -> Replication:
        return self.state.replication

    @property
    def slot(self) -> str:
        return require_slot(self.state)

    def target(self, table: str) -> Target:
        """Of a published table."""
        return self.targets.target(self.state.tables[table].target)

    def choices(self, table: str) -> Choices:
        chosen = self.replication
        return Choices(
            on_conflict=chosen.on_conflict,
            add_columns=chosen.add_columns,
            record_idle=False,
            commit_by_commit=chosen.commit_by_commit,
            skip={each.position for each in self.state.skips if each.is_about(table)},
        )

    def set(self, table: str, **changes: Any) -> None:
        """Store what is known of a table."""
        self.turn.save(lambda state: state.with_table(table, **changes))

    def count(self, table: str, applied: Applied, *, copied: bool = False) -> None:
        """Add to the report, and to the conflicts that are stored with the next change."""
        before = self.report(table)
        after = before.then_copied(applied) if copied else before.then_applied(applied)
        self.done[table] = after
        if applied.conflicts:
            self.turn.save(
                lambda state: replace(
                    state, conflicts=dict(Counter(state.conflicts) + applied.conflicts)
                )
            )

    def report(self, table: str) -> TableRefresh:
        known = self.done.get(table)
        return known or TableRefresh(table, position=self.state.tables[table].position)
