"""Everything that one reader is sent: first read for it alone, then together with others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.serve.channel import SharedReader, SharedReaders
from dagster_streamtables.serve.offer import ServerConfig
from dagster_streamtables.serve.reading import FeedEvent, SubscriptionReader
from dagster_streamtables.serve.request import RelationRequest, Start
from dagster_streamtables.serve.threads import in_thread


class EventFeed:
    """The events of one reader, in order, each exactly once.

    It reads a subscription of its own until it has caught up, and then from the channel of those
    who follow the same; if it falls behind what the channel holds, again on its own. Both give the
    same tokens, so it always knows where it stands.
    """

    def __init__(
        self, offer: ServerConfig, channels: SharedReaders, asked: RelationRequest, start: Start
    ) -> None:
        self._offer, self._channels = offer, channels
        self._asked, self._start = asked, start
        self._subscription: Subscription | None = None
        self._channel: SharedReader | None = None
        self._first: FeedEvent | None = None

    async def open(self) -> Subscription:
        """Begin, so that what is wrong with the request is known before an answer is sent.

        Raises:
            StreamTablesError: As `subscribe`, and as its first batch.
        """
        reading = await self._read_alone(self._start)
        self._reading = reading
        self._first = await in_thread(reading.poll)
        return reading.subscription

    @property
    def is_over(self) -> bool:
        """Whether nothing is to be sent at all; asked after `open`."""
        ended = self._subscription is not None and self._subscription.ended
        return ended and (self._first is None or self._first.kind == "moved")

    async def events(self) -> AsyncIterator[FeedEvent]:
        """All events, from the beginning on."""
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
        """Let go of everything; may be called while a thread still reads."""
        self._close_subscription()
        self._leave()

    async def _read_alone(self, start: Start) -> SubscriptionReader:
        subscription = await in_thread(lambda: self._asked.subscribe(self._offer, start))
        self._subscription = subscription
        return SubscriptionReader(subscription)

    async def _alone(self, reading: SubscriptionReader) -> AsyncIterator[FeedEvent]:
        """The events until its end, or until the channel can go on."""
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
        """Whether the channel continues after the token; if not yet, after some time."""
        if self._channel is None or self._channel.ended:
            self._leave()
            self._channel = self._channels.join(self._asked)
        channel = self._channel
        if channel.after(token) is not None:
            return True
        until = time.monotonic() + subscription.poll_interval
        behind = channel.timestamp is None or channel.timestamp < (subscription.timestamp or 0)
        while not channel.ended and (left := until - time.monotonic()) > 0 and behind:
            await channel.wait_for_event(left)
            if channel.after(token) is not None:
                return True
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        return False

    async def _together(self, token: str) -> AsyncIterator[FeedEvent]:
        """The events of the channel, until it has ended or left this reader behind."""
        channel = self._channel
        number = None if channel is None else channel.after(token)
        if channel is None or number is None:
            return
        while not channel.is_past(number):
            event = channel.event(number)
            if event is not None:
                number += 1
                yield event
            elif channel.ended:
                break
            else:
                await channel.wait_for_event()
        self._leave()

    def _close_subscription(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def _leave(self) -> None:
        if self._channel is not None:
            self._channels.leave(self._asked, self._channel)
            self._channel = None
