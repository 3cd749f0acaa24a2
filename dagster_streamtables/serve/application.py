"""The ASGI application: its routes, and the response that sends one stream of events."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dagster_streamtables.errors import (
    EnvironmentProblem,
    HistoryUnavailable,
    InvalidDefinition,
    LostRelation,
    RefusedOperation,
    StreamTablesError,
)
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from dagster_streamtables.serve.access_policy import AccessPolicy, ServerConfig
from dagster_streamtables.serve.event_feed import EventFeed, SharedReaders
from dagster_streamtables.serve.event_stream import EventEncoder, encoder_for, error_fields
from dagster_streamtables.serve.request import Parameters, read_request

PAGE = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
"""Its script requests all data, and shows it as text."""


def _sources(tag: str) -> str:
    """The hashes of the page's own scripts or styles, so that no other is run."""
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", PAGE, flags=re.S)
    digests = (hashlib.sha256(each.encode()).digest() for each in found)
    return " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_sources('script')}",
        f"style-src {_sources('style')}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


_STATUS: tuple[tuple[type[StreamTablesError], int], ...] = (
    (HistoryUnavailable, 410),
    (LostRelation, 410),
    (MissingSource, 404),
    (RefusedOperation, 400),
    (InvalidDefinition, 400),
    (EnvironmentProblem, 503),
)


class HttpError(Exception):
    """An answer instead of a stream."""

    def __init__(self, status: int, error: StreamTablesError) -> None:
        super().__init__(error.what)
        self.status, self.error = status, error


class RouteHandlers:
    def __init__(self, offer: ServerConfig) -> None:
        self.offer = offer
        self.readers = SharedReaders(offer)
        self.stopping = asyncio.Event()
        self.connections = 0

    async def relations(self, request: Request) -> Response:
        names = self.offer.relations
        found = [{"name": name, "changes": f"/relations/{quote(name)}/changes"} for name in names]
        return JSONResponse({"relations": found, "queries": self.offer.queries})

    async def page(self, request: Request) -> Response:
        name = request.path_params.get("name")
        if name is not None:
            self._relation(name)
        headers = {
            "content-security-policy": CONTENT_SECURITY_POLICY,
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "cache-control": "no-store",
        }
        return HTMLResponse(PAGE, headers=headers)

    async def changes(self, request: Request) -> Response:
        relation = self._relation(request.path_params["name"])
        return await self._stream(request, relation, _parameters(request))

    async def subscribe(self, request: Request) -> Response:
        if not self.offer.queries:
            raise HttpError(403, RefusedOperation(
                "this server takes no queries",
                why="it was started without --allow-queries",
                fix="read one of its relations: GET /relations lists them",
            ))  # fmt: skip
        given = dict(_parameters(request))
        if request.method == "POST":
            given |= await self._body(request)
        query = [*given.pop("q", []), *given.pop("query", [])]
        if len(query) != 1:
            raise RefusedOperation(
                "a subscription needs one query", fix='send {"query": "SELECT …"}, or ?q=SELECT…'
            )
        return await self._stream(request, query[0], given)

    async def _stream(self, request: Request, relation: str, given: Parameters) -> Any:
        header = request.headers.get("last-event-id")
        asked, start = read_request(relation, given, last_event_id=header)
        self._take_connection()
        feed = EventFeed(self.offer, self.readers, asked, start)
        try:
            subscription = await feed.open()
            if feed.is_over and start.resume is not None:
                # It had everything: with this status an EventSource does not reconnect.
                feed.close()
                self._free_connection()
                return Response(status_code=204)
            sending = encoder_for(request.headers.get("accept", ""))(subscription.schema)
        except BaseException:
            feed.close()
            self._free_connection()
            raise
        return EventStreamResponse(self.offer, feed, sending, self.stopping, self._free_connection)

    def _take_connection(self) -> None:
        if self.stopping.is_set():
            raise HttpError(503, EnvironmentProblem("the server stops", fix="try again later"))
        if self.connections >= self.offer.limits.connections:
            raise HttpError(429, RefusedOperation(
                f"all {self.offer.limits.connections} connections of this server are in use",
                fix="close another one, try again later, or raise --max-connections",
            ))  # fmt: skip
        self.connections += 1

    def _free_connection(self) -> None:
        self.connections -= 1

    def _relation(self, name: str) -> str:
        if name not in self.offer.relations:
            raise HttpError(404, RefusedOperation(
                f'no relation "{name[:80]}" is served', fix="GET /relations lists those that are"
            ))  # fmt: skip
        return self.offer.relations[name]

    async def _body(self, request: Request) -> dict[str, list[str]]:
        """The members of a JSON object, as parameters."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > self.offer.limits.body_bytes:
                raise HttpError(413, RefusedOperation(
                    f"a query has at most {self.offer.limits.body_bytes:,} bytes",
                    fix="write a shorter query",
                ))  # fmt: skip
        try:
            values = json.loads(body)
            if not isinstance(values, dict):
                raise ValueError("it is no object")
        except ValueError as error:
            raise RefusedOperation(
                "the body is not a JSON object", why=str(error), fix='send {"query": "SELECT …"}'
            ) from error
        return {name: _texts(value) for name, value in values.items()}


def application(offer: ServerConfig) -> Starlette:
    """The ASGI application. `app.state.server.stopping` ends its streams."""
    server = RouteHandlers(offer)
    app = Starlette(
        routes=[
            Route("/", server.page),
            Route("/relations", server.relations),
            Route("/relations/{name}", server.page),
            Route("/relations/{name}/changes", server.changes),
            Route("/subscribe", server.subscribe, methods=["GET", "POST"]),
        ],
        middleware=[Middleware(AccessPolicy, offer=offer)],
        exception_handlers={
            HttpError: _answer_http_error,
            StreamTablesError: _answer_error,
            404: _nowhere,
        },
    )
    app.state.server = server
    return app


async def _answer_http_error(_: Request, error: Any) -> Response:
    headers = {"retry-after": "5"} if error.status in (429, 503) else None
    return JSONResponse(error_fields(error.error), error.status, headers)


async def _answer_error(_: Request, error: Any) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse(error_fields(error), status)


async def _nowhere(_: Request, error: Any) -> Response:
    error = RefusedOperation("there is nothing at this address", fix="GET / is a page with links")
    return JSONResponse(error_fields(error), 404)


def _parameters(request: Request) -> Mapping[str, Sequence[str]]:
    query = request.query_params
    return {name: query.getlist(name) for name in query}


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


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
    """Sends a feed, and releases it whatever happens."""

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
                    if not self.sending.tells_errors:
                        raise IncompleteStreamError("the server stops")
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


class _Pace:
    """At most this number of rows a second, on average since a second ago."""

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
    """Close the connection at once, with unsent data; false if this server cannot do so."""
    abort = scope.get("state", {}).get("abort")
    if abort is None:
        return False
    abort()
    await asyncio.sleep(0.01)  # until the server has noticed
    return True
