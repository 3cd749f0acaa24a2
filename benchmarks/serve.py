"""A hundred subscribers of one server: is its memory flat, and how late are they?

    python -m benchmarks.serve [--subscribers 100] [--minutes 10]

`t` changes once a second: rows come, and rows change. Nine tenths of the subscribers follow the
table, the others a SELECT that groups it. At the end each must hold what the table, or the query,
has.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow as pa
import typer
from deltalake import DeltaTable, write_deltalake
from rich.table import Table

from benchmarks.results import CONSOLE
from dagster_streamtables import Lake

_QUERY = "SELECT k % 10 AS k, COUNT(*) AS copies, MAX(at) AS at FROM t GROUP BY k % 10"
_MB = 2**20
_PATIENCE = 120.0
_EVERY = 1.0


def _by_name(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The columns of a relation and their values."""
    return tuple(sorted(item for item in row.items() if item[0][0] != "_"))


@dataclass
class Reader:
    """What one subscriber holds, and how long each change took to reach it."""

    relation: str
    rows: Counter[tuple[Any, ...]] = field(default_factory=Counter[tuple[Any, ...]])
    seconds: list[float] = field(default_factory=list[float])
    last: int = 0

    async def follow(self, client: httpx.AsyncClient) -> None:
        path = f"/relations/{self.relation}/changes"
        async with client.stream("GET", path, timeout=None) as answer:
            answer.raise_for_status()
            kind, data = "", list[str]()
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                kind = value if name == "event" else kind
                if name == "data":
                    data.append(value)
                elif not line:
                    self._take(kind, json.loads("".join(data) or "[]"))
                    kind, data = "", []

    def _take(self, kind: str, data: Any) -> None:
        now = time.time()
        if kind == "reset":
            self.rows.clear()
        if kind not in ("snapshot", "change"):
            return
        for row in data:
            self.rows[_by_name(row)] += row["_diff"]
            self.last = max(self.last, row["at"])
        if kind == "change":
            self.seconds.append(now - max(row["at"] for row in data if row["_diff"] > 0) / 1e6)

    @property
    def held(self) -> Counter[tuple[Any, ...]]:
        return +self.rows


class Writer:
    """Changes the table once a second; each row has the microsecond of its commit."""

    def __init__(self, place: str) -> None:
        self.place, self.number = place, 0
        types = pa.schema([("k", pa.int64()), ("at", pa.int64())])
        feed = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(place, types.empty_table(), configuration=feed)

    def commit(self) -> int:
        self.number += 1
        now = time.time_ns() // 1000
        if self.number % 10 == 0:
            DeltaTable(self.place).update({"at": f"{now}"}, predicate=f"k % 70 = {self.number % 7}")
        keys = [self.number * 5 + each for each in range(5)]
        now = time.time_ns() // 1000
        rows = pa.table({"k": keys, "at": pa.array([now] * 5, pa.int64())})
        write_deltalake(self.place, rows, mode="append")
        return now


def main(subscribers: int = 100, minutes: float = 10) -> None:
    """Measure, and print the table."""
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as folder:
        lake = Lake(Path(folder))
        writer = Writer(lake.location("t"))
        writer.commit()
        with _served(folder) as (address, process):
            asyncio.run(_watch(address, process, writer, subscribers, minutes * 60))


async def _watch(
    address: str, process: psutil.Process, writer: Writer, subscribers: int, seconds: float
) -> None:
    readers = [Reader("t" if n % 10 else "by_digit") for n in range(subscribers)]
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=address, limits=limits) as client:
        tasks = [asyncio.create_task(each.follow(client)) for each in readers]
        await _until(lambda: all(each.last for each in readers), tasks)
        memory: list[float] = []
        end = time.monotonic() + seconds
        cpu = sum(process.cpu_times()[:2])
        last = 0
        while time.monotonic() < end:
            last = await asyncio.to_thread(writer.commit)
            memory.append(process.memory_info().rss / _MB)
            await asyncio.sleep(_EVERY)
        await _until(lambda: all(each.last >= last for each in readers), tasks)
        cpu = sum(process.cpu_times()[:2]) - cpu
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    _require_equal(readers, writer.place)
    _print(readers, memory, cpu / seconds)


async def _until(happened: Callable[[], bool], tasks: Sequence[asyncio.Task[None]]) -> None:
    end = time.monotonic() + _PATIENCE
    while not happened():
        for task in tasks:
            if task.done():
                await task
                raise RuntimeError("a stream ended")
        if time.monotonic() > end:
            raise TimeoutError("some subscribers did not get the last change")
        await asyncio.sleep(0.1)


@contextmanager
def _served(folder: str) -> Iterator[tuple[str, psutil.Process]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dagster_streamtables.cli", "serve", "--root", folder]
    options = ["--relation", "t", "--relation", f"by_digit={_QUERY}", "--port", str(port)]
    process = subprocess.Popen([*command, *options, "--max-connections", "10000"])
    address = f"http://127.0.0.1:{port}"
    try:
        _await_answer(address)
        yield address, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def _await_answer(address: str) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            httpx.get(f"{address}/relations")
            return
        except httpx.TransportError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _require_equal(readers: Sequence[Reader], place: str) -> None:
    rows = DeltaTable(place).to_pyarrow_table().to_pylist()
    table = Counter(_by_name(row) for row in rows)
    groups: dict[int, tuple[int, int]] = {}
    for row in rows:
        copies, at = groups.get(row["k"] % 10, (0, 0))
        groups[row["k"] % 10] = copies + 1, max(at, row["at"])
    query = Counter(
        _by_name({"k": k, "copies": copies, "at": at}) for k, (copies, at) in groups.items()
    )
    for reader in readers:
        expected = table if reader.relation == "t" else query
        assert reader.held == expected, f"a subscriber of {reader.relation} holds other rows"


def _print(readers: Sequence[Reader], memory: Sequence[float], load: float) -> None:
    shown = Table("relation", "subscribers", "changes", "p50 s", "p95 s", "max s")
    for relation in dict.fromkeys(each.relation for each in readers):
        of_it = [each for each in readers if each.relation == relation]
        seconds = sorted(each for reader in of_it for each in reader.seconds)
        p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
        told = (statistics.median(seconds), p95, seconds[-1])
        count = f"{len(seconds):,}"
        shown.add_row(relation, str(len(of_it)), count, *(f"{each:.2f}" for each in told))
    CONSOLE.print(shown)
    tenth = max(1, len(memory) // 10)
    parts = (memory[i : i + tenth] for i in range(0, len(memory), tenth))
    held = [f"{statistics.mean(part):.0f}" for part in parts]
    CONSOLE.print(f"Memory of the server in MB, by tenths of the time: {', '.join(held)}")
    CONSOLE.print(
        f"Processor of the server: {load:.0%} of a core. Every subscriber holds the rows."
    )


if __name__ == "__main__":
    typer.run(main)
