"""The command ``streamtables``, and the input and output of all its subcommands.

Shared options; tables for people, JSON for programs, readable errors; signals that end a command
and leave nothing torn. The other modules add the subcommands.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import json
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from dagster_streamtables import amounts
from dagster_streamtables.cli.lake_project import LakeProject, open_project
from dagster_streamtables.errors import StreamTablesError, legible
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.errors.error_translation import translate_final_errors
from dagster_streamtables.setting.values import seconds_in

NO = 3
"""The exit code for the answer "no": see the package docstring."""

_EPILOG = (
    "Exit codes: 0 success; 1 error; 2 invalid command line; 3 the answer is no (differences found,"
    " a query that cannot be maintained, a stale, stopped or orphaned table, an altered log, no"
    " server or worker)."
)

Table = Annotated[str, typer.Argument(help="The table's name in queries, such as mart.revenue.")]
Some = Annotated[
    list[str] | None, typer.Argument(help="Names, such as mart.revenue. Default: all tables.")
]
Root = Annotated[str, typer.Option(help="Folder or URI of the tables.", envvar="STREAMTABLES_ROOT")]
MaybeRoot = Annotated[
    str,
    typer.Option(
        help="Folder or URI of the tables. Default: the root of the code location.",
        envvar="STREAMTABLES_ROOT",
    ),
]
Folder = Annotated[
    str,
    typer.Option("--tables", help="Folder of .sql files.", envvar="STREAMTABLES_TABLES"),
]
Module = Annotated[
    str, typer.Option("--module", "-m", help="Module whose Dagster Definitions declare the tables.")
]
File = Annotated[str, typer.Option("--file", "-f", help="Python file, instead of a module.")]
Wide = Annotated[bool, typer.Option("--wide", help="Show all columns.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, with times in ISO 8601.")]


def seconds(text: str) -> float:
    """
    >>> seconds("10s"), seconds("1.5"), seconds("500ms"), seconds("7d")
    (10.0, 1.5, 0.5, 604800.0)
    """
    found = seconds_in(str(text))
    if found is None:
        raise typer.BadParameter(f"{text!r} is no time: write 500ms, 10s, 5m, 2h or 7d.")
    return found


F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K")
T = TypeVar("T")

UNEXPECTED = "an unexpected error"


class _Terminal(Console):
    """Prints texts literally: no markup, no emoji, and control characters as escapes.

    Colors come only from `Text` styles: markup could be part of a name or a row. Nothing is cut
    at the width of the terminal, and a pipe has none: lines that `grep` looks for do not break.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **{"crop": False, "soft_wrap": not self.is_terminal, **options})
        except OSError as error:  # which `errors_in_words` would take for an error of a table
            typer.echo(f"the output cannot be written: {error}", err=True)
            raise typer.Exit(1) from None

    def render_str(self, text: str, **options: Any) -> Text:
        quiet = {"markup": False, "emoji": False, "highlight": False}
        return super().render_str(legible(text), **{**options, **quiet})


out = _Terminal(markup=False, emoji=False, highlight=False)
err = _Terminal(markup=False, emoji=False, highlight=False, stderr=True)


def color_text(text: str, colour: str) -> Text:
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
        err.print(str(error), soft_wrap=True)
        raise typer.Exit(NO if isinstance(error, no) else 1) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if os.environ.get("STREAMTABLES_TRACEBACK"):
            raise
        said = f"{UNEXPECTED}: {type(error).__name__}: {first_line(str(error))}"
        fix = "set STREAMTABLES_TRACEBACK=1 for the traceback, and report it"
        err.print(said, f"fix: {fix}", sep="\n\n", soft_wrap=True)
        raise typer.Exit(1) from None


def _open_project(
    root: MaybeRoot = "", folder: Folder = "", module: Module = "", file: File = ""
) -> LakeProject:
    return open_project(root=root, tables=folder, module=module, file=file)


_PROJECT = inspect.signature(_open_project, eval_str=True).parameters


class Commands(typer.Typer):
    """Commands whose errors are printed in words. The options of the root and the declarations take
    the place of a parameter `project`."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        register = super().command(name, **options)

        def add(function: F) -> F:
            register(_as_command(function))
            return function

        return add


def _as_command(function: Callable[..., Any]) -> Callable[..., None]:
    signature = inspect.signature(function, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for name, each in signature.parameters.items():
        parameters += _PROJECT.values() if name == "project" else [each]

    @functools.wraps(function)
    def run(**given: Any) -> None:
        with errors_in_words():
            if "project" in signature.parameters:
                given["project"] = _open_project(**{name: given.pop(name) for name in _PROJECT})
            function(**given)

    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    return run


app = Commands(
    no_args_is_help=True,
    help="Stream tables on Delta Lake.",
    epilog=_EPILOG,
    pretty_exceptions_enable=False,
)


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
            err.print("", str(error), sep="\n", soft_wrap=True)
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


def number_text(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def moment(time: datetime | None) -> str:
    """A time in UTC, to the second.

    >>> moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02 03:04:05'
    """
    return "" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalInterrupt(BaseException):
    """SIGINT or SIGTERM came. No `Exception`, since reading would be tried again."""


class GracefulExit:
    """Turns signals into `SignalInterrupt`, at once while the command reads or waits.

    What must not be torn is done in `whole`: a first signal waits until that is over; a second one
    does not, since the reader of the output may have stopped reading.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._asked = 0

    def __enter__(self) -> GracefulExit:
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():  # else signals go elsewhere
            self._before = {each: signal.signal(each, self._on_signal) for each in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Not interrupted by one signal: if it came, `SignalInterrupt` is raised at the end."""
        with self.hold_signals():
            yield
        self.check()

    @contextmanager
    def hold_signals(self) -> Iterator[None]:
        """The same, without raising at the end."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def check(self) -> None:
        """Raises `SignalInterrupt` if a signal came, and nothing is under way that must not be
        torn."""
        if self._asked and not self._depth:
            raise SignalInterrupt

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._asked += 1
        if not self._depth or self._asked > 1:
            raise SignalInterrupt
