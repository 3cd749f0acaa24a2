"""The application on a socket."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dagster_streamtables.errors import EnvironmentProblem, StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.serve.access_policy import ServerConfig
from dagster_streamtables.serve.application import application
from dagster_streamtables.serve.request import RelationRequest, Start

TOKEN_VARIABLE = "STREAMTABLES_SERVE_TOKEN"
_SPARE = 20
"""Connections beyond those of streams: for pages, and for telling that all are in use."""
_STOP_SECONDS = 5


class _Connection(H11Protocol):
    """A connection that an application can cut: closing it would wait for the reader."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, "abort": transport.abort}


class _Stoppable(uvicorn.Server):
    """Ends the streams first, which would never end on their own."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: Any = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)


def run(offer: ServerConfig, *, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""
    app = application(offer)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=_Connection,
        ws="none",
        lifespan="off",
        log_level="warning",
        # It would have the tokens in addresses.
        access_log=False,
        server_header=False,
        limit_concurrency=offer.limits.connections + _SPARE,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    threading.Thread(target=_look_at, args=(offer,), daemon=True).start()
    with suppress(KeyboardInterrupt):  # which uvicorn raises again when it has stopped
        _Stoppable(config, app.state.server.stopping).run()


def _look_at(offer: ServerConfig) -> None:
    """Log at once which relations cannot be read, and prepare the others for their first reader."""
    for name, relation in offer.relations.items():
        try:
            RelationRequest(relation).subscribe(offer, Start(snapshot=False)).close()
        except StreamTablesError as error:
            logger.warning('relation "%s" cannot be read yet: %s', name, error)


def token_of(file: Path | None) -> str | None:
    """The token in a file, or else in the environment; never on the command line, which other users
    of the machine can read.

    Raises:
        EnvironmentProblem: The file cannot be read, or is empty.
    """
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentProblem(
            f"the token cannot be read from {file}", why=str(error), fix="name a file of text"
        ) from error
    if not token:
        raise EnvironmentProblem(
            f"{file} has no token", fix="write one into it, as from: openssl rand -hex 32"
        )
    return token
