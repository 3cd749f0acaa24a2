"""`Work`: one refresh of a replication under way, and what it has done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.apply.contract import Applied, Choices
from dagster_streamtables.replication.lifecycle.connect import require_slot
from dagster_streamtables.replication.lifecycle.hold import Hold
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.report import TableRefresh
from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.lifecycle.targets import Targets
from dagster_streamtables.replication.lifecycle.trouble import troubled
from dagster_streamtables.replication.model.publisher import Publisher
from dagster_streamtables.replication.target.target import Target
from dagster_streamtables.runtime.errors.slots import LostSlot

Step = Callable[[str], None]
"""Told before each step that a crash could separate from the one before: see `Work.step`."""


@dataclass
class Work:
    hold: Hold
    publisher: Publisher
    targets: Targets
    overlaps: Callable[[Collection[str]], list[str]]
    """Published tables → which other replications write to a target of theirs, in sentences."""
    require_no_circle: Callable[[Collection[str]], None]
    """Refuse published tables whose rows would come back to where they come from."""
    step: Step = lambda step: None
    """Called between two steps, with the name of the one that comes."""
    done: dict[str, TableRefresh] = field(default_factory=dict[str, TableRefresh])
    """By the name of the published table."""
    skipped: list[str] = field(default_factory=list[str])
    troubles: dict[str, StreamTablesError] = field(default_factory=dict[str, StreamTablesError])
    """By published table, why it cannot go on: it is left alone for the rest of the refresh."""

    @property
    def state(self) -> State:
        return self.hold.state

    @property
    def replication(self) -> Replication:
        return self.state.replication

    @property
    def slot(self) -> str:
        return require_slot(self.state)

    @property
    def after(self) -> dict[str, int]:
        """The position of each table that can go on. Those that are stopped are tried again."""
        return {n: at for n, at in self.state.held.items() if n not in self.troubles}

    def stop(self, table: str, error: StreamTablesError) -> None:
        """Let a table stop, and the others go on."""
        before = self.state.tables[table]
        after, told = troubled(before, error, self.replication, table)
        self.troubles[table] = told
        self.hold.save(lambda state: replace(state, tables={**state.tables, table: after}))
        if after.state is TableState.LOST and before.state is not TableState.LOST:
            with suppress(LostSlot):
                self.publisher.release(self.slot, [table])

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
        self.hold.save(lambda state: state.with_table(table, **changes))

    def count(self, table: str, applied: Applied, *, copied: bool = False) -> None:
        """Add to the report, and to the conflicts that are stored with the next change."""
        before = self.report(table)
        after = before.then_copied(applied) if copied else before.then_applied(applied)
        self.done[table] = after
        if applied.conflicts:
            self.hold.save(
                lambda state: replace(
                    state, conflicts=dict(Counter(state.conflicts) + applied.conflicts)
                )
            )

    def report(self, table: str) -> TableRefresh:
        known = self.done.get(table)
        return known or TableRefresh(table, position=self.state.tables[table].position)
