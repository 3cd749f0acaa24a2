"""Commands of slots, the durable positions of subscriptions: list, create, drop, move. Slots as a
table and as JSON, also for other commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import chain
from typing import Annotated, Any

import typer
from rich.text import Text

from dagster_streamtables.amounts import duration
from dagster_streamtables.changes.clock.clock import as_of_bound
from dagster_streamtables.changes.position import SubscriptionRequest
from dagster_streamtables.changes.subscription import DEADLINE
from dagster_streamtables.changes.subscription_slots import move_slot, new_slot
from dagster_streamtables.cli.console import (
    Commands,
    Json,
    Root,
    Wide,
    app,
    color_text,
    moment,
    number_text,
    out,
    plain,
    seconds,
    show_json,
    size,
)
from dagster_streamtables.cli.grid import TableColumn, TableLayout, columns
from dagster_streamtables.cli.lake_project import open_lake
from dagster_streamtables.cli.subscribe import (
    AsOf,
    Clock,
    Dialect,
    NoSnapshot,
    Query,
    Recompute,
    Zone,
    relation_of,
)
from dagster_streamtables.errors import one_line
from dagster_streamtables.runtime.observe.slot_store import Slot
from dagster_streamtables.runtime.observe.source_health import SlotHealth, SlotLag

slots = Commands(no_args_is_help=True, help="Durable positions of subscriptions.")
app.add_typer(slots, name="slots")

Name = Annotated[str, typer.Argument(help="The slot's name.")]


@slots.command("list")
def list_(root: Root, wide: Wide = False, as_json: Json = False) -> None:
    """Show the slots, and how far each is behind."""
    found = open_lake(root).retention.slots()
    if as_json:
        show_json(slot_rows(found))
    elif found:
        show_positions(found, wide=wide)
    else:
        out.print("There are no slots.")


@slots.command()
def create(
    name: Name,
    root: Root,
    relation: Annotated[
        str, typer.Argument(metavar="[RELATION]", help="What its reader will follow.")
    ] = "",
    query: Query = "",
    as_of: AsOf = "",
    no_snapshot: NoSnapshot = False,
    deadline: Annotated[
        float | None,
        typer.Option(parser=seconds, metavar="TIME", help="Drop it if unused so long; 0: never."),
    ] = DEADLINE.total_seconds(),
    clock: Clock = None,
    recompute: Recompute = False,
    dialect: Dialect = "spark",
    session_timezone: Zone = "UTC",
    as_json: Json = False,
) -> None:
    """Hold what a reader will need that subscribes later."""
    given = relation_of(relation, query)
    lake = open_lake(root, ask_spark=True)
    request = SubscriptionRequest(lake, given, dialect, session_timezone, recompute, clock)
    made = new_slot(
        lake.slots, name, request.start_new(snapshot=not no_snapshot),
        as_of_bound(as_of or None),
        deadline=timedelta(seconds=deadline) if deadline else None,
    )  # fmt: skip
    _show(root, made.name, "is created", as_json=as_json)


@slots.command()
def drop(
    name: Name,
    root: Root,
    force: Annotated[bool, typer.Option(help="Drop it even if it is being read.")] = False,
) -> None:
    """Remove a slot; vacuums need not keep anything for it any more."""
    open_lake(root).slots.drop(name, even_if_read=force)
    out.print(f"Slot {name} is dropped.")


@slots.command()
def move(
    name: Name,
    root: Root,
    as_of: AsOf = "",
    no_snapshot: NoSnapshot = False,
    recompute: Recompute = False,
    dialect: Dialect = "spark",
    session_timezone: Zone = "UTC",
    as_json: Json = False,
) -> None:
    """Let the next reader begin at a time, forward or back. A lost slot is active again.

    A query is read in the dialect and the zone that it was created with.
    """
    lake = open_lake(root, ask_spark=True)
    slot = lake.slots.read(name)
    request = SubscriptionRequest(
        lake, slot.relation, dialect, session_timezone, recompute, slot.clock
    )
    begin = request.start_new(snapshot=not no_snapshot)
    move_slot(lake.slots, name, begin, as_of_bound(as_of or None))
    _show(root, name, "is moved", as_json=as_json)


def _show(root: str, name: str, done: str, *, as_json: bool) -> None:
    found = [each for each in open_lake(root).retention.slots() if each.slot.name == name]
    if as_json:
        show_json(slot_rows(found))
        return
    held = (f"{each.source}@{each.acknowledged}" for health in found for each in health.sources)
    out.print(f"Slot {name} {done}: {', '.join(held)}", soft_wrap=True)


_LAG = (
    TableColumn("newest", number=True, wide=True),
    TableColumn("behind", number=True),
    TableColumn("since", number=True, wide=True),
    TableColumn("reader", wide=True),
)
HELD = TableLayout(
    *columns("slot", "source"),
    TableColumn("acknowledged", number=True, wide=True),
    *_LAG,
    TableColumn("released at", wide=True),
    TableColumn("history left", text=True),
)
POSITIONS = TableLayout(
    TableColumn("slot"),
    TableColumn("clock", wide=True),
    TableColumn("position"),
    *_LAG,
    TableColumn("status"),
    *columns("relation", "lost", text=True),
)


def slot_rows(found: Iterable[SlotHealth]) -> list[dict[str, Any]]:
    """A JSON object for each slot and source; one without sources if the slot holds none."""
    rows: list[dict[str, Any]] = []
    for health in found:
        about = _about(health)
        for each in health.sources:
            lag = {**plain(each), "versions_behind": each.versions_behind}
            rows.append({**about, **lag, "lost": each.lost or health.slot.reason})
        if not health.sources:
            rows.append({**about, "source": None, "lost": health.slot.reason})
    return rows


def _about(health: SlotHealth) -> dict[str, Any]:
    slot = health.slot
    names = ("relation", "clock", "status", "created_at", "acked_at", "expires_at")
    return {
        "slot": slot.name,
        **{name: plain(getattr(slot, name)) for name in names},
        "reader": _reader(slot) or None,
    }


def show_slots(found: Sequence[SlotHealth], *, wide: bool) -> None:
    """Print a table of slots below another table, if there are any."""
    if found:
        out.print()
        out.print(HELD.grid(chain.from_iterable(map(_source_rows, found)), wide=wide))


def _source_rows(health: SlotHealth) -> Iterable[tuple[str | Text, ...]]:
    slot = health.slot
    about = _reader(slot), moment(slot.expires_at)
    for each in health.sources:
        lost = slot.reason or each.lost
        left = color_text(f"lost: {lost}", "red") if lost else history_duration(each.seconds_left)
        versions = number_text(each.acknowledged), number_text(each.newest)
        yield (slot.name, each.source, *versions, size(each.bytes_behind), _since(each), *about,
               left)  # fmt: skip
    if not health.sources:
        lost = color_text(f"lost: {slot.reason}", "red") if slot.is_lost else ""
        yield (slot.name, "", "", "", "", "", *about, lost)


def show_positions(found: Sequence[SlotHealth], *, wide: bool) -> None:
    """Print what each slot follows, and where it is."""
    out.print(POSITIONS.grid(chain.from_iterable(map(_positions, found)), wide=wide))


def _positions(health: SlotHealth) -> Iterable[tuple[str | Text, ...]]:
    slot = health.slot
    status = (
        color_text("LOST", "red") if health.loss_reason else color_text(str(slot.status), "green")
    )
    about, after = (slot.name, slot.clock), (status, one_line(slot.relation), health.loss_reason)
    for each in health.sources:
        at = f"{each.source}@{each.acknowledged}"
        numbers = number_text(each.newest), size(each.bytes_behind), _since(each)
        yield (*about, at, *numbers, _reader(slot), *after)
    if not health.sources:
        yield (*about, "", "", "", "", "", *after)


def _since(lag: SlotLag) -> str:
    return duration(lag.seconds_behind) if lag.seconds_behind else ""


def history_duration(seconds: float | None) -> str:
    """How long a source keeps what is needed of it."""
    if seconds is None:
        return "all"
    return "none: may be deleted any time" if seconds < 0 else duration(seconds)


def _reader(slot: Slot) -> str:
    """The reader whose lease runs, or empty."""
    reader = slot.reader
    return str(reader) if reader is not None and reader.runs() else ""
