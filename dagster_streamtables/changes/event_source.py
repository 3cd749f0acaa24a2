"""`ChangeEventSource`: what a subscription gives out next, without ever waiting for it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from dagster_streamtables.changes.clock.clock import (
    AsOf,
    Bound,
    Instant,
    SubscriptionClock,
    require_order,
)
from dagster_streamtables.changes.output.row_encoder import RowEncoder
from dagster_streamtables.changes.position import Position, StartPoint
from dagster_streamtables.changes.relation.frontier import Frontier, newest_commit, unavailable
from dagster_streamtables.changes.relation.relation import SubscriptionRelation
from dagster_streamtables.changes.relation.relation_reading import Times
from dagster_streamtables.errors import DamagedTable, EmptyBoundsWarning, HistoryUnavailable
from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.errors.error_translation import translate_errors
from dagster_streamtables.runtime.errors.table_errors import LostHistory

_RESTARTS, _WITHIN = 3, 3600.0
"""Lost history is replaced by a new snapshot at most this often, in this many seconds."""


@dataclass(frozen=True)
class ChangeEvent:
    """The next output of a subscription."""

    batch: pa.RecordBatch | None = None
    """None if only the position moves."""
    position: Position | None = None
    """The position after the batch; None if it stays the same."""
    partial: bool = False
    """Whether the next batch continues the timestamp of this one."""
    snapshot: bool = False
    """Whether a snapshot begins here, which replaces everything before it."""
    committed_at: float | None = None
    """When the newest commit that led here was made, in seconds since 1970; None for a snapshot,
    for changes by time alone, and if no commit has a time."""
    read_at: Frontier | None = None
    """The sources of a snapshot that ends here; None for anything else."""
    reached: float | None = None
    """Everything until this time, in seconds since 1970, is output with this event; None within a
    timestamp, by a clock that does not tell the time, and if nothing can follow."""


@dataclass
class ChangeEventSource:
    """Reads a relation from a beginning, timestamp by timestamp.

    The iterators yield None whenever there is nothing yet.
    """

    relation: SubscriptionRelation
    clock: SubscriptionClock
    shape: RowEncoder
    up_to: Bound | None
    progress: bool
    progress_seconds: float
    resnapshot: bool
    _restarts: list[float] = field(default_factory=list[float])
    _told: float = 0.0

    def events(self, as_of: AsOf, begin: StartPoint) -> Iterator[ChangeEvent | None]:
        """All events from a time, or after what was read before."""
        first = begin.first
        while first is None and (first := self.clock.first(as_of)) is None:
            yield None
        # What was read before may end after the bound; then nothing is left to read.
        goes_on = begin.position is not None and not begin.snapshot
        # No event before it is known that the bounds and the history allow it.
        empty = not goes_on and self._is_empty(first)
        if self.progress:
            yield ChangeEvent(self.shape.progress(first.timestamp + goes_on))
        if not empty:
            yield from self._from(first, snapshot=begin.snapshot)

    def _is_empty(self, first: Instant) -> bool:
        if self.up_to is None:
            return False
        end = self.clock.timestamp(self.up_to)
        if end is not None:
            require_order(first.timestamp, end)
        if not self.clock.reaches(first, self.up_to):
            return False
        told = f"the subscription begins and ends at {first.timestamp}, so it is empty"
        warnings.warn(told, EmptyBoundsWarning, stacklevel=2)
        return True

    def _from(self, first: Instant, *, snapshot: bool) -> Iterator[ChangeEvent | None]:
        """The events of an instant and after it; if history is lost, on request, a new snapshot."""
        try:
            if snapshot:
                yield ChangeEvent(position=self._position(first, snapshot=True))
                rows = self.relation.snapshot(first.frontier, first.now, self.shape.ordering)
                for event in self._batches(first, rows, snapshot=True):
                    ends = event.position is not None
                    yield replace(event, read_at=first.frontier if ends else None)
            else:
                yield ChangeEvent(position=self._position(first))
            yield from self._changes(first)
            return
        except HistoryUnavailable:
            if not self._may_restart():
                raise
        newest = self.clock.first(None)
        assert newest is not None, "the newest time is never in the future"
        yield from self._from(newest, snapshot=True)

    def _may_restart(self) -> bool:
        """Whether a new snapshot is requested, and the last ones were not too recent."""
        now = time.monotonic()
        self._restarts = [each for each in self._restarts if now - each < _WITHIN]
        if not self.resnapshot or len(self._restarts) >= _RESTARTS:
            return False
        self._restarts.append(now)
        return True

    def _changes(self, last: Instant) -> Iterator[ChangeEvent | None]:
        while True:
            following = self.clock.next(last)
            if following is None:
                if self._is_over(last):
                    return
                if (idle := self._idle(last)) is not None:
                    yield idle
                yield None
                continue
            if self.up_to is not None and self.clock.reaches(following, self.up_to):
                return
            times = Times(last.now, following.now)
            order = self.shape.ordering
            rows = self.relation.change(last.frontier, following.frontier, times, order)
            committed_at = newest_commit(last.frontier, following.frontier)
            for event in self._batches(following, rows):
                yield replace(event, committed_at=committed_at)
            last = following

    @property
    def _is_finite(self) -> bool:
        """Whether the rows can never change."""
        return not self.relation.sources and not self.relation.is_time_dependent

    def _is_over(self, last: Instant) -> bool:
        if self._is_finite:
            return True
        return self.up_to is not None and self.clock.is_past(last, self.up_to)

    def _batches(
        self, at: Instant, rows: Iterable[pa.Table], *, snapshot: bool = False
    ) -> Iterator[ChangeEvent]:
        """The rows of an instant; the last event has its position."""
        held: pa.RecordBatch | None = None
        for batch in self.shape.rows(at.timestamp, self._read(at.frontier, rows)):
            if held is not None:
                yield ChangeEvent(held, partial=True, snapshot=snapshot)
                snapshot = False
            held = batch
        last = ChangeEvent(held, self._position(at), snapshot=snapshot)
        if self.progress and not self._is_finite:
            yield last
            self._told = time.monotonic()
            last = ChangeEvent(self.shape.progress(at.timestamp + 1), self._position(at))
        told = self.clock.tells_time and not self._is_finite
        yield replace(last, reached=at.timestamp / 1000 if told else None)

    def _idle(self, last: Instant) -> ChangeEvent | None:
        if not self.progress or time.monotonic() - self._told < self.progress_seconds:
            return None
        self._told = time.monotonic()
        timestamp = self.clock.idle(last)
        return None if timestamp is None else ChangeEvent(self.shape.progress(timestamp))

    def _read(self, at: Frontier, rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """
        Raises:
            HistoryUnavailable: A file of the rows was deleted.
        """
        try:
            with translate_errors():
                yield from rows
        except (LostHistory, DamagedTable) as error:
            named = (each for each in at.items() if each[1].location in str(error))
            name, log = next(named, next(iter(at.items())))
            raise unavailable(name, log, log.version, "files that it needs were deleted") from error

    def _position(self, at: Instant, *, snapshot: bool = False) -> Position:
        return Position.of(self.relation, self.clock.name, at, snapshot=snapshot)
