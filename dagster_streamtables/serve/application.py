"""The routes, as an ASGI application: no logic but HTTP's."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from dagster_streamtables.errors import (
    EnvironmentProblem,
    HistoryUnavailable,
    InvalidDefinition,
    LostRelation,
    RefusedOperation,
    StreamTablesError,
)
from dagster_streamtables.runtime.errors.tables import MissingSource
from dagster_streamtables.serve.answer import EventStreamResponse
from dagster_streamtables.serve.channel import SharedReaders
from dagster_streamtables.serve.feed import EventFeed
from dagster_streamtables.serve.guard import AccessPolicy
from dagster_streamtables.serve.offer import ServerConfig
from dagster_streamtables.serve.request import Parameters, read_request
from dagster_streamtables.serve.sending import encoder_for, error_fields

PAGE = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
"""It knows nothing: its script asks for everything, and shows it as text."""


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
    """What is answered in place of a stream."""

    def __init__(self, status: int, error: StreamTablesError) -> None:
        super().__init__(error.what)
        self.status, self.error = status, error


class RouteHandlers:
    """What the routes share."""

    def __init__(self, offer: ServerConfig) -> None:
        self.offer = offer
        self.channels = SharedReaders(offer)
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
        feed = EventFeed(self.offer, self.channels, asked, start)
        try:
            subscription = await feed.open()
            if feed.is_over and start.resume is not None:
                # It had everything: with this status an EventSource does not come again.
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
