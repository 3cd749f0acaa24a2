"""`subscribe` and `tail`, and the `Subscription` that they return: batches of changes in order."""

from __future__ import annotations

import asyncio
import math
import queue
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

from dagster_streamtables.changes.clock.clock import AtLeast, as_of_bound, bound, present
from dagster_streamtables.changes.event_source import ChangeEvent, ChangeEventSource
from dagster_streamtables.changes.output.output_options import Envelope, Term
from dagster_streamtables.changes.output.row_encoder import RowEncoder
from dagster_streamtables.changes.position import Position, SubscriptionRequest, position_of
from dagster_streamtables.changes.relation.frontier import Frontier, newest_change
from dagster_streamtables.changes.subscription_slots import SlotReader, find_slot, new_slot
from dagster_streamtables.errors import RefusedOperation, StreamTablesError
from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.delta.table_locations import is_remote
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import Range, check_arguments

Time = int | str | date | datetime
_POLL, _POLL_REMOTE = 0.1, 1.0
DEADLINE = timedelta(days=7)
"""A slot that `subscribe` creates is released if unused for this long."""


@check_arguments
def subscribe(
    lake: Lake,
    relation: str | StreamTable,
    *,
    as_of: Time | AtLeast | None = None,
    up_to: Time | None = None,
    snapshot: bool = True,
    progress: bool = False,
    envelope: Envelope | None = None,
    order_by: str | int | Term | Sequence[str | int | Term] = (),
    clock: Literal["version", "ms"] | None = None,
    names: Literal["delta", "materialize"] = "delta",
    resume: str | None = None,
    slot: str | None = None,
    on_history_lost: Literal["error", "resnapshot"] = "error",
    recompute: bool = False,
    dialect: str = "spark",
    session_timezone: str = "UTC",
    batch_rows: Annotated[int, Range(1)] = 65_536,
    poll_interval: Annotated[float, Range(0)] | None = None,
    progress_interval: Annotated[float, Range(0)] = 10.0,
) -> Subscription:
    """Follow the changes of a relation: first its rows, then every change, in order of time.

    Each row has a timestamp, and the number of copies that were inserted (positive) or deleted
    (negative). The numbers of one row, added up to a timestamp, are its copies at that timestamp.

    Args:
        lake: The lake of its tables.
        relation: A source, a stream table or a view, by name; a Delta table by path; or a SELECT,
            which is maintained without being stored.
        as_of: Begin with the rows as of this time: a number of the clock, a date and time,
            "latest" (as None), or `AtLeast`. A time in the future is waited for.
        up_to: End before this time.
        snapshot: Whether to begin with the rows as of `as_of`; if not, with the changes after it.
        progress: Whether to output rows which state that no earlier timestamp follows.
        envelope: `Upsert` or `Debezium`, by a key, instead of the number of copies.
        order_by: The order of rows within a timestamp; 1 is the number of copies.
        clock: "version" counts the versions of the only source, "ms" milliseconds since 1970. None
            is "version" if possible.
        names: The names of the leading columns: ``_timestamp`` or ``mz_timestamp``.
        resume: The `token` of an earlier subscription, instead of `as_of` and `snapshot`.
        slot: The name of a durable position. `Subscription.ack` moves it, the next subscription
            with that name begins there, and vacuums keep what it needs. It is created if missing,
            and released if unused for a week.
        on_history_lost: Whether to fail, or begin again with a snapshot, if a vacuum or a clean-up
            of the log removed the next changes.
        recompute: Whether a query whose change cannot be computed may be run again at each
            timestamp, and compared.
        dialect: The SQL dialect of a SELECT.
        session_timezone: The time zone of the days and hours of a SELECT, or of a view; for a slot
            or a token, the same as at its beginning.
        batch_rows: The most rows of a batch.
        poll_interval: Seconds between looks at the logs; None for 0.1, and 1 for an object store.
        progress_interval: Seconds between rows of progress while nothing changes, if the clock goes
            on without changes.

    Raises:
        RefusedOperation: An option, a bound or the token does not fit.
        InvalidDefinition: The query is not valid.
        UnsupportedQuery: Its change cannot be computed.
        MissingSource: A table does not exist.
        HistoryUnavailable: `as_of`, or the resumed position, can no longer be read.
        SlotInUse: The slot has another reader.
        LostSlot: The slot was released.
    """
    _check_options(as_of, snapshot=snapshot, resume=resume, slot=slot)
    start = as_of_bound(as_of)
    end = None if up_to is None else bound(up_to, "up_to")
    restart = on_history_lost == "resnapshot"
    followed = SubscriptionRequest(lake, relation, dialect, session_timezone, recompute, clock)
    kept = None if slot is None else find_slot(lake.slots, slot, restart=restart)
    token = resume or (kept.token if kept is not None else "")
    if token:
        begin = followed.resume_at(position_of(token), restart=restart, slot=kept)
    elif kept is not None:
        begin = followed.start_new(snapshot=True)
    else:
        begin = followed.start_new(start, end, snapshot=snapshot)
    shape = RowEncoder(
        begin.relation.schema, envelope=envelope, order_by=order_by, progress=progress, names=names,
        batch_rows=batch_rows,
    )  # fmt: skip
    reader = None
    if slot is not None:
        if kept is None:
            new_slot(lake.slots, slot, begin, start, deadline=DEADLINE)
        reader = SlotReader(lake.slots, slot, begin, restart=restart)
        begin = reader.adjust_start(followed, begin, restart=restart)
    follower = ChangeEventSource(
        begin.relation, begin.clock, shape, end, progress, progress_interval, restart
    )
    events = follower.events(start, begin)
    poll = poll_interval or (_POLL_REMOTE if is_remote(lake.root) else _POLL)
    return Subscription(
        events, shape.schema, start=begin.position, poll_interval=poll, slot=reader, lost=begin.lost
    )


def tail(
    lake: Lake,
    name: str | StreamTable,
    *,
    as_of: Time | None = None,
    snapshot: bool = True,
    progress: bool = False,
) -> Subscription:
    """`subscribe` as its predecessor was: one named relation, and columns named ``mz_…``.

    Raises:
        RefusedOperation: A query is given.
        StreamTablesError: As `subscribe`.
    """
    text = name.name if isinstance(name, StreamTable) else name
    if len(text.split()) != 1:
        raise RefusedOperation(
            "TAIL follows a table or a view by its name",
            why=f'"{text[:80]}" is a query',
            fix="use subscribe, which follows any SELECT",
        )
    return subscribe(
        lake, name, as_of=as_of, snapshot=snapshot, progress=progress, names="materialize"
    )


def _check_options(as_of: Any, *, snapshot: bool, resume: str | None, slot: str | None) -> None:
    if resume is not None and slot is not None:
        raise RefusedOperation(
            "a resume token and a slot cannot be combined",
            why="each of them says where to begin",
            fix="give one of them",
        )
    if (as_of is not None or not snapshot) and resume is not None:
        raise RefusedOperation(
            "a resumed subscription begins at its token",
            why="as_of and snapshot also choose the beginning",
            fix="leave out as_of and snapshot, or the token",
        )


class CancelFlag:
    """A flag that any thread sets, and that one thread waits for.

    A signal must not interrupt `threading.Event.wait`: it takes a lock back in Python, and if the
    signal's handler raises just before, "release unlocked lock" replaces that exception. The wait
    of a `SimpleQueue` is one call in C.
    """

    def __init__(self) -> None:
        self._set = False
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._woken.put(None)

    def wait(self, seconds: float) -> None:
        """Return when it is set, or after a number of seconds."""
        if not self._set:
            with suppress(queue.Empty):
                self._woken.get(timeout=seconds)


class Subscription:
    """The changes of a relation, in batches of Arrow.

    A batch has the rows of one timestamp. A timestamp with more rows has several batches, all but
    the last with `partial` true. One thread reads a subscription; another may `close` it.

    Attributes:
        schema: The columns of all batches.
        poll_interval: Seconds between looks at the logs while nothing changes.
    """

    def __init__(
        self,
        events: Iterator[ChangeEvent | None],
        schema: pa.Schema,
        *,
        start: Position | None,
        poll_interval: float,
        slot: SlotReader | None,
        lost: str = "",
    ) -> None:
        self.schema = schema
        self.poll_interval = poll_interval
        self._events = events
        self._slot = slot
        self._position = self._before = start
        self._rest: pa.RecordBatch | None = None
        self._closed = CancelFlag()
        self._ended = False
        self._error: BaseException | None = None
        self._reached: float | None = None  # as `time.monotonic` counts
        self.committed_at: float | None = None
        """When the newest commit of the last batch was made, in seconds since 1970; None for a
        snapshot, and for changes by time alone."""
        self._read_at: Frontier | None = None
        self.partial = False
        """Whether the next batch continues the timestamp of the last one."""
        self.keeps_slot = False
        """Whether the slot stays held at the end of the subscription, until `close`, while the last
        rows are processed."""
        self.snapshots = 0
        """The number of snapshots that have begun. After the first, each replaces everything before
        it: history was lost."""
        self.lost = lost
        """Why the resumed position could not be continued, so that the first snapshot replaces
        everything read before; empty if it could."""

    @property
    def token(self) -> str | None:
        """The position after all delivered rows, to resume at; None before the first. A timestamp
        that was delivered in part is repeated after resuming."""
        position = self._delivery_position
        return None if position is None else position.token

    @property
    def timestamp(self) -> int | None:
        """The timestamp of `token`."""
        position = self._delivery_position
        return None if position is None else position.timestamp

    @property
    def changed_at(self) -> float | None:
        """When the commit of the last change was made, in seconds since 1970; for a snapshot, the
        last commit that changed rows of its tables. None if no log has the time, within a
        timestamp, and for changes by time alone."""
        return self.committed_at if self._read_at is None else newest_change(self._read_at)

    @property
    def _delivery_position(self) -> Position | None:
        return self._position if self._rest is None else self._before

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches as they come; waits for the next one, until the subscription ends."""
        while (batch := self._next(None)) is not None:
            yield batch

    def next_batch(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """The next batch; None if there is none within a number of seconds, or if it has `ended`.

        A negative number requests what existed that long ago and has not been delivered.
        """
        return self._next(None if timeout is None else time.monotonic() + timeout)

    def fetch(self, n: int | None = 1, timeout: float | None = None) -> pa.Table:
        """Up to a number of rows.

        Args:
            n: The most rows; None for all that exist. 0 begins the subscription.
            timeout: Seconds to wait for `n` rows, or, for all, to collect them, and until the
                timestamp that is then being computed is complete; 0 for those that exist at the
                time of the call. None waits for one row and returns it with those that exist.

        Returns:
            Fewer rows, or none, at the end of the time or of the subscription.
        """

        deadline = None if timeout is None else time.monotonic() + timeout
        found: list[pa.RecordBatch] = []
        count = 0
        while n is None or count < n:
            if found and deadline is not None and timeout and time.monotonic() >= deadline:
                break
            batch = self._next(deadline)
            if batch is None:
                break
            if n is not None and count + batch.num_rows > n:
                batch, self._rest = batch.slice(0, n - count), batch.slice(n - count)
            found.append(batch)
            count += batch.num_rows
            if deadline is None:
                deadline = time.monotonic()
        if n == 0 and self._position is None and self._rest is None:
            # This fixes the time at which the subscription begins, unless it is in the future.
            self._rest = self._next(time.monotonic())
        return pa.Table.from_batches(found, self.schema)

    @property
    def ended(self) -> bool:
        """Whether no more batches follow."""
        return self._rest is None and (self._ended or self._closed.is_set())

    async def aiter(self) -> AsyncIterator[pa.RecordBatch]:
        """As the iterator, without blocking the event loop; each batch is read in a thread."""
        try:
            while (batch := await asyncio.to_thread(self._next, None)) is not None:
                yield batch
        finally:
            self._closed.set()

    def ack(self) -> None:
        """Move the slot to `token`: all delivered rows have been processed.

        Raises:
            RefusedOperation: The subscription has no slot.
            SlotInUse: Another reader took the slot over; nothing was moved.
            LostSlot: The slot was released.
        """
        if self._slot is None:
            raise RefusedOperation(
                "a subscription without a slot has nothing to acknowledge",
                fix='give it a name, as in slot="search_index", or store its token yourself',
            )
        position = self._delivery_position
        if position is not None:
            self._slot.ack(position)

    def renew(self) -> None:
        """Keep other readers out of the slot while delivered rows are processed. They are kept out
        for a minute after each `ack`, and while the subscription waits. Any thread may call it.

        Raises:
            SlotInUse: Another reader took the slot over.
            LostSlot: The slot was released.
        """
        if self._slot is not None:
            self._slot.renew()

    def close(self) -> None:
        """End the subscription; its slot is free for the next reader. May be called again."""
        self._closed.set()
        if self._slot is not None:
            self._slot.release()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self, deadline: float | None) -> pa.RecordBatch | None:
        """The next batch; None at the deadline or the end.

        A past deadline requests what existed then, however long it takes to compute.
        """
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return rest
        if self._error is not None:
            raise self._error
        end = math.inf if deadline is None or time.monotonic() >= deadline else deadline
        while not (self._ended or self._closed.is_set() or self._is_beyond(deadline)):
            try:
                event = self._event()
            except StopIteration:
                self._ended = True
                if not self.keeps_slot:
                    self.close()
                break
            if event is None:
                if not self._wait(deadline):
                    break
                continue
            if (batch := self._take(event)) is not None:
                return batch
            if time.monotonic() >= end:
                break
            self.renew()
        return None

    def _is_beyond(self, deadline: float | None) -> bool:
        """Whether all that existed at the deadline has been delivered.

        Without this, a query that uses the current time and takes longer than the second between
        two of its timestamps would never end.
        """
        return deadline is not None and self._reached is not None and self._reached > deadline

    def _event(self) -> ChangeEvent | None:
        """The next event. An error is raised again at each call: an end would mean that nothing was
        left out."""
        try:
            return next(self._events)
        except StopIteration:
            raise
        except BaseException as error:
            self._error = error
            with suppress(StreamTablesError, OSError):  # they would hide the first error
                self.close()
            raise

    def _take(self, event: ChangeEvent) -> pa.RecordBatch | None:
        self._before = self._position
        self._position = event.position or self._position
        self.snapshots += event.snapshot
        self.partial = event.partial
        self.committed_at = event.committed_at
        self._read_at = event.read_at
        self._reached = None
        if event.reached is not None:
            # After the clock is set back, an older timestamp may lie in the future.
            ago = max(0.0, present().timestamp() - event.reached)
            self._reached = time.monotonic() - ago
        return event.batch

    def _wait(self, deadline: float | None) -> bool:
        """Wait for the next look; false if the deadline is over."""
        self.renew()
        left = self.poll_interval if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return False
        self._closed.wait(min(left, self.poll_interval))
        return True
