"""The contents of a relation in a terminal, redrawn as they change."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from rich.box import SIMPLE
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from dagster_streamtables.changes.output.contents import Contents, Copies
from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.cli.ending import Ending
from dagster_streamtables.cli.output import coloured, count
from dagster_streamtables.errors import one_line

_REDRAW = 0.2
_BRIGHT = 2.0
"""Seconds for which a changed row is highlighted."""
_RATE = 10.0
"""Seconds over which changes are counted."""
_AROUND = 6
"""Lines of a terminal that are not rows."""


@dataclass
class Watch:
    """Follows a subscription that begins with a snapshot."""

    sub: Subscription
    console: Console
    ending: Ending
    max_rows: int | None = None
    timeout: float | None = None
    _bright: dict[int, float] = field(default_factory=dict[int, float])
    """Timestamp → until when its rows are highlighted."""
    _in_snapshot: bool = False
    _changes: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])

    def run(self) -> None:
        self.contents = Contents(self.sub.schema)
        end = None if self.timeout is None else time.monotonic() + self.timeout
        with Live(self.shown(), console=self.console, auto_refresh=False) as live:
            while not self.sub.ended and (end is None or time.monotonic() < end):
                self._read(time.monotonic() + _REDRAW)
                with self.ending.whole():
                    live.update(self.shown(), refresh=True)

    def _read(self, until: float) -> None:
        """Take what comes until it is time to redraw, but no part of a timestamp."""
        while self.sub.partial or time.monotonic() < until:
            before = self.sub.snapshots
            batch = self.sub.next_batch(max(0.0, until - time.monotonic()))
            if batch is None:
                return
            begins = self.sub.snapshots > before
            if begins:
                self.contents.clear()
            self.contents.add(batch)
            if self.contents.timestamp is not None and not (begins or self._in_snapshot):
                now = time.monotonic()
                self._bright[self.contents.timestamp] = now + _BRIGHT
                self._changes.append((now, batch.num_rows))
            self._in_snapshot = self.sub.partial and (begins or self._in_snapshot)

    def shown(self) -> RenderableType:
        room = max(1, self.console.height - _AROUND)
        rows = self.contents.first(min(self.max_rows or room, room))
        now = time.monotonic()
        self._bright = {stamp: until for stamp, until in self._bright.items() if until > now}
        return Group(self._table(rows), self._footer(len(rows), now))

    def _table(self, rows: list[Copies]) -> Grid:
        made = Grid(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
        several = any(row.count != 1 for row in rows)
        for name in [*(["copies"] if several else []), *map(one_line, self.contents.names)]:
            made.add_column(name, no_wrap=True, overflow="ellipsis")
        for row in rows:
            cells = [_cell(value) for value in row.texts]
            style = "bold green" if row.since in self._bright else ""
            made.add_row(*([str(row.count)] if several else []), *cells, style=style)
        return made

    def _footer(self, shown: int, now: float) -> Text:
        while self._changes and self._changes[0][0] < now - _RATE:
            self._changes.popleft()
        rate = sum(number for _, number in self._changes) / _RATE
        stamp = self.contents.timestamp
        hidden = len(self.contents) - shown
        parts = [
            f"{count(self.contents.count)} rows",
            f"timestamp {'?' if stamp is None else stamp}",
            *([f"{count(shown)} shown"] if hidden else []),
            f"{rate:.1f} changes/s",
        ]
        return Text(", ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")


def _cell(value: str | None) -> Text:
    return Text("NULL", style="dim") if value is None else coloured(one_line(value), "")
