"""Where a subscription begins: at a time, or at the position of a token or a slot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from dagster_streamtables.changes.clock.bounds import AsOf, AtLeast, Bound, require_order
from dagster_streamtables.changes.clock.clock import (
    Instant,
    MillisecondClock,
    SubscriptionClock,
    VersionClock,
)
from dagster_streamtables.changes.clock.timeline import VersionTimeline
from dagster_streamtables.changes.position import Position, require_same_subscription
from dagster_streamtables.changes.relation import frontier
from dagster_streamtables.changes.relation.relation import (
    SubscriptionRelation,
    declare_relation,
    relation_of,
    relation_of_table,
    table_of,
)
from dagster_streamtables.errors import HistoryUnavailable
from dagster_streamtables.runtime.errors.slots import of_another_relation
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import with_exact_names
from dagster_streamtables.runtime.observe.slots import Slot


@dataclass(frozen=True)
class StartPoint:
    """What is followed from where."""

    relation: SubscriptionRelation
    """With the columns that it had there."""
    clock: SubscriptionClock
    first: Instant | None
    """None if it is not known yet: the newest one, or one in the future."""
    snapshot: bool
    position: Position | None = None
    """What was read before; None for nothing."""
    lost: str = ""
    """Why what was read before cannot be continued, if it begins anew for that."""


@dataclass(frozen=True)
class SubscriptionRequest:
    """What a caller names, and how it is to be read."""

    lake: Lake
    relation: str | StreamTable
    dialect: str = "spark"
    session_timezone: str = "UTC"
    recompute: bool = False
    clock: Literal["version", "ms"] | None = None

    def start_new(
        self, as_of: AsOf = None, up_to: Bound | None = None, *, snapshot: bool
    ) -> StartPoint:
        """
        Raises:
            RefusedOperation: The end is before the beginning.
            HistoryUnavailable: The beginning can no longer be read.
        """
        relation = self.relation_at(None)
        clock = clock_of(self.lake, relation, self.clock)
        _require_bounds(clock, as_of, up_to)
        first = None if as_of is None else clock.first(as_of)
        if first is not None:
            relation = relation.as_of(first.frontier)
            clock = clock_of(self.lake, relation, self.clock)
        return StartPoint(relation, clock, first, snapshot)

    def resume_at(
        self, position: Position, *, restart: bool, slot: Slot | None = None
    ) -> StartPoint:
        """
        Args:
            position: What was read last.
            restart: Whether to begin anew if its history is lost.
            slot: Whose position it is.

        Raises:
            RefusedOperation: The position is of another relation or clock.
            HistoryUnavailable: It can no longer be read, and is not to be replaced by a snapshot.
        """
        try:
            relation = self.relation_at(position)
            if slot is not None and slot.fingerprint != relation.fingerprint:
                raise of_another_relation(slot.name, slot.relation)
            clock = clock_of(self.lake, relation, self.clock or position.clock)
            require_same_subscription(position, relation, clock.name)
            first = _instant(relation, clock, position)
        except HistoryUnavailable as error:
            if not restart:
                raise
            same = replace(self, clock=self.clock or position.clock)
            return replace(same.start_new(snapshot=True), lost=error.what)
        return StartPoint(relation, clock, first, position.snapshot, position)

    def relation_at(self, position: Position | None) -> SubscriptionRelation:
        """The relation with the columns that it had at a position; None for the newest ones."""
        return follow(
            self.lake, self.relation, dialect=self.dialect, session_timezone=self.session_timezone,
            recompute=self.recompute, position=position,
        )  # fmt: skip


def follow(
    lake: Lake,
    relation: str | StreamTable,
    *,
    dialect: str = "spark",
    session_timezone: str = "UTC",
    recompute: bool = False,
    position: Position | None = None,
) -> SubscriptionRelation:
    """What a caller names, with the columns of its newest version, or those of a position."""
    access = lake.access
    given = relation if isinstance(relation, str) else relation.name
    # Only a declaration checks a time zone.
    table = table_of(given, access.views) if session_timezone == "UTC" else None
    if table is not None:
        sources = (access.catalog.exact_name(table),)
        made = partial(relation_of_table, access, given)
    else:
        declaration = declare_relation(
            relation, dialect=dialect, session_timezone=session_timezone, views=access.views,
            recompute=recompute,
        )  # fmt: skip
        declaration = with_exact_names(declaration, access.catalog.exact_name)
        sources = declaration.sources
        made = partial(relation_of, access, declaration, given)
    if position is None:
        return made(frontier.newest(access.catalog, sources))
    read = {n: then for n, then in position.frontier.items() if n in sources}
    for name, then in read.items():
        frontier.require_same_history(name, access.catalog.newest(name), then)
    at = frontier.newest(access.catalog, sources)
    for name, then in read.items():
        at[name] = frontier.at_version(access.catalog, name, at[name], then.version)
    return made(at, position.columns)


def clock_of(lake: Lake, relation: SubscriptionRelation, name: str | None) -> SubscriptionClock:
    """
    Raises:
        RefusedOperation: The version clock is asked for, and cannot count the relation.
    """
    simple = len(relation.sources) == 1 and not relation.is_time_dependent
    if name == "version" or (name is None and simple):
        return VersionClock.of(relation)
    return MillisecondClock(relation, VersionTimeline(lake.root, lake.storage_options))


def _require_bounds(clock: SubscriptionClock, as_of: AsOf, up_to: Bound | None) -> None:
    """
    Raises:
        RefusedOperation: The end is before the beginning, as far as that can be told now.
    """
    begin = as_of.time if isinstance(as_of, AtLeast) else as_of
    if begin is None or up_to is None:
        return
    first, end = clock.timestamp(begin), clock.timestamp(up_to)
    if first is not None and end is not None:
        require_order(first, end)
    elif not isinstance(begin, int) and not isinstance(up_to, int):
        require_order(begin, up_to)


def _instant(
    relation: SubscriptionRelation, clock: SubscriptionClock, position: Position
) -> Instant:
    """The instant of a position.

    Raises:
        HistoryUnavailable: It can no longer be read.
    """
    catalog = relation.access.catalog
    logs = {}
    for name, then in position.frontier.items():
        now = frontier.require_same_history(name, catalog.newest(name), then)
        if not frontier.is_readable(now, then.version):
            raise frontier.unavailable(name, now, then.version, "files that it needs were deleted")
        logs[name] = frontier.at_version(catalog, name, now, then.version)
    return clock.instant(position.timestamp, logs)
