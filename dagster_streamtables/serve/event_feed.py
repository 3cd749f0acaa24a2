"""The events that each reader is sent: read for it alone, or once for all who follow the same."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.log import logger
from dagster_streamtables.serve.access_policy import ServerConfig
from dagster_streamtables.serve.event_stream import FeedEvent, SubscriptionReader
from dagster_streamtables.serve.request import RelationRequest, Start

T = TypeVar("T")

_THREADS = 8
_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="streamtables-serve")


async def in_thread(call: Callable[[], T]) -> T:
    """Not `asyncio.to_thread`: its threads are shared with everything else in the process."""
    return await asyncio.get_running_loop().run_in_executor(_pool, call)


async def _subscribe(offer: ServerConfig, asked: RelationRequest, start: Start) -> Subscription:
    opening = _pool.submit(asked.subscribe, offer, start)
    try:
        return await asyncio.wrap_future(opening)
    except asyncio.CancelledError:  # the thread goes on, and nobody takes its result
        opening.add_done_callback(_close_result)
        raise


def _close_result(opening: Future[Subscription]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class EventFeed:
    """The events of one reader, in order, each exactly once.

    It reads its own subscription until it has caught up, then the shared reader of all who follow
    the same; if it falls behind what that holds, its own again. Both give the same tokens, so a
    position in one is found in the other.
    """

    def __init__(
        self, offer: ServerConfig, readers: SharedReaders, asked: RelationRequest, start: Start
    ) -> None:
        self._offer, self._readers = offer, readers
        self._asked, self._start = asked, start
        self._subscription: Subscription | None = None
        self._shared: SharedReader | None = None
        self._first: FeedEvent | None = None

    async def open(self) -> Subscription:
        """Begin, so that errors of the request are known before an answer is sent.

        Raises:
            StreamTablesError: As `subscribe`, and as its first batch.
        """
        reading = await self._read_alone(self._start)
        self._reading = reading
        self._first = await in_thread(reading.poll)
        return reading.subscription

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to send at all; for calls after `open`."""
        ended = self._subscription is not None and self._subscription.ended
        return ended and (self._first is None or self._first.kind == "moved")

    async def events(self) -> AsyncIterator[FeedEvent]:
        reading, token = self._reading, None
        if self._first is not None:
            first, self._first = self._first, None
            token = first.token
            yield first
        while True:
            async for event in self._alone(reading):
                token = event.token
                yield event
            if reading.subscription.ended or token is None:
                return
            self._close_subscription()
            async for event in self._together(token):
                token = event.token or token
                yield event
            reading = await self._read_alone(self._start.after_token(token))

    def close(self) -> None:
        """Release everything, even while a thread still reads."""
        self._close_subscription()
        self._leave()

    async def _read_alone(self, start: Start) -> SubscriptionReader:
        self._subscription = await _subscribe(self._offer, self._asked, start)
        return SubscriptionReader(self._subscription)

    async def _alone(self, reading: SubscriptionReader) -> AsyncIterator[FeedEvent]:
        """The events until its end, or until the shared reader can go on."""
        token = reading.subscription.token
        while True:
            event = await in_thread(reading.poll)
            if event is not None:
                token = event.token
                yield event
            elif reading.subscription.ended:
                return
            elif self._start.up_to is None and token is not None:
                if await self._can_join(token, reading.subscription):
                    return
            else:
                await asyncio.sleep(reading.subscription.poll_interval)

    async def _can_join(self, token: str, subscription: Subscription) -> bool:
        """Whether the shared reader continues after the token; if not yet, after some time."""
        if self._shared is None or self._shared.ended:
            self._leave()
            self._shared = self._readers.join(self._asked)
        shared = self._shared
        if shared.after(token) is not None:
            return True
        until = time.monotonic() + subscription.poll_interval
        behind = shared.timestamp is None or shared.timestamp < (subscription.timestamp or 0)
        while not shared.ended and (left := until - time.monotonic()) > 0 and behind:
            await shared.wait_for_event(left)
            if shared.after(token) is not None:
                return True
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        return False

    async def _together(self, token: str) -> AsyncIterator[FeedEvent]:
        """The events of the shared reader, until it has ended or left this one behind."""
        shared = self._shared
        number = None if shared is None else shared.after(token)
        if shared is None or number is None:
            return
        while not shared.is_past(number):
            event = shared.event(number)
            if event is not None:
                number += 1
                yield event
            elif shared.ended:
                break
            else:
                await shared.wait_for_event()
        self._leave()

    def _close_subscription(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def _leave(self) -> None:
        if self._shared is not None:
            self._readers.leave(self._asked, self._shared)
            self._shared = None


_EVENTS, _BYTES = 1000, 16 << 20
"""What is held for readers that lag; those that lag more read alone."""


class SharedReader:
    """The newest changes, each with the token after it.

    A reader that has read up to one of these tokens goes on here. Only whole timestamps are held: a
    reader can leave after each, and resume by the token. A timestamp that does not fit into a batch
    is left out; every reader reads it alone.
    """

    def __init__(self, offer: ServerConfig, asked: RelationRequest) -> None:
        self.readers = 0
        self.ended = False
        """Reading failed, or is complete: each reader finds out on its own."""
        self.timestamp: int | None = None
        self._offer, self._asked = offer, asked
        self._events: deque[FeedEvent] = deque()
        self._first = 0
        """The number of the first event that is held."""
        self._base: str | None = None
        """The token before it."""
        self._bytes = 0
        self._moved = asyncio.Event()
        self._task = asyncio.create_task(self._read())

    def close(self) -> None:
        self._task.cancel()

    def after(self, token: str) -> int | None:
        """The number of the event that follows a token; None if it is not known here."""
        for number in range(len(self._events) - 1, -1, -1):
            if self._events[number].token == token:
                return self._first + number + 1
        return self._first if token == self._base else None

    def event(self, number: int) -> FeedEvent | None:
        """The event with this number, if it is held."""
        at = number - self._first
        return self._events[at] if 0 <= at < len(self._events) else None

    def is_past(self, number: int) -> bool:
        """Whether the event was held and no longer is."""
        return number < self._first

    async def wait_for_event(self, seconds: float | None = None) -> None:
        """Wait until something is new, or reading has ended."""
        if not self.ended:
            try:
                await asyncio.wait_for(self._moved.wait(), seconds)
            except TimeoutError:
                return

    async def _read(self) -> None:
        subscription = None
        try:
            subscription = await _subscribe(self._offer, self._asked, Start(snapshot=False))
            reading = SubscriptionReader(subscription)
            while not subscription.ended:
                event = await in_thread(reading.poll)
                if event is None:
                    await asyncio.sleep(subscription.poll_interval)
                else:
                    self._take(event)
        except Exception as error:
            logger.debug("shared reading ended: %s", error)
        finally:
            self.ended = True
            self._wake()
            if subscription is not None:
                subscription.close()

    def _take(self, event: FeedEvent) -> None:
        self.timestamp = event.timestamp
        if event.token is None or (self._base is None and not self._events):
            # A part of a timestamp, or the beginning. What follows can be joined after it.
            self._forget(len(self._events))
            self._first += 1
            self._base = event.token
        else:
            self._events.append(event)
            self._bytes += _size(event)
            while len(self._events) > _EVENTS or (self._bytes > _BYTES and self._events):
                self._forget(1)
        self._wake()

    def _forget(self, count: int) -> None:
        for _ in range(count):
            event = self._events.popleft()
            self._bytes -= _size(event)
            self._first += 1
            self._base = event.token

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


class SharedReaders:
    """The shared readers that are in use, by what they follow."""

    def __init__(self, offer: ServerConfig) -> None:
        self._offer = offer
        self._open: dict[RelationRequest, SharedReader] = {}

    def join(self, asked: RelationRequest) -> SharedReader:
        shared = self._open.get(asked)
        if shared is None or shared.ended:
            shared = self._open[asked] = SharedReader(self._offer, asked)
        shared.readers += 1
        return shared

    def leave(self, asked: RelationRequest, shared: SharedReader) -> None:
        shared.readers -= 1
        if not shared.readers:
            shared.close()
            if self._open.get(asked) is shared:
                del self._open[asked]


def _size(event: FeedEvent) -> int:
    # Its text is kept with it, and is about as large.
    return 0 if event.batch is None else 2 * event.batch.nbytes
