"""The changes that one run of a job reads of a slot: up to an end that is fixed at its start."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from dagster_streamtables.changes.clock.clock import AtLeast, SubscriptionClock, as_of_bound
from dagster_streamtables.changes.output.output_options import Envelope, Term
from dagster_streamtables.changes.position import (
    Position,
    SubscriptionRequest,
    position_of,
    require_of,
)
from dagster_streamtables.changes.subscription import DEADLINE, Subscription, Time, subscribe
from dagster_streamtables.changes.subscription_slots import move_slot, new_slot
from dagster_streamtables.errors import HistoryUnavailable, RefusedOperation
from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.errors.slot_errors import LostSlot, lost_slot
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.lease import renewing


class Changes:
    """The changes from a slot's position up to a fixed end, whole timestamps only.

    They are held here, so they may be read repeatedly, and slowly, until the function that receives
    them returns. More than 64 MB of them are in a temporary file.
    """

    def __init__(self, spool: Spool, start: Position, end: Position) -> None:
        self.schema = spool.schema
        """Of all rows and batches."""
        self._spool, self._start, self._end = spool, start, end
        self._stored: Position | None = None

    @property
    def rows(self) -> pa.Table:
        """All rows, in order of time, in the requested shape."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches, each of one timestamp; one batch at a time is in memory."""
        return self._spool.batches(self._after)

    def __len__(self) -> int:
        return self._spool.rows(self._after)

    @property
    def snapshot(self) -> bool:
        """Whether the rows begin with a snapshot, which replaces everything before it."""
        return self._start.snapshot and self._after is None

    @property
    def from_timestamp(self) -> int:
        """The timestamp up to which everything was processed before; for a snapshot, its own."""
        return self._start.timestamp if self._after is None else self._after

    @property
    def to_timestamp(self) -> int:
        """The last timestamp whose changes are here."""
        return max(self._end.timestamp, self.from_timestamp)

    @property
    def token(self) -> str:
        """The position after these changes. A sink that stores it together with the rows, in one
        transaction, and passes it to `resume_after`, receives nothing twice."""
        stored = self._stored or self._end
        return max(self._end, stored, key=lambda position: position.timestamp).token

    def resume_after(self, token: str | None) -> None:
        """Leave out the rows that a sink has stored already.

        Args:
            token: The last token that the sink stored; None for none.

        Raises:
            RefusedOperation: It is damaged, of another subscription, or older than the slot, so
                that changes between the two would be missing.
        """
        if token is None:
            return
        stored = position_of(token)
        require_of(stored, self._start.fingerprint, self._start.frontier, self._start.clock)
        tables = {name: each.table.id for name, each in stored.frontier.items()}
        same = tables == {name: each.table.id for name, each in self._start.frontier.items()}
        if same and stored.timestamp >= self._start.timestamp:
            self._stored = stored
        elif not self._start.snapshot:
            raise RefusedOperation(
                "the sink is behind its slot",
                why=f"it has stored the changes up to {stored.timestamp}, and those up to "
                f"{self._start.timestamp} were acknowledged, so what is between would be missing",
                fix="move the slot back to the sink's position, or to a snapshot",
            )

    @property
    def _after(self) -> int | None:
        """The timestamp up to which rows are left out; None to keep all."""
        stored = self._stored
        if stored is None or (stored.snapshot and stored.timestamp == self._start.timestamp):
            return None
        return stored.timestamp - stored.snapshot

    def by_state(self) -> Mapping[str, int]:
        """The rows by state of the envelope; without one, the inserted and the deleted copies."""
        found: Counter[str] = Counter()
        for batch in self.batches():
            for each in batch.column(1).value_counts().to_pylist():
                value, count = each["values"], each["counts"]
                if isinstance(value, str):
                    found[value] += count
                else:
                    found["inserted" if value > 0 else "deleted"] += abs(value) * count
        return dict(found)


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
    """No further timestamp is read once there are this many rows."""
    deadline: timedelta | None = DEADLINE
    """The slot is released if unused for this long."""


@contextmanager
def next_window(lake: Lake, feed: SlotSettings) -> Iterator[tuple[Changes, Subscription]]:
    """The changes after a slot's position, up to the newest ones now, and the subscription that
    read them, which acknowledges them.

    The first call creates the slot. No other reader has it until the end of the context.

    Raises:
        StreamTablesError: As `subscribe`.
    """
    with ExitStack() as stack:
        try:
            found = stack.enter_context(_reading(lake, feed))
        except (HistoryUnavailable, LostSlot):
            if feed.on_history_lost != "resnapshot":
                raise
            _restart(lake, feed)
            found = stack.enter_context(_reading(lake, feed))
        yield found


@contextmanager
def _reading(lake: Lake, feed: SlotSettings) -> Iterator[tuple[Changes, Subscription]]:
    with _open_subscription(lake, feed) as subscription, renewing(subscription.renew):
        assert subscription.token is not None, "every slot of a window has a position"
        start = position_of(subscription.token)
        with closing(Spool(subscription.schema)) as spool:
            _fill_spool(spool, subscription, feed.max_rows)
            end = position_of(subscription.token)
            yield Changes(spool, start, end), subscription


def _fill_spool(spool: Spool, subscription: Subscription, max_rows: int | None) -> None:
    """In a function of its own: a generator would keep the last batch while its user works."""
    count = 0
    for batch in subscription:
        if batch.num_rows:
            spool.add(batch)
        count += batch.num_rows
        if max_rows is not None and count >= max_rows and not subscription.partial:
            break
    spool.end()


def _open_subscription(lake: Lake, feed: SlotSettings) -> Subscription:
    """A subscription that ends with the newest changes now."""
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
    """The clock of the slot, which is created if missing."""
    followed, slot = _request(lake, feed), lake.slots.find(feed.slot)
    if slot is None:
        start = as_of_bound(feed.as_of)
        begin = followed.start_new(start, snapshot=feed.snapshot)
        new_slot(lake.slots, feed.slot, begin, start, deadline=feed.deadline)
        return begin.clock
    if slot.is_lost:
        raise lost_slot(slot.name, slot.reason)
    if not slot.token:
        return _restart(lake, feed)
    return followed.resume_at(position_of(slot.token), restart=False, slot=slot).clock


def _restart(lake: Lake, feed: SlotSettings) -> SubscriptionClock:
    """Let the slot begin with a snapshot: the next changes can no longer be read."""
    begin = _request(lake, feed).start_new(snapshot=True)
    move_slot(lake.slots, feed.slot, begin, None)
    return begin.clock


def _request(lake: Lake, feed: SlotSettings) -> SubscriptionRequest:
    return SubscriptionRequest(
        lake, feed.relation, feed.dialect, feed.session_timezone, feed.recompute, feed.clock
    )


IN_MEMORY = 64 * 2**20
"""Bytes that stay in memory; more lie in a temporary file."""


class Spool:
    """Batches in memory or, if they are large, in a temporary file, until it is closed."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._writer = pa.ipc.new_file(self._file, schema)
        self._reader: pa.RecordBatchFileReader | None = None
        self._sizes: list[tuple[int, int]] = []
        """The timestamp and the number of rows of each batch."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Append a batch of one timestamp, with rows."""
        self._writer.write_batch(batch)
        self._sizes.append((batch.column(0)[0].as_py(), batch.num_rows))

    def end(self) -> None:
        """Begin to read; no batch can be appended any longer."""
        self._writer.close()
        self._reader = pa.ipc.open_file(self._file)

    def batches(self, after: int | None) -> Iterator[pa.RecordBatch]:
        """The batches of later timestamps; None for all."""
        assert self._reader is not None, "only what has ended can be read"
        for number, (timestamp, _) in enumerate(self._sizes):
            if after is None or timestamp > after:
                yield self._reader.get_batch(number)

    def rows(self, after: int | None) -> int:
        """The number of rows of later timestamps; None for all."""
        return sum(rows for timestamp, rows in self._sizes if after is None or timestamp > after)

    def close(self) -> None:
        self._file.close()
