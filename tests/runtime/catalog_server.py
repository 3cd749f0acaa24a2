"""A server that answers as the documentation of Unity Catalog's REST API says it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

TOKEN = "secret-of-a-catalog"
_TABLES = "/api/2.1/unity-catalog/tables/"
_CREDENTIALS = "/api/2.1/unity-catalog/temporary-table-credentials"


@dataclass
class CatalogServer:
    """What it answers, which a test may change."""

    address: str
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    credentials: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    """Of every answer, unless it is 200."""
    asked: list[str] = field(default_factory=list)
    """The paths of the requests so far."""

    def add(self, name: str, location: str, **more: Any) -> None:
        told = {
            "name": name.rpartition(".")[2],
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "storage_location": location,
            "table_id": f"id of {name}",
        }
        self.tables[name] = told | more


@contextmanager
def catalog_server() -> Iterator[CatalogServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            table = served.tables.get(self.path.removeprefix(_TABLES))
            self._answer(table if self.path.startswith(_TABLES) else None)

        def do_POST(self) -> None:
            served.asked.append(self.path)
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            ids = {table["table_id"] for table in served.tables.values()}
            known = self.path == _CREDENTIALS and body["table_id"] in ids
            self._answer(served.credentials if known and body["operation"] == "READ" else None)

        def _answer(self, found: dict[str, Any] | None) -> None:
            status = served.status
            if status == 200 and self.headers["Authorization"] != f"Bearer {TOKEN}":
                status = 401
            elif status == 200 and found is None:
                status = 404
            said = found if status == 200 else {"error_code": "SOME_ERROR", "message": "no"}
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = CatalogServer(f"http://127.0.0.1:{server.server_port}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
