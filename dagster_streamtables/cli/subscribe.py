"""The command ``subscribe``: the changes of a table or a query, as text or as a live table.

Whenever it ends before the end of the subscription, stderr has the position to resume at.
"""

from __future__ import annotations

import os
import select
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, Literal

import typer

from dagster_streamtables.changes.clock.clock import AtLeast, bound
from dagster_streamtables.changes.output.output_options import ENVELOPES, Envelope
from dagster_streamtables.changes.output.row_formats import FORMATS, Format
from dagster_streamtables.changes.subscription import Subscription, subscribe as subscribed
from dagster_streamtables.cli.console import (
    GracefulExit,
    Root,
    SignalInterrupt,
    app,
    err,
    errors_in_words,
    out,
    seconds,
)
from dagster_streamtables.cli.lake_project import open_lake
from dagster_streamtables.cli.watch import Watch
from dagster_streamtables.errors import EmptyBoundsWarning, HistoryUnavailable

Query = Annotated[str, typer.Option("--query", "-q", help="A SELECT, instead of a name.")]
Dialect = Annotated[str, typer.Option(help="The SQL dialect of --query.")]
Zone = Annotated[
    str, typer.Option("--session-timezone", help="The zone of the query's days and hours.")
]
Recompute = Annotated[
    bool,
    typer.Option(help="Run a query whose change cannot be computed again, and compare."),
]
Clock = Annotated[
    Literal["version", "ms"] | None,
    typer.Option(help="Count versions of the only source, or milliseconds. Default: as possible."),
]
AsOf = Annotated[
    str,
    typer.Option(help="Begin with the rows as of this version, millisecond, or date and time."),
]
NoSnapshot = Annotated[
    bool, typer.Option("--no-snapshot", help="Begin with the changes after --as-of.")
]


@app.command()
def subscribe(
    root: Root,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="A source, a stream table, a view, or a path.")
    ] = "",
    query: Query = "",
    as_of: AsOf = "",
    at_least: Annotated[
        str, typer.Option(help="As --as-of, or at the oldest time that can be read, if later.")
    ] = "",
    up_to: Annotated[str, typer.Option(help="End before this time.")] = "",
    no_snapshot: NoSnapshot = False,
    progress: Annotated[
        bool, typer.Option(help="Rows that say that no earlier timestamp follows.")
    ] = False,
    envelope: Annotated[
        Literal["upsert", "debezium"] | None,
        typer.Option(help="What happened to each key, in place of copies."),
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="Columns of the envelope's key: a,b. Repeatable.")
    ] = None,
    order_by: Annotated[
        list[str] | None,
        typer.Option(help="Order of rows within a timestamp: k,-v. Repeatable."),
    ] = None,
    clock: Clock = None,
    names: Annotated[
        Literal["delta", "materialize"],
        typer.Option(help="Call the leading columns _timestamp or mz_timestamp."),
    ] = "delta",
    resume: Annotated[
        str, typer.Option(metavar="TOKEN", help="Go on where an earlier subscription ended.")
    ] = "",
    slot: Annotated[
        str, typer.Option(help="Go on where this slot is; it is created if there is none.")
    ] = "",
    ack: Annotated[
        bool, typer.Option("--ack", help="Move the slot past each timestamp that is written.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(parser=seconds, metavar="TIME", help="End after 10s, or 5m.")
    ] = None,
    max_rows: Annotated[
        int | None, typer.Option(min=1, help="End after so many rows; with --watch: show so many.")
    ] = None,
    format_: Annotated[
        Literal["text", "csv", "ndjson", "copy", "arrow"],
        typer.Option("--format", help="How rows are written."),
    ] = "text",
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the contents, redrawn as they change.")
    ] = False,
    recompute: Recompute = False,
    dialect: Dialect = "spark",
    session_timezone: Zone = "UTC",
    on_history_lost: Annotated[
        Literal["error", "resnapshot"],
        typer.Option(help="Fail, or begin again with a snapshot."),
    ] = "error",
) -> None:
    """Follow the changes of a table or a query.

    First the rows that are there, then every change, until interrupted. Whenever it ends before
    --up-to, stderr has the token at which --resume goes on; nothing is lost, or comes twice.
    """
    relation = relation_of(name, query)
    _require_fitting(locals())
    with GracefulExit() as ending, errors_in_words(no=HistoryUnavailable), _warnings_as_lines():
        stream: StreamWriter | None = None
        try:
            sub = subscribed(
                open_lake(root, ask_spark=True),
                relation,
                as_of=AtLeast(bound(at_least, "as_of")) if at_least else as_of or None,
                up_to=up_to or None,
                snapshot=not no_snapshot,
                progress=progress,
                envelope=_envelope(envelope, key),
                order_by=split_list(order_by),
                clock=clock,
                names=names,
                resume=resume or None,
                slot=slot or None,
                on_history_lost=on_history_lost,
                recompute=recompute,
                dialect=dialect,
                session_timezone=session_timezone,
            )
            with _closing(sub, ending):
                if watch:
                    Watch(sub, out, ending, max_rows, timeout).run()
                    return
                form = FORMATS[format_]()
                stdout = sys.stdout.buffer
                stream = StreamWriter(
                    sub, form, stdout, ending, ack, max_rows, timeout, resume or None
                )
                stream.run()
        except SignalInterrupt:
            pass
        except BrokenPipeError:
            forget(sys.stdout.buffer)
            stream = None
        finally:
            if stream is not None:
                _tell(stream, slot if ack else "")


def relation_of(name: str, query: str) -> str:
    if bool(name) == bool(query):
        raise typer.BadParameter("Give the name of a table, or a query with -q.")
    return name or query


def split_list(given: Iterable[str] | None) -> list[str]:
    """The parts of an option that is given several times, or with commas."""
    return [part.strip() for each in given or () for part in each.split(",") if part.strip()]


def _require_fitting(given: dict[str, Any]) -> None:
    """Refuse options that mean nothing together; what `subscribe` refuses itself is left to it."""
    if given["as_of"] and given["at_least"]:
        raise typer.BadParameter("Give --as-of or --at-least.")
    if given["ack"] and not given["slot"]:
        raise typer.BadParameter("--ack needs --slot.")
    if given["key"] and not given["envelope"]:
        raise typer.BadParameter("--key needs --envelope.")
    if not given["watch"]:
        return
    for option in ("no_snapshot", "progress", "envelope", "order_by", "resume", "slot"):
        if given[option]:
            shown = option.replace("_", "-")
            raise typer.BadParameter(f"--watch shows contents, so --{shown} means nothing with it.")
    if not out.is_terminal:
        raise typer.BadParameter("--watch needs a terminal.")


def _envelope(kind: str | None, key: Sequence[str] | None) -> Envelope | None:
    return None if kind is None else ENVELOPES[kind](split_list(key))


@contextmanager
def _closing(sub: Subscription, ending: GracefulExit) -> Iterator[None]:
    try:
        yield
    finally:
        with ending.hold_signals():
            sub.close()


def _tell(stream: StreamWriter, slot: str) -> None:
    """How to go on, unless the end was reached."""
    if stream.finished:
        return
    if stream.cut:
        err.print("the last timestamp was cut: its rows come again", soft_wrap=True)
    if slot:
        err.print(f"resume with: --slot {slot} --ack", soft_wrap=True)
    elif stream.token is not None:
        err.print(f"resume with: --resume {stream.token}", soft_wrap=True)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, EmptyBoundsWarning):
            err.print(f"warning: {message}", soft_wrap=True)
        else:
            shown(message, category, *place)

    with warnings.catch_warnings():
        warnings.simplefilter("always", EmptyBoundsWarning)
        shown, warnings.showwarning = warnings.showwarning, show
        yield


LOOK = 1.0
"""Seconds between checks whether the output still has a reader."""


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
            SignalInterrupt: A signal came; what was written is whole, unless it was `cut`.
            BrokenPipeError: The output has no reader.
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
        if self.sub.snapshots > self._told:
            self._told = self.sub.snapshots
            said = "history was lost: a new snapshot begins here, in place of all rows before it"
            err.print(f"warning: {said}", soft_wrap=True)
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

    def _require_reader(self) -> None:
        """Raises `BrokenPipeError` if the output has no reader, which writing would report only at
        a change."""
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
