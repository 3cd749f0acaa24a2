"""One stream of changes as an ASGI response: paced, kept alive, and given up where nobody reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.serve.feed import EventFeed
from dagster_streamtables.serve.offer import ServerConfig
from dagster_streamtables.serve.sending import EventEncoder

_HEADERS = {
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # nginx would hold events back
    "x-content-type-options": "nosniff",
}


class SlowReaderError(Exception):
    """The reader takes nothing."""


class IncompleteStreamError(Exception):
    """The stream ended before its end, and its format cannot say so."""


@dataclass
class EventStreamResponse:
    """Sends a feed, and lets go of it whatever happens."""

    offer: ServerConfig
    feed: EventFeed
    sending: EventEncoder
    stopping: asyncio.Event
    done: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tasks = [
            asyncio.create_task(self._send(send)),
            asyncio.create_task(_wait_for_disconnect(receive)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
        except (SlowReaderError, IncompleteStreamError) as error:
            logger.debug("a connection is cut: %s", error)
            if not await _cut(scope):
                raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.feed.close()
            self.done()

    async def _send(self, send: Send) -> None:
        headers = {**_HEADERS, "content-type": self.sending.media_type}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": pairs})
        async for body in self._bodies():
            await self._send_in_time(send, body)
        await send({"type": "http.response.body", "body": b""})

    async def _send_in_time(self, send: Send, body: bytes) -> None:
        try:
            async with asyncio.timeout(self.offer.limits.seconds_unread):
                await send({"type": "http.response.body", "body": body, "more_body": True})
        except TimeoutError:
            raise SlowReaderError from None

    async def _bodies(self) -> AsyncIterator[bytes]:
        yield self.sending.begin()
        try:
            async for body in self._event_bodies():
                yield body
        except StreamTablesError as error:
            if not self.sending.tells_errors:
                raise IncompleteStreamError(error.what) from error
            yield self.sending.encode_error(error)
        yield self.sending.end()

    async def _event_bodies(self) -> AsyncIterator[bytes]:
        """The events, and comments while there is none."""
        events = self.feed.events()
        pace = _Pace(self.offer.limits.rows_per_second)
        stop = asyncio.create_task(self.stopping.wait())
        following: asyncio.Task | None = None
        try:
            while True:
                if following is None:
                    following = asyncio.ensure_future(anext(events, None))
                waiting = {following, stop}
                silence = self.offer.keep_alive
                done, _ = await asyncio.wait(
                    waiting, timeout=silence, return_when=asyncio.FIRST_COMPLETED
                )
                if stop in done:
                    self._require_end()
                    return
                if not done:
                    yield self.sending.keep_alive
                    continue
                event, following = following.result(), None
                if event is None:
                    return
                if body := self.sending.event(event):
                    yield body
                await pace.throttle(event.rows)
        finally:
            for task in filter(None, (following, stop)):
                task.cancel()
                with suppress(asyncio.CancelledError, StreamTablesError):
                    await task

    def _require_end(self) -> None:
        """A stream that the server ends must not look complete."""
        if not self.sending.tells_errors:
            raise IncompleteStreamError("the server stops")


class _Pace:
    """At most so many rows a second, on average since a second ago."""

    def __init__(self, rows_per_second: int | None) -> None:
        self._rate = rows_per_second
        self._free = time.monotonic()

    async def throttle(self, rows: int) -> None:
        if self._rate is None or not rows:
            return
        now = time.monotonic()
        self._free = max(self._free, now - 1) + rows / self._rate
        if self._free > now:
            await asyncio.sleep(self._free - now)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cut(scope: Scope) -> bool:
    """Close the connection at once, with what was not sent; whether this server can do so."""
    abort = scope.get("state", {}).get("abort")
    if abort is None:
        return False
    abort()
    await asyncio.sleep(0.01)  # until the server has noticed
    return True
