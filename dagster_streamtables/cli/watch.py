"""The contents of a relation in a terminal, redrawn as they change."""

from __future__ import annotations

import heapq
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rich.box import SIMPLE
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dagster_streamtables.changes.output.row_formats import texts
from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.cli.console import GracefulExit, color_text, number_text
from dagster_streamtables.cli.grid import GAP, widths
from dagster_streamtables.errors import one_line
from dagster_streamtables.runtime.delta.arrow import pa, times_as_numbers

Row: TypeAlias = tuple[str | None, ...]


@dataclass
class Copies:
    """A row and its number of copies."""

    texts: Row
    count: int
    order: tuple[Any, ...]
    since: int
    """The timestamp of its last insertion or change of count."""


class Contents:
    """The sum of a subscription without an envelope and without progress, from its snapshot on.

    Attributes:
        timestamp: Of the last row that was added; None before the first.
        count: The number of rows, counting copies.
    """

    _LEADING = 2

    def __init__(self, schema: pa.Schema) -> None:
        """Args: schema: The schema of the subscription."""
        self.names = schema.names[self._LEADING :]
        self._compared = [_is_comparable(type_) for type_ in schema.types[self._LEADING :]]
        self._rows: dict[Row, Copies] = {}
        self.timestamp: int | None = None
        self.count = 0

    def clear(self) -> None:
        """Forget all rows: a new snapshot replaces them."""
        self._rows.clear()
        self.count = 0

    def add(self, batch: pa.RecordBatch) -> None:
        columns = batch.columns[self._LEADING :]
        keys = zip(*(texts(column).to_pylist() for column in columns), strict=True)
        values = zip(*map(self._orders, columns, self._compared), strict=True)
        stamps, diffs = (column.to_pylist() for column in batch.columns[: self._LEADING])
        for key, order, stamp, diff in zip(keys, values, stamps, diffs, strict=True):
            row = self._rows.setdefault(key, Copies(key, 0, order, stamp))
            row.count, row.since = row.count + diff, stamp
            self.count += diff
            if not row.count:
                del self._rows[key]
            self.timestamp = stamp

    def first(self, number: int) -> list[Copies]:
        """The first distinct rows, in the order of their columns from left to right."""
        return heapq.nsmallest(number, self._rows.values(), key=lambda row: row.order)

    def __len__(self) -> int:
        """The number of distinct rows."""
        return len(self._rows)

    @staticmethod
    def _orders(column: pa.Array, compared: bool) -> Iterator[tuple[int, Any]]:
        """The sort keys of rows: values that can be compared, or texts; NaN is the greatest number,
        and NULL is last."""
        for value in (times_as_numbers(column) if compared else texts(column)).to_pylist():
            if value is None or value != value:
                yield (2 if value is None else 1), 0
            else:
                yield 0, value


def _is_comparable(type_: pa.DataType) -> bool:
    types = pa.types
    kinds = (types.is_integer, types.is_floating, types.is_decimal, types.is_date)
    return any(is_it(type_) for is_it in kinds)


_REDRAW = 0.2
_BRIGHT = 2.0
"""Seconds for which a changed row is highlighted."""
_RATE = 10.0
"""Seconds over which changes are counted."""
_AROUND = 5
"""Lines of a terminal that are not rows."""
_WHOLE = re.compile(r"[-+\d][-+\d.,:eTZ ]*")
"""Numbers and times: cut, they would be others."""
_SHORT = 8
"""Other values may be cut to this width, with a mark."""


@dataclass
class Watch:
    """Follows a subscription that begins with a snapshot."""

    sub: Subscription
    console: Console
    ending: GracefulExit
    max_rows: int | None = None
    timeout: float | None = None
    _bright: dict[int, float] = field(default_factory=dict[int, float])
    """Timestamp → until when its rows are highlighted."""
    _in_snapshot: bool = False
    _changes: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])

    def run(self) -> None:
        self.contents = Contents(self.sub.schema)
        end = None if self.timeout is None else time.monotonic() + self.timeout
        with Live(self.render(), console=self.console, auto_refresh=False) as live:
            while not self.sub.ended and (end is None or time.monotonic() < end):
                self._read(time.monotonic() + _REDRAW)
                with self.ending.whole():
                    live.update(self.render(), refresh=True)

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

    def render(self) -> RenderableType:
        room = max(1, self.console.height - _AROUND)
        rows = self.contents.first(min(self.max_rows or room, room))
        now = time.monotonic()
        self._bright = {stamp: until for stamp, until in self._bright.items() if until > now}
        table, left_out = self._table(rows)
        return Group(table, Text(), self._footer(len(rows), left_out, now))

    def _table(self, rows: list[Copies]) -> tuple[Table, int]:
        """The rows in the columns that fit, and the number of the others."""
        several = any(row.count != 1 for row in rows)
        names = [*(["copies"] if several else []), *map(one_line, self.contents.names)]
        cells = [
            [*([Text(str(row.count))] if several else []), *map(_cell, row.texts)] for row in rows
        ]
        made = Table(box=SIMPLE, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
        found = _widths([Text(name) for name in names], cells, self.console.width)
        for name, width in zip(names, found, strict=False):
            made.add_column(name, width=width, no_wrap=True, overflow="ellipsis")
        for row, values in zip(rows, cells, strict=True):
            style = "bold green" if row.since in self._bright else ""
            made.add_row(*values[: len(found)], style=style)
        return made, len(names) - len(found)

    def _footer(self, shown: int, left_out: int, now: float) -> Text:
        while self._changes and self._changes[0][0] < now - _RATE:
            self._changes.popleft()
        rate = sum(number for _, number in self._changes) / _RATE
        stamp = self.contents.timestamp
        hidden = len(self.contents) - shown
        parts = [
            f"{number_text(self.contents.count)} rows",
            f"timestamp {'?' if stamp is None else stamp}",
            *([f"{number_text(shown)} shown"] if hidden else []),
            *([f"columns left out: {left_out}"] if left_out else []),
            f"{rate:.1f} changes/s",
        ]
        return Text(", ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")


def _cell(value: str | None) -> Text:
    return Text("NULL", style="dim") if value is None else color_text(one_line(value), "")


def _widths(names: list[Text], rows: list[list[Text]], room: int) -> list[int]:
    """The widths of the first columns, as many as fit; of one at least."""
    columns = list(zip(names, *rows, strict=True))
    widest = [max(each.cell_len for each in column) for column in columns]
    least = [max(name.cell_len, *(_least(each) for each in values), 1) for name, *values in columns]
    for number in range(len(columns), 0, -1):
        found = widths(least[:number], widest[:number], room)
        if found is not None:
            return found
    return [room]


def _least(value: Text) -> int:
    whole = _WHOLE.fullmatch(value.plain)
    return value.cell_len if whole else min(value.cell_len, _SHORT)
