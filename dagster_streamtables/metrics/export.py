"""Exports the metrics: once, as text, or over HTTP, at each scrape."""

from __future__ import annotations

from threading import Thread
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, generate_latest, start_http_server

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.metrics.collector import StreamTablesCollector


def exposition(collector: StreamTablesCollector) -> str:
    """The current metrics in the text format of Prometheus."""
    return generate_latest(_registry(collector)).decode()


def serve(
    collector: StreamTablesCollector, *, port: int, address: str = "127.0.0.1"
) -> tuple[WSGIServer, Thread]:
    """Serve ``GET /metrics`` in a thread until the server is shut down.

    Raises:
        EnvironmentProblem: The port is in use, or not permitted.
    """
    try:
        return start_http_server(port, address, registry=_registry(collector))
    except OSError as error:
        raise EnvironmentProblem(
            f"port {port} of {address} cannot be used", why=str(error), fix="give another one"
        ) from error


def _registry(collector: StreamTablesCollector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry
