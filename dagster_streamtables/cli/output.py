"""Output: tables for people, JSON for programs, and readable errors."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
import typer
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from dagster_streamtables import amounts
from dagster_streamtables.cli.app import NO
from dagster_streamtables.errors import StreamTablesError, legible
from dagster_streamtables.runtime.errors.foreign_words import first_line
from dagster_streamtables.runtime.errors.translate import translate_final_errors

K = TypeVar("K")
T = TypeVar("T")

UNEXPECTED = "an unexpected error"


class _Terminal(Console):
    """Prints texts literally: no markup, no emoji, and control characters as escapes.

    Colors come only from `Text` styles: markup could be part of a name or a row. Nothing is cut
    at the width of the terminal, and a pipe has none: lines that `grep` looks for do not break.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{"crop": False, "soft_wrap": not self.is_terminal, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        quiet = {"markup": False, "emoji": False, "highlight": False}
        return super().render_str(legible(text), **{**options, **quiet})


out = _Terminal(markup=False, emoji=False, highlight=False)
err = _Terminal(markup=False, emoji=False, highlight=False, stderr=True)


def color_text(text: str, colour: str) -> Text:
    """A text in a color."""
    return Text(legible(text), style=colour)


@contextmanager
def errors_in_words(no: type[StreamTablesError] | tuple[()] = ()) -> Iterator[None]:
    """Print an error as readable text, and exit with 1; with 3 if it is the answer "no".

    An unexpected error is one line; ``STREAMTABLES_TRACEBACK=1`` shows its traceback.
    """
    try:
        with translate_final_errors():
            yield
    except StreamTablesError as error:
        err.print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(NO if isinstance(error, no) else 1) from None
    except (typer.Exit, typer.Abort, click.ClickException):
        raise
    except Exception as error:
        if os.environ.get("STREAMTABLES_TRACEBACK"):
            raise
        said = f"{UNEXPECTED}: {type(error).__name__}: {first_line(str(error))}"
        fix = "set STREAMTABLES_TRACEBACK=1 for the traceback, and report it"
        err.print(said, f"fix: {fix}", sep="\n\n", markup=False, soft_wrap=True)
        raise typer.Exit(1) from None


class Answers(list[T]):
    """The answers for several tables, and the errors of those that could not be read."""

    def __init__(self, tables: Iterable[K], ask: Callable[[K], T]) -> None:
        super().__init__()
        self.errors: list[StreamTablesError] = []
        for each in tables:
            try:
                with translate_final_errors():
                    self.append(ask(each))
            except StreamTablesError as error:
                self.errors.append(error)

    def require_all(self) -> None:
        """Print the errors, if any, and exit with 1. Call it after showing the answers."""
        for error in self.errors:
            err.print("", str(error), sep="\n", markup=False, soft_wrap=True)
        if self.errors:
            raise typer.Exit(1)


def show_json(value: Any) -> None:
    out.print(json.dumps(plain(value), indent=2, ensure_ascii=False), soft_wrap=True)


def show_values(values: Sequence[Any], named: Sequence[str] | None) -> None:
    """JSON of tables: one value if a single table is named, otherwise a list."""
    show_json(values[0] if named and len(named) == len(values) == 1 else values)


def extent(rows: int | None, bytes_: int | None) -> str:
    """The number of a table's rows, if its log has it, and its size.

    >>> extent(1, 2_000), extent(None, None)
    ('1 row, 2.0 kB', '? rows, ?')
    """
    return f"{'? rows' if rows is None else amounts.count(rows, 'row')}, {size(bytes_)}"


def plain(value: Any) -> Any:
    """A JSON value: dataclasses and errors become objects, times become ISO 8601.

    >>> plain({"at": datetime(2026, 1, 2, tzinfo=UTC), "of": (1, None)})
    {'at': '2026-01-02T00:00:00+00:00', 'of': [1, None]}
    """
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, StreamTablesError):
        return {part: getattr(value, part) for part in ("what", "where", "why", "fix")}
    if isinstance(value, Exception):
        return {"what": str(value), "where": "", "why": "", "fix": ""}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def size(number: int | None) -> str:
    return "?" if number is None else decimal(number)


def count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def moment(time: datetime | None) -> str:
    """A time in UTC, to the second.

    >>> moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02 03:04:05'
    """
    return "" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
