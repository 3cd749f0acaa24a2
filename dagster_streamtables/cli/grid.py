"""Tables of the command line: aligned for a terminal, fields between tabs for a pipe.

Only sentences wrap. Numbers, times and names stay whole: where the columns do not fit a terminal,
each row becomes a block of lines, ``name: value``, and a word longer than a line is left to the
terminal to wrap, so that it can be copied as a whole. A pipe has no width, and gets each row on a
line, without padding and colors, as `cut` and `awk` expect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from dagster_streamtables.errors import legible, one_line

GAP = 2
"""Blanks between two columns."""
_NARROW = 20
"""A column for sentences is not narrower, unless all its values are."""
_NAME = 80
"""Longer words are no names of tables or files, but paths or URIs, which a sentence may break."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table.

    Args:
        name: The header.
        number: Align the values to the right.
        text: The values are sentences or lists, and may wrap.
        wide: Show the column with ``--wide`` only.
    """

    name: str
    number: bool = False
    text: bool = False
    wide: bool = False


def columns(
    *names: str, number: bool = False, text: bool = False, wide: bool = False
) -> list[TableColumn]:
    """Columns that differ in their names only."""
    return [TableColumn(name, number, text, wide) for name in names]


@dataclass(frozen=True)
class Grid:
    """Rows with a value for each column, and the first value as their name."""

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Text]]
    header: bool = True
    """Whether a pipe gets the names of the columns: not before rows that follow others."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not options.is_terminal:
            if self.header:
                yield _fields([each.name for each in self.columns])
            yield from (_fields([each.plain for each in row]) for row in self.rows)
            return
        header = [_cell(each.name, each) for each in self.columns]
        found = _fit(self.columns, [header, *self.rows], options.max_width)
        if found is not None:
            yield self._align(found)
            return
        for number, row in enumerate(self.rows):
            yield from [Text()] * (number > 0)
            yield from self._block(row, options.max_width)

    def _align(self, widths: Sequence[int]) -> Table:
        made = Table(box=SIMPLE, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
        for each, width in zip(self.columns, widths, strict=True):
            made.add_column(
                one_line(each.name), width=width, justify="right" if each.number else "left",
                no_wrap=not each.text, overflow="fold",
            )  # fmt: skip
        for row in self.rows:
            made.add_row(*row)
        return made

    def _block(self, row: Sequence[Text], width: int) -> Iterable[Text]:
        yield from _wrap_lines(Text(row[0].plain, style="bold"), width)
        for column, value in zip(self.columns[1:], row[1:], strict=True):
            yield from _line(f"  {one_line(column.name)}: ", value, width)


class TableLayout:
    """The columns of a table that a command prints."""

    def __init__(self, *columns: TableColumn) -> None:
        self.columns = columns

    def grid(
        self, rows: Iterable[Sequence[str | Text]], *, wide: bool = True, header: bool = True
    ) -> Grid:
        """The table of these rows, whose values include those of the wide columns."""
        shown = [number for number, each in enumerate(self.columns) if wide or not each.wide]
        made = [[_cell(row[number], self.columns[number]) for number in shown] for row in rows]
        return Grid([self.columns[number] for number in shown], made, header)


@dataclass(frozen=True)
class Pairs:
    """A value after each name."""

    rows: Sequence[tuple[str, Text]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not options.is_terminal:
            yield from (_fields([name, value.plain]) for name, value in self.rows)
            return
        rows = [[Text(name), value] for name, value in self.rows]
        found = _fit(_PAIR, rows, options.max_width)
        if found is not None:
            made = Table.grid(padding=(0, GAP))
            for each, width in zip(_PAIR, found, strict=True):
                made.add_column(width=width, no_wrap=not each.text, overflow="fold")
            for row in rows:
                made.add_row(*row)
            yield made
            return
        for name, value in self.rows:
            yield from _line(f"{name}: ", value, options.max_width)


_PAIR = (TableColumn("name"), TableColumn("value", text=True))


def pairs(*rows: tuple[str, str | Text]) -> Pairs:
    """A line for each name and value; rows without a value are left out."""
    return Pairs([(one_line(name), _cell(value, _PAIR[1])) for name, value in rows if value])


def _cell(value: str | Text, column: TableColumn) -> Text:
    if isinstance(value, Text):
        return value
    return Text(legible(value) if column.text else one_line(value))


def _fields(values: Sequence[str]) -> Segment:
    """A line for a pipe. It is no `Text`, which would have blanks for tabs."""
    lines = (re.sub(r"\s*\n\s*|\t", " ", legible(each).strip("\n")) for each in values)
    return Segment("\t".join(lines) + "\n")


def widths(least: Sequence[int], widest: Sequence[int], room: int) -> list[int] | None:
    """The widths of the columns, or None if they do not fit the room.

    What is left of the room is shared by the columns that can use it.

    >>> widths([5, 20], [5, 90], 40), widths([5, 20], [5, 90], 20)
    ([5, 33], None)
    """
    left = room - sum(least) - GAP * (len(least) - 1)
    if left < 0:
        return None
    wanted = sum(widest) - sum(least)
    share = min(1.0, left / wanted) if wanted else 0.0
    return [low + int((high - low) * share) for low, high in zip(least, widest, strict=True)]


def _fit(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[Text]], room: int
) -> list[int] | None:
    values = list(zip(*rows, strict=True))
    widest = [max(map(_breadth, cells)) for cells in values]
    least = [
        max(map(_least, cells)) if column.text else width
        for column, width, cells in zip(columns, widest, values, strict=True)
    ]
    return widths(least, widest, room)


def _breadth(text: Text) -> int:
    return max(map(cell_len, text.plain.split("\n")))


def _least(text: Text) -> int:
    """The least width in which a sentence is readable, and names in it stay whole."""
    words = (cell_len(word) for word in text.plain.split())
    return max(min(_breadth(text), _NARROW), *(each for each in words if each <= _NAME), 1)


def _line(label: str, value: Text, width: int) -> Iterable[Text]:
    """A name and its value; below the name, if they do not fit one line."""
    if not value.plain:
        return
    if cell_len(label) + _breadth(value) <= width and "\n" not in value.plain:
        yield Text.assemble(label, value, no_wrap=True, overflow="ignore")
        return
    indent = " " * (len(label) - len(label.lstrip()) + 2)
    yield Text(label.rstrip(), no_wrap=True, overflow="ignore")
    for each in _wrap_lines(value, width - len(indent)):
        yield Text.assemble(indent, each, no_wrap=True, overflow="ignore")


def _wrap_lines(text: Text, width: int) -> Iterable[Text]:
    for line in text.plain.split("\n"):
        # Rich would break a word that is longer than the line.
        parts = wrap(line, max(width, 1), break_long_words=False, break_on_hyphens=False)
        yield from (Text(part, style=text.style, no_wrap=True, overflow="ignore") for part in parts)
