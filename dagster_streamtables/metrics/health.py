"""Metrics, and whether a process works, over HTTP on one port."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.metrics.collector import StreamTablesCollector


def serve_with_health(
    collector: StreamTablesCollector,
    health: Callable[[], Mapping[str, Any]],
    *,
    port: int,
    address: str = "127.0.0.1",
) -> WSGIServer:
    """Serve ``GET /metrics`` and ``GET /health`` in a daemon thread until the server is shut down.

    Args:
        collector: What it collects at each scrape.
        health: What is answered as JSON: with the status 503, unless ``healthy`` in it is true.
        port: Where to listen; 0 takes a free one.
        address: Where to listen.

    Raises:
        EnvironmentProblem: The port is in use, or not permitted.
    """
    app = _app(collector, health)
    try:
        server = make_server(address, port, app, _Server, _Silent)
    except OSError as error:
        raise EnvironmentProblem(
            f"port {port} of {address} cannot be used", why=str(error), fix="give another one"
        ) from error
    Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server


def _app(
    collector: StreamTablesCollector, health: Callable[[], Mapping[str, Any]]
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    registry = CollectorRegistry()
    registry.register(collector)
    metrics = make_wsgi_app(registry)

    def answer(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environment["PATH_INFO"]
        if path == "/metrics":
            return metrics(environment, start)
        if path != "/health":
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"GET /health or /metrics\n"]
        found = health()
        status = "200 OK" if found["healthy"] else "503 Service Unavailable"
        start(status, [("Content-Type", "application/json")])
        return [json.dumps(found, default=str).encode()]

    return answer


class _Server(ThreadingMixIn, WSGIServer):
    """A scrape reads logs, and must not hold up who asks for health."""

    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass
