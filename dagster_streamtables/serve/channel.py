"""New changes, read once for all readers who follow the same."""

from __future__ import annotations

import asyncio
from collections import deque

from dagster_streamtables.log import logger
from dagster_streamtables.serve.offer import ServerConfig
from dagster_streamtables.serve.reading import FeedEvent, SubscriptionReader
from dagster_streamtables.serve.request import RelationRequest, Start
from dagster_streamtables.serve.threads import in_thread

_EVENTS, _BYTES = 1000, 16 << 20
"""What a channel holds for readers who are behind; those who are further behind read on their
own."""


class SharedReader:
    """The newest changes, each with the token after it.

    A reader who has read up to one of these tokens goes on here. Only whole timestamps are held: a
    reader can leave after each, and resume by the token. One that does not fit into a batch is left
    out, so that every reader who comes to it reads it on its own.
    """

    def __init__(self, offer: ServerConfig, asked: RelationRequest) -> None:
        self.readers = 0
        self.ended = False
        """Reading failed, or everything was read: each reader finds out on its own."""
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
        """Whether the event was there and is not held any more."""
        return number < self._first

    async def wait_for_event(self, seconds: float | None = None) -> None:
        """Wait until something is new, or this channel has ended."""
        if not self.ended:
            try:
                await asyncio.wait_for(self._moved.wait(), seconds)
            except TimeoutError:
                return

    async def _read(self) -> None:
        subscription = None
        try:
            start = Start(snapshot=False)
            subscription = await in_thread(lambda: self._asked.subscribe(self._offer, start))
            reading = SubscriptionReader(subscription)
            while not subscription.ended:
                event = await in_thread(reading.poll)
                if event is None:
                    await asyncio.sleep(subscription.poll_interval)
                else:
                    self._take(event)
        except Exception as error:
            logger.debug("a channel ended: %s", error)
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
    """The channels that somebody reads."""

    def __init__(self, offer: ServerConfig) -> None:
        self._offer = offer
        self._open: dict[RelationRequest, SharedReader] = {}

    def join(self, asked: RelationRequest) -> SharedReader:
        channel = self._open.get(asked)
        if channel is None or channel.ended:
            channel = self._open[asked] = SharedReader(self._offer, asked)
        channel.readers += 1
        return channel

    def leave(self, asked: RelationRequest, channel: SharedReader) -> None:
        channel.readers -= 1
        if not channel.readers:
            channel.close()
            if self._open.get(asked) is channel:
                del self._open[asked]


def _size(event: FeedEvent) -> int:
    # What it is as text is kept with it, and is about as large.
    return 0 if event.batch is None else 2 * event.batch.nbytes
