"""What a server offers, and who may read it: relations, limits, token, host names, other sites."""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from starlette.datastructures import Headers, QueryParams
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dagster_streamtables.errors import RefusedOperation, one_line
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.serve.event_stream import error_fields

_GIVEN = re.compile(r"(?P<name>[^\s=]+)=(?P<text>.+)", re.DOTALL)
_NAME = re.compile(r"[^\s=/?#%\x00-\x20\x7f-\x9f]+")


@dataclass(frozen=True)
class Limits:
    """The limits of readers. A slow reader holds one batch: the next is read when it was sent."""

    connections: int = 100
    rows_per_second: int | None = 100_000
    """Of each connection."""
    seconds_unread: float = 60.0
    """A reader that takes nothing for this time is disconnected."""
    most_rows: int = 8_192
    """Of one event."""
    body_bytes: int = 65_536
    """The longest query."""

    @property
    def batch_rows(self) -> int:
        """At most the rows of a second, so that a pause between two batches is short."""
        return min(self.most_rows, self.rows_per_second or self.most_rows)


@dataclass(frozen=True)
class ServerConfig:
    """What is served, to which readers."""

    lake: Lake
    relations: dict[str, str]
    """Name → table, path or SELECT."""
    queries: bool = False
    """Whether readers may send their own SELECT."""
    token: str | None = None
    """The secret of readers; None for no token."""
    hosts: frozenset[str] | None = None
    """The host names that requests may use; None for any."""
    limits: Limits = field(default_factory=Limits)
    keep_alive: float = 15.0
    """Seconds of silence after which a comment is sent."""


def relations_of(given: Iterable[str]) -> dict[str, str]:
    """``mart.revenue``, or ``name=SELECT …`` → name and relation.

    >>> relations_of(["mart.revenue", "big=SELECT * FROM t WHERE a = 1"])
    {'mart.revenue': 'mart.revenue', 'big': 'SELECT * FROM t WHERE a = 1'}

    Raises:
        RefusedOperation: A name cannot stand in an address, or is given twice.
    """
    found: dict[str, str] = {}
    for each in given:
        parts = _GIVEN.fullmatch(each.strip())
        name, text = (parts["name"], parts["text"]) if parts else (each.strip(), each.strip())
        if not _NAME.fullmatch(name):
            raise RefusedOperation(
                f'"{one_line(name[:80])}" cannot be the name of a served relation',
                why="the name is a part of its address: it has no spaces, and none of / ? # %",
                fix='give it a name, as in --relation "big_orders=SELECT …"',
            )
        if name in found:
            raise RefusedOperation(
                f'two served relations are called "{one_line(name)}"',
                fix='give one of them another name, as in --relation "other=SELECT …"',
            )
        found[name] = text
    return found


class AccessPolicy:
    """Answers requests that it refuses; the application gets all others."""

    def __init__(self, app: ASGIApp, offer: ServerConfig) -> None:
        self._app, self._offer = app, offer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(Headers(scope=scope), QueryParams(scope["query_string"]))
        if refused is None:
            await self._app(scope, receive, send)
            return
        status, error = refused
        headers = {"www-authenticate": "Bearer"} if status == 401 else None
        await JSONResponse(error_fields(error), status, headers)(scope, receive, send)

    def _refusal(self, headers: Headers, query: QueryParams) -> tuple[int, RefusedOperation] | None:
        if self._offer.hosts is not None and _host(headers) not in self._offer.hosts:
            return 403, RefusedOperation(
                "this server is not addressed by this name",
                why="a page of another site could otherwise read it, through a name of its own",
                fix=f"address it as {' or '.join(sorted(self._offer.hosts))}",
            )
        if _is_foreign(headers):
            return 403, RefusedOperation(
                "a page of another site may not read this server",
                fix="open the server's own page, or read it from a program",
            )
        if self._offer.token is not None and not _knows(self._offer.token, headers, query):
            return 401, RefusedOperation(
                "the token is missing or wrong",
                fix="send it as the header Authorization: Bearer TOKEN, or as ?token=TOKEN",
            )
        return None


def _host(headers: Headers) -> str:
    """The name that the reader used, without the port."""
    host = headers.get("host", "").lower()
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another site asks; following a link is allowed."""
    mode = headers.get("sec-fetch-mode")
    return headers.get("sec-fetch-site") == "cross-site" and mode != "navigate"


def _knows(token: str, headers: Headers, query: QueryParams) -> bool:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        given = query.get("token", "")
    return hmac.compare_digest(given.strip().encode(), token.encode())


def hosts_of(host: str) -> frozenset[str] | None:
    """The names by which a server on this address is addressed; None for any, beyond loopback.

    >>> sorted(hosts_of("127.0.0.1")), hosts_of("0.0.0.0")
    (['127.0.0.1', '[::1]', 'localhost'], None)
    """
    return frozenset({"localhost", "127.0.0.1", "[::1]", host}) if is_loopback(host) else None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_token(host: str, token: str | None) -> None:
    """
    Raises:
        RefusedOperation: Other machines could read without a token.
    """
    if token is None and not is_loopback(host):
        raise RefusedOperation(
            f"without a token, {host} is not served",
            why="everybody who reaches this address could read the relations",
            fix="give --token-file, or set STREAMTABLES_SERVE_TOKEN; or serve 127.0.0.1",
        )
    if token is not None and len(token) < 16:
        raise RefusedOperation(
            "the token is too short",
            why=f"it has {len(token)} characters, and somebody who tries many could find it",
            fix="take at least 16, as from: openssl rand -hex 32",
        )
