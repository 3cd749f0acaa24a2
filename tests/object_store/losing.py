"""`python losing.py PORT HOST:PORT` passes requests on to a store.

The first answer to each commit of a Delta table is lost, as where a connection ends too early.
"""

from __future__ import annotations

import http.client
import http.server
import re
import sys

_COMMIT = re.compile(r"/_delta_log/\d{20}\.json")
_OURS = ("connection", "content-length", "host", "transfer-encoding")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = ""
    lost: set[str]

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _OURS}
        connection = http.client.HTTPConnection(self.store, timeout=30)
        connection.request(self.command, self.path, body or None, headers)
        answer = connection.getresponse()
        content = answer.read()
        if self.command == "PUT" and _COMMIT.search(self.path) and self.path not in self.lost:
            self.lost.add(self.path)
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OURS:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(content)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    Handler.store, Handler.lost = sys.argv[2], set()
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
