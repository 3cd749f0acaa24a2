"""A real server as a process, a table that it follows, and a reader of its events."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from deltalake import DeltaTable

from changes.table import Table
from dagster_streamtables import Lake

PATIENCE = 60.0
CHANGES = "/relations/mart.t/changes"
Row = tuple[tuple[str, Any], ...]
"""The columns of a row and their values."""


class History:
    """A table of which each commit changes some rows, and others change none."""

    def __init__(self, root: Path, name: str = "mart.t") -> None:
        self.location = Lake(str(root)).location(name)
        self.table = Table.new(self.location)
        self.last = 0

    def commit(self) -> int:
        """The next commit; its version."""
        number = self.last + 1
        if number % 7 == 0:
            self.table.compact()
        elif number % 5 == 0:
            self.table.delete(f"k = {number - 2}")
        elif number % 3 == 0:
            self.table.insert((number, "twice"), (number, "twice"))
        else:
            self.table.insert((number, f"row {number}"))
        self.last = self.table.version
        return self.last

    def committed(self) -> dict[int, float]:
        """When each version was."""
        return {n["version"]: n["timestamp"] / 1000 for n in self.table.delta.history()}

    def rows(self, version: int | None = None) -> Counter[Row]:
        table = DeltaTable(self.location, version=version).to_pyarrow_table()
        return Counter(map(by_name, table.to_pylist()))


def by_name(row: dict[str, Any]) -> Row:
    return tuple(sorted(row.items()))


@dataclass
class Heard:
    """A server-sent event."""

    kind: str
    id: str
    data: Any


@dataclass
class Copy:
    """What a browser keeps: it takes rows with the timestamp's last part, and its id with them."""

    rows: Counter[Row] = field(default_factory=Counter)
    id: str = ""
    timestamps: list[int] = field(default_factory=list)
    _waiting: list[dict[str, Any]] = field(default_factory=list)

    def cut(self) -> None:
        self._waiting = []

    def take(self, heard: Heard) -> None:
        if heard.kind == "reset":
            self.rows, self._waiting = Counter(), []
        if heard.kind in ("snapshot", "change"):
            self._waiting += heard.data
        if not heard.id:
            return
        self.id = heard.id
        for row in self._waiting:
            timestamp = row["_timestamp"]
            own = {name: value for name, value in row.items() if name[0] != "_"}
            self.rows[by_name(own)] += row["_diff"]
            if timestamp not in self.timestamps[-1:]:
                self.timestamps.append(timestamp)
        self.rows = Counter({row: count for row, count in self.rows.items() if count})
        self._waiting = []


@dataclass
class Served:
    """A server that can be killed and started again at the same address."""

    root: Path
    options: tuple[str, ...]
    variables: dict[str, str]
    port: int
    process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "dagster_streamtables.cli", "serve"]
        command += ["--root", str(self.root), "--port", str(self.port), *self.options]
        variables = {**os.environ, **self.variables}
        self.process = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            assert self.process.poll() is None, self.process.communicate()[1]
            try:
                httpx.get(f"{self.address}/relations")
                return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.communicate()

    def stop(self) -> str:
        """End it as an operator does; what it said."""
        assert self.process is not None
        self.process.terminate()
        return self.process.communicate(timeout=PATIENCE)[1]

    @contextmanager
    def events(self, path: str, last_id: str = "", **headers: str) -> Iterator[Iterator[Heard]]:
        if last_id:
            headers["Last-Event-ID"] = last_id
        with httpx.stream(
            "GET", f"{self.address}{path}", headers=headers, timeout=PATIENCE
        ) as answer:
            assert answer.status_code == 200, answer.read()
            yield heard(answer.iter_lines())


def heard(lines: Iterator[str]) -> Iterator[Heard]:
    """The events of a stream; one that only moves the position has no kind."""
    kind, id_, data = "", "", []
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            id_ = value
        elif name == "data":
            data.append(value)
        elif not line and (kind or id_):
            yield Heard(kind, id_, json.loads("\n".join(data)) if data else None)
            kind, id_, data = "", "", []


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "lake")


Serve = Callable[..., Served]
"""Starts a server of the lake, with these options and variables of the environment."""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Its servers are gone after the test."""
    started: list[Served] = []

    def start(*options: str, **variables: str) -> Served:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        served = Served(tmp_path / "lake", options or ("--relation", "mart.t"), variables, port)
        started.append(served)
        served.start()
        return served

    yield start
    for served in started:
        if served.process is not None and served.process.poll() is None:
            served.kill()
