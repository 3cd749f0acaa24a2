"""`python -m qa.object_store.server PORT AUDIT`: a store that speaks S3's protocol.

moto looks whether an object exists, and then stores it, in several threads. Here one lock is around
each request, so that a conditional put is what it is on S3. Each put of a commit of a Delta
table is a line of the audit: what was there before, what is there now, and what was answered.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import re
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.s3.models import s3_backends
from werkzeug.serving import run_simple
from werkzeug.test import run_wsgi_app
from werkzeug.wrappers import Response

from qa.object_store.faults import REFUSALS, Chance, Faults

COMMIT = re.compile(r"_delta_log/(\d{20})\.json$")
CONTROL = "/-/"
_KINDS = {
    "commit": COMMIT,
    "checksum": re.compile(r"_delta_log/.*\.crc"),
    "checkpoint": re.compile(r"_delta_log/(_last_checkpoint|.*checkpoint.*)"),
    "probe": re.compile(r"_delta_log/_streamtables_probe"),
    "log folder": re.compile(r"_delta_log/?$"),
    "data": re.compile(r"\.parquet$"),
}


@dataclass(frozen=True)
class Asked:
    """A request for an object, or for a list of them."""

    method: str
    bucket: str
    key: str
    query: dict[str, list[str]]
    agent: str
    body: bytes

    @classmethod
    def read(cls, environ: dict[str, Any]) -> Asked:
        """
        Raises:
            ConnectionError: The client died before it had sent all.
        """
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        if len(body) < length:
            raise ConnectionError
        _, bucket, key = (*environ["PATH_INFO"].split("/", 2), "", "")[:3]
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        agent = environ.get("HTTP_USER_AGENT", "")
        return cls(environ["REQUEST_METHOD"], bucket, key, query, agent, body)

    @property
    def writes(self) -> bool:
        return self.method in ("PUT", "POST", "DELETE")

    @property
    def operation(self) -> str:
        if self.method == "GET" and (not self.key or "list-type" in self.query):
            return "LIST"
        return self.method

    @property
    def kind(self) -> str:
        """What the key, or the prefix of a list, is for."""
        name = self.key or self.query.get("prefix", [""])[0]
        return next((kind for kind, form in _KINDS.items() if form.search(name)), "other")

    @property
    def makes(self) -> bool:
        """Whether it makes a whole object: a part of one is none yet."""
        made_of_parts = self.method == "POST" and "uploadId" in self.query
        return made_of_parts or (self.method == "PUT" and "partNumber" not in self.query)


class Store:
    def __init__(self, audit: Path) -> None:
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.lock = threading.Lock()
        self.audit = audit.open("a", buffering=1)
        self.chance = Chance()
        self.counts: Counter[str] = Counter()
        self.commits: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(CONTROL):
            return self.control(environ)(environ, start_response)
        try:
            asked = Asked.read(environ)
        except ConnectionError:
            return _cut(environ, start_response)
        self.chance.pause()
        code = (
            "SlowDown" if self.chance.is_slow() else self.chance.refusal(asked.writes, asked.kind)
        )
        if code:
            answer: Response | None = _refused(code)
        else:
            with self.lock:
                answer = (self.written if asked.writes else self.answer)(asked, environ)
            self.hold(asked)
        status = answer.status_code if answer else 0
        self.counts[f"{asked.bucket} {asked.operation} {asked.kind} {status}"] += 1
        return answer(environ, start_response) if answer else _cut(environ, start_response)

    def written(self, asked: Asked, environ: dict[str, Any]) -> Response | None:
        """The answer of a write, or nothing if it is lost on the way."""
        commit = COMMIT.search(asked.key) is not None
        if commit and asked.makes and self.met("conflict", asked):
            return _refused("ConditionalRequestConflict")
        there = _stored(asked)
        # Before the put, which closes the file of what it overwrites.
        before = _digest(there) if commit else None
        conditional = "HTTP_IF_NONE_MATCH" in environ
        if self.chance.faults.unconditional:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        answer = self.answer(asked, environ)
        # The same parts may be put together again: nothing changes.
        made = answer.status_code == 200 and asked.makes and _stored(asked) is not there
        if commit and (made or (asked.makes and answer.status_code != 200) or _deletes(asked)):
            self.note(asked, answer.status_code, before, conditional)
        if not made:
            return answer
        if asked.kind == "data" and self.chance.faults.after_data:
            self.chance.change(replace(self.chance.faults, after_data=False))
        if commit and self.met("lost", asked):
            return None
        return _refused("InternalError") if commit and self.met("failed", asked) else answer

    def met(self, name: str, asked: Asked) -> bool:
        share = getattr(self.chance.faults, name)
        return self.chance.happens(name, share, asked.agent, asked.key)

    def answer(self, asked: Asked, environ: dict[str, Any]) -> Response:
        environ["wsgi.input"] = io.BytesIO(asked.body)
        content, status, headers = run_wsgi_app(self.moto, environ, buffered=True)
        return Response(list(content), status, headers)

    def note(self, asked: Asked, status: int, before: str | None, conditional: bool) -> None:
        """A line of the audit, and the time of a commit where the clock is wrong."""
        now = _stored(asked)
        if status == 200 and now is not None:
            self.commits[asked.bucket] += before is None
            if self.chance.faults.clock:
                sign = 1 if self.commits[asked.bucket] % 2 else -1
                now.last_modified += timedelta(seconds=sign * self.chance.faults.clock)
        line = {
            "at": time.time(),
            "method": asked.method,
            "bucket": asked.bucket,
            "key": asked.key,
            "status": status,
            "existed": before is not None,
            "before": before,
            "digest": _digest(now),
            "conditional": conditional,
            "agent": asked.agent[:60],
        }
        self.audit.write(json.dumps(line) + "\n")

    def hold(self, asked: Asked) -> None:
        if asked.writes and self.chance.faults.held and COMMIT.search(asked.key):
            self.chance.met["held"] += 1
            time.sleep(self.chance.faults.held)

    def control(self, environ: dict[str, Any]) -> Response:
        what, _, name = environ["PATH_INFO"].removeprefix(CONTROL).partition("/")
        if what == "faults":
            length = int(environ.get("CONTENT_LENGTH") or 0)
            self.chance.change(Faults(**json.loads(environ["wsgi.input"].read(length))))
        elif what == "drop":
            with self.lock:
                s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets.pop(name, None)
                s3_backends.bucket_accounts.pop(name, None)
        said = {"met": self.chance.met, "counts": self.counts, "commits": self.commits}
        return Response(json.dumps(said), mimetype="application/json")


def _deletes(asked: Asked) -> bool:
    """A commit, and no upload of parts that is given up."""
    return asked.method == "DELETE" and "uploadId" not in asked.query


def _stored(asked: Asked) -> Any:
    bucket = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets.get(asked.bucket)
    return bucket and bucket.keys.get(asked.key)


def _digest(stored: Any) -> str | None:
    if stored is None:
        return None
    return hashlib.sha256(stored.value).hexdigest()


def _refused(code: str) -> Response:
    said = f"<Error><Code>{code}</Code><Message>{code}, as the suite asked for</Message></Error>"
    return Response(said, REFUSALS[code], mimetype="application/xml")


def _cut(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """End the connection: what is written to it now goes nowhere."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return Response()(environ, start_response)


def main(port: str, audit: str) -> None:
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    store = Store(Path(audit))
    run_simple("127.0.0.1", int(port), store, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(*sys.argv[1:])
