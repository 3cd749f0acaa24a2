"""A subscription as a stream of bytes on stdout, whose end says how to go on after it."""

from __future__ import annotations

import os
import select
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO

from dagster_streamtables.changes.output.formats import Format
from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.cli.ending import GracefulExit, SignalInterrupt
from dagster_streamtables.cli.output import err

LOOK = 1.0
"""Seconds between looks at whether somebody still reads the output."""


@dataclass
class StreamWriter:
    """Writes what a subscription gives out, timestamp by timestamp."""

    sub: Subscription
    format: Format
    out: BinaryIO
    ending: GracefulExit
    ack: bool = False
    max_rows: int | None = None
    timeout: float | None = None
    token: str | None = None
    """Where to go on after what was written. Rows of a timestamp that was cut come again."""
    cut: bool = False
    """Whether a timestamp was left with some of its rows written."""
    finished: bool = False
    """Whether the subscription came to its own end."""
    _rows: int = 0
    _told: int = 1

    def run(self) -> None:
        """
        Raises:
            Interrupted: A signal came; what was written is whole, unless it was `cut`.
            BrokenPipeError: Nobody reads the output any more.
        """
        self._told = 0 if self.sub.lost else 1
        try:
            self._follow()
        except SignalInterrupt:
            if not self.cut:
                self._end()
            raise
        self.finished = self.sub.ended and not self.cut
        self._end()

    def _end(self) -> None:
        with self.ending.hold_signals():
            self.out.write(self.format.end())
            self.out.flush()

    def _follow(self) -> None:
        end = None if self.timeout is None else time.monotonic() + self.timeout
        with self.ending.whole():
            self.out.write(self.format.begin(self.sub.schema))
            self.out.flush()
        self.sub.fetch(0, 0)
        self._mark_position()
        while not self.sub.ended and not self._is_full:
            self._require_reader()
            left = LOOK if end is None else min(LOOK, end - time.monotonic())
            batch = self.sub.next_batch(left)
            if batch is None:
                self._mark_position()
                # A timeout is for waiting, and does not cut what is there at its end.
                if left <= 0:
                    return
                continue
            with ExitStack() as kept:
                kept.enter_context(self.ending.hold_signals())
                # The rest of the timestamp belongs to what was written, so it is not torn either.
                while batch is not None and not self._write(batch):
                    batch = self.sub.next_batch()
            self.ending.check()

    @property
    def _is_full(self) -> bool:
        return self.max_rows is not None and self._rows >= self.max_rows

    def _write(self, batch: object) -> bool:
        """Write a batch; true if its timestamp is complete, or enough was written."""
        rows = batch.num_rows  # type: ignore[attr-defined]
        left = rows if self.max_rows is None else min(rows, self.max_rows - self._rows)
        self._tell_of_snapshots()
        self.cut = True
        self.out.write(self.format.batch(batch.slice(0, left)))  # type: ignore[attr-defined]
        self._rows += left
        if left == rows and not self.sub.partial:
            self.out.flush()
            self.cut = False
            self._mark_position()
        return not self.cut or self._is_full

    def _mark_position(self) -> None:
        """Everything that was given out is written."""
        with self.ending.whole():
            if self.ack and self.sub.token is not None:
                self.sub.ack()
            self.token = self.sub.token or self.token

    def _tell_of_snapshots(self) -> None:
        if self.sub.snapshots > self._told:
            self._told = self.sub.snapshots
            said = "history was lost: a new snapshot begins here, in place of all rows before it"
            err.print(f"warning: {said}", soft_wrap=True)

    def _require_reader(self) -> None:
        """
        Raises:
            BrokenPipeError: Nobody reads the output, which writing would tell only with a change.
        """
        if not hasattr(select, "poll"):
            return
        try:
            number = self.out.fileno()
        except (OSError, ValueError):  # it is in memory
            return
        poll = select.poll()
        poll.register(number, 0)
        if any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0)):
            raise BrokenPipeError


def forget(out: BinaryIO) -> None:
    """Let nothing be written to a closed pipe when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
