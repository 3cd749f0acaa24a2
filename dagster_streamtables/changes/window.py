"""`next_window`: what one run of a job reads of a slot, up to an end that is fixed at its start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from dagster_streamtables.changes.beginning import SubscriptionRequest
from dagster_streamtables.changes.changes import Changes, Spool
from dagster_streamtables.changes.clock.bounds import AtLeast, as_of_bound
from dagster_streamtables.changes.clock.clock import SubscriptionClock
from dagster_streamtables.changes.output.envelope import Envelope
from dagster_streamtables.changes.output.order import Term
from dagster_streamtables.changes.position import position_of
from dagster_streamtables.changes.slots import move_slot, new_slot
from dagster_streamtables.changes.subscribe import DEADLINE, Time, subscribe
from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.errors import HistoryUnavailable
from dagster_streamtables.runtime.errors.slots import LostSlot, lost_slot
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.lease import renewing


@dataclass(frozen=True, kw_only=True)
class SlotSettings:
    """What a slot follows, and in which shape; the arguments are those of `subscribe`."""

    relation: str | StreamTable
    slot: str
    envelope: Envelope | None = None
    order_by: str | int | Term | Sequence[str | int | Term] = ()
    as_of: Time | AtLeast | None = None
    snapshot: bool = True
    clock: Literal["version", "ms"] | None = None
    on_history_lost: Literal["error", "resnapshot"] = "error"
    recompute: bool = False
    dialect: str = "spark"
    session_timezone: str = "UTC"
    max_rows: int | None = None
    """No further timestamp is read once there are so many rows."""
    deadline: timedelta | None = DEADLINE
    """The slot is let go if nobody has used it for so long."""


@dataclass(frozen=True)
class ChangeWindow:
    """The changes of one run, and the slot that they were read from."""

    changes: Changes
    _subscription: Subscription

    def ack(self) -> None:
        """Move the slot behind the changes: they were processed.

        Raises:
            SlotInUse: Another reader took the slot over; nothing was moved.
            LostSlot: The slot was let go.
        """
        self._subscription.ack()


@contextmanager
def next_window(lake: Lake, feed: SlotSettings) -> Iterator[ChangeWindow]:
    """The changes after a slot's position, up to the newest ones now.

    The slot is made by the first call. It is held, and nobody else reads it, until the end of the
    context.

    Raises:
        StreamTablesError: As `subscribe`.
    """
    try:
        reading = _reading(lake, feed)
        subscription = reading.__enter__()
    except (HistoryUnavailable, LostSlot):
        if feed.on_history_lost != "resnapshot":
            raise
        _begin_anew(lake, feed)
        reading = _reading(lake, feed)
        subscription = reading.__enter__()
    try:
        yield subscription
    finally:
        reading.__exit__(None, None, None)


@contextmanager
def _reading(lake: Lake, feed: SlotSettings) -> Iterator[ChangeWindow]:
    with _open_subscription(lake, feed) as subscription, renewing(subscription.renew):
        assert subscription.token is not None, "every slot of a window has a position"
        start = position_of(subscription.token)
        with Spool(subscription.schema) as spool:
            _fill_spool(subscription, spool, feed.max_rows)
            end = position_of(subscription.token)
            yield ChangeWindow(Changes(spool, start, end), subscription)


def _open_subscription(lake: Lake, feed: SlotSettings) -> Subscription:
    """A subscription that ends with what is newest now."""
    newest = _clock(lake, feed).first(None)
    assert newest is not None, "the newest time is never in the future"
    subscription = subscribe(
        lake, feed.relation, slot=feed.slot, up_to=newest.timestamp + 1, envelope=feed.envelope,
        order_by=feed.order_by, clock=feed.clock, recompute=feed.recompute, dialect=feed.dialect,
        session_timezone=feed.session_timezone,
    )  # fmt: skip
    subscription.keeps_slot = True
    return subscription


def _clock(lake: Lake, feed: SlotSettings) -> SubscriptionClock:
    """The clock of the slot, which is made if there is none."""
    followed, slot = _request(lake, feed), lake.slots.find(feed.slot)
    if slot is None:
        start = as_of_bound(feed.as_of)
        begin = followed.start_new(start, snapshot=feed.snapshot)
        new_slot(
            lake.slots, feed.slot, begin.relation, begin.clock, start, snapshot=feed.snapshot,
            deadline=feed.deadline,
        )  # fmt: skip
        return begin.clock
    if slot.is_lost:
        raise lost_slot(slot.name, slot.reason)
    if not slot.token:
        return _begin_anew(lake, feed)
    return followed.resume_at(position_of(slot.token), restart=False, slot=slot).clock


def _begin_anew(lake: Lake, feed: SlotSettings) -> SubscriptionClock:
    """Let the slot begin with a snapshot: what comes next can no longer be read."""
    begin = _request(lake, feed).start_new(snapshot=True)
    move_slot(lake.slots, feed.slot, begin.relation, begin.clock, None, snapshot=True)
    return begin.clock


def _request(lake: Lake, feed: SlotSettings) -> SubscriptionRequest:
    return SubscriptionRequest(
        lake, feed.relation, feed.dialect, feed.session_timezone, feed.recompute, feed.clock
    )


def _fill_spool(subscription: Subscription, spool: Spool, max_rows: int | None) -> None:
    count = 0
    for batch in subscription:
        if batch.num_rows:
            spool.add(batch)
        count += batch.num_rows
        if max_rows is not None and count >= max_rows and not subscription.partial:
            break
    spool.end()
