"""Slots as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from dagster_streamtables.cli.output import (
    coloured,
    count,
    grid,
    lasting,
    moment,
    out,
    plain,
    size,
)
from dagster_streamtables.errors import one_line
from dagster_streamtables.runtime.model.slot import Slot
from dagster_streamtables.runtime.observe.slot_health import SlotHealth


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


def show_slots(found: Sequence[SlotHealth]) -> None:
    """Print a table of slots, if there are any."""
    if not found:
        return
    numbers = ("acknowledged", "newest", "behind", "since")
    shown = grid("slot", "source", *numbers, "reader", "let go at", "history left", right=numbers)
    for health in found:
        slot = health.slot
        about = _reader(slot), moment(slot.expires_at)
        for each in health.sources:
            since = "" if not each.seconds_behind else lasting(each.seconds_behind)
            lost = slot.reason or each.lost
            shown.add_row(
                slot.name, each.source, count(each.acknowledged), count(each.newest),
                size(each.bytes_behind), since, *about,
                coloured(f"lost: {lost}", "red") if lost else history_left(each.seconds_left),
            )  # fmt: skip
        if not health.sources:
            lost = coloured(f"lost: {slot.reason}", "red") if slot.lost else ""
            shown.add_row(slot.name, "", "", "", "", "", *about, lost)
    out.print(shown)


def show_positions(found: Sequence[SlotHealth]) -> None:
    """Print what each slot follows, and where it is."""
    numbers = ("position", "newest", "behind", "since")
    names = ("slot", "clock", *numbers, "reader", "status", "relation")
    shown = grid(*names, right=numbers)
    for health in found:
        slot, status = health.slot, coloured(str(health.slot.status), "green")
        if health.lost:
            status = coloured("LOST", "red")
        about = slot.name, slot.clock
        after = _reader(slot)[:8], status, one_line(slot.relation)
        for each in health.sources:
            at = f"{each.source}@{each.acknowledged}"
            since = "" if not each.seconds_behind else lasting(each.seconds_behind)
            behind = size(each.bytes_behind)
            shown.add_row(*about, at, count(each.newest), behind, since, *after)
        if not health.sources:
            shown.add_row(*about, "", "", "", "", *after)
    out.print(shown)
    for health in found:
        if health.lost:
            out.print(f"{health.slot.name} is lost: {health.lost}", soft_wrap=True)


def history_left(seconds: float | None) -> str:
    """How long a source keeps what is needed of it."""
    if seconds is None:
        return "all"
    return "none: may be deleted any time" if seconds < 0 else lasting(seconds)


def _reader(slot: Slot) -> str:
    """The reader whose lease runs; empty if there is none."""
    reader = slot.reader
    return reader.id if reader is not None and reader.lease_until > datetime.now(UTC) else ""
