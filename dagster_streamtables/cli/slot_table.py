"""Slots as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from rich.text import Text

from dagster_streamtables.amounts import duration
from dagster_streamtables.cli.console import (
    color_text,
    moment,
    number_text,
    out,
    plain,
    size,
)
from dagster_streamtables.cli.grid import TableColumn, TableLayout
from dagster_streamtables.errors import one_line
from dagster_streamtables.runtime.observe.slot_store import Slot
from dagster_streamtables.runtime.observe.source_health import SlotHealth, SlotLag

HELD = TableLayout(
    TableColumn("slot"),
    TableColumn("source"),
    TableColumn("acknowledged", number=True, wide=True),
    TableColumn("newest", number=True, wide=True),
    TableColumn("behind", number=True),
    TableColumn("since", number=True, wide=True),
    TableColumn("reader", wide=True),
    TableColumn("released at", wide=True),
    TableColumn("history left", text=True),
)
POSITIONS = TableLayout(
    TableColumn("slot"),
    TableColumn("clock", wide=True),
    TableColumn("position"),
    TableColumn("newest", number=True, wide=True),
    TableColumn("behind", number=True),
    TableColumn("since", number=True, wide=True),
    TableColumn("reader", wide=True),
    TableColumn("status"),
    TableColumn("relation", text=True),
    TableColumn("lost", text=True),
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
