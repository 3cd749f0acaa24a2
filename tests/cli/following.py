"""A table with a history, and the command that follows it, here or in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from changes.table import FEED, KV
from cli.command_line import CommandLine

COMMAND = (sys.executable, "-m", "dagster_streamtables.cli")
TOKEN = re.compile(r"resume with: --resume (\S+)")


class Followed(CommandLine):
    """Table ``shop.t``: version 1 has (1, a) and (2, b); 2 makes A of a; 3 deletes b; 4 adds
    (3, c) twice."""

    @property
    def place(self) -> str:
        return self.lake.location("shop.t")

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.place)

    def add(self, *rows: tuple[int, str]) -> None:
        table = pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows], KV)
        write_deltalake(self.place, table, mode="append", configuration=FEED)

    def rows(self, *arguments: str) -> list[tuple[Any, ...]]:
        """What is there now."""
        return rows_of(self.said("subscribe shop.t --format ndjson --timeout 0", *arguments))

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [*COMMAND, "subscribe", "--root", self.root, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                stream.close()


def rows_of(lines: str) -> list[tuple[Any, ...]]:
    """Rows as tuples: what a subscription adds, and then the other columns by name."""
    return [_by_name(json.loads(line)) for line in lines.splitlines()]


def _by_name(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in sorted(row, key=lambda name: "" if name[0] == "_" else name))


def accumulated(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for _, diff, *row in rows:
        found[tuple(row)] += diff
    return +found


def lines(process: subprocess.Popen[str], number: int) -> str:
    """The first lines that it writes."""
    assert process.stdout is not None
    return "".join(process.stdout.readline() for _ in range(number))


def interrupted(
    process: subprocess.Popen[str], with_: signal.Signals = signal.SIGINT
) -> tuple[str, str]:
    """What else it wrote, to stdout and to stderr."""
    process.send_signal(with_)
    # Not `communicate`, which would lose the lines that were read ahead.
    assert process.stdout is not None and process.stderr is not None
    rest, told = process.stdout.read(), process.stderr.read()
    assert process.wait(60) == 0, told
    return rest, told


def token_in(told: str) -> str:
    [found] = TOKEN.findall(told)
    return found


def wait_for(happened: Any) -> None:
    """For what another process does; a test that waits in vain fails."""
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)
