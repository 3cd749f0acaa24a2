"""`streamtables subscribe --watch`: the contents in a terminal, redrawn as they change."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from cli.following import COMMAND, Followed, wait_for
from dagster_streamtables.cli.watch import Contents

pytestmark = pytest.mark.process

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal of some size, and all that was written to it."""

    def __init__(self, lines: int, columns: int) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.raw = ""

    def shows(self, *texts: str) -> Callable[[], bool]:
        def shown() -> bool:
            while select.select([self.master], [], [], 0)[0]:
                self.raw += os.read(self.master, 65_536).decode()
            return all(text in self.text for text in texts)

        return shown

    @property
    def text(self) -> str:
        return _ESCAPE.sub("", self.raw).replace("\r", "")

    def close(self) -> None:
        os.close(self.master)
        os.close(self.slave)


@contextmanager
def watching(
    t: Followed, *options: str, lines: int = 20, columns: int = 80
) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    terminal = Terminal(lines, columns)
    known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [*COMMAND, "subscribe", "shop.t", "--root", str(t.root), "--watch", *options],
        stdin=terminal.slave, stdout=terminal.slave, stderr=terminal.slave,
        env={**known, "TERM": "xterm-256color"},
    )  # fmt: skip
    try:
        yield terminal, process
    finally:
        process.kill()
        process.wait()
        terminal.close()


def test_contents_are_redrawn_until_an_interrupt(t: Followed) -> None:
    with watching(t) as (terminal, process):
        wait_for(terminal.shows("3 rows", "timestamp 4", "copies"))
        t.add((4, "delta"))
        wait_for(terminal.shows("4 rows", "timestamp 5", "delta"))
        assert "1;32m" in terminal.raw, "what came is highlighted"
        t.table.delete("k = 3")
        wait_for(terminal.shows("2 rows", "timestamp 6"))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    last = terminal.text[terminal.text.rindex("k  v") :]
    assert ("delta" in last, "copies" in last, "Traceback" in terminal.text) == (True, False, False)


def test_a_narrow_terminal_shows_what_it_can(t: Followed) -> None:
    t.add(*((number, "x" * 100) for number in range(10, 40)))
    with watching(t, "--timeout", "1s", "--max-rows", "5", lines=9, columns=24) as (
        terminal, process,
    ):  # fmt: skip
        assert process.wait(60) == 0
        terminal.shows()()
    assert "33 rows, timestamp 5, 4" in terminal.text
    assert "xxx…" in terminal.text
    assert max(map(len, re.split(r"[\r\n]", _ESCAPE.sub("", terminal.raw)))) <= 24


def test_contents_are_what_came_and_did_not_go() -> None:
    schema = pa.schema({"_timestamp": pa.int64(), "_diff": pa.int64(), "x": pa.float64()})
    made = Contents(schema)

    def add(*rows: tuple[int, int, float | None]) -> None:
        dicts = [dict(zip(schema.names, row, strict=True)) for row in rows]
        made.add(pa.RecordBatch.from_pylist(dicts, schema=schema))

    add((1, 2, 10.0), (1, 1, float("nan")), (1, 1, None), (1, 1, 9.0))
    assert [row.texts[0] for row in made.first(2)] == ["9.0", "10.0"]
    assert (made.count, len(made), made.timestamp) == (5, 4, 1)
    add((2, -1, float("nan")), (2, -1, None), (2, -1, 10.0))
    assert [(row.texts[0], row.count) for row in made.first(9)] == [("9.0", 1), ("10.0", 1)]
    made.clear()
    assert (made.count, made.first(9)) == (0, [])
