"""An asset that receives what changed: it tells when an airline's day becomes a late one."""

# No `from __future__ import annotations`: Dagster reads the annotations of assets at run time.
import os
from pathlib import Path
from typing import Any

import dagster as dg

from dagster_streamtables import Changes, Debezium, change_asset

LATE = 30
"""Minutes: from this average delay on, an airline's day is late."""
FEWEST = 10
"""Landings on that day, so that one flight alone raises no alert."""
_SHOWN = 20


def alerts_file() -> Path:
    """Where the alerts are written: beside the lake of the demo."""
    root = os.environ.get("STREAMTABLES_DEMO_ROOT")
    demo = Path(root).parent if root else Path(__file__).parent.parent / ".demo"
    return demo / "alerts.txt"


@change_asset(
    relation="delay.carrier_days",
    envelope=Debezium("carrier", "flight_date"),
    key_prefix="report",
    group_name="reports",
    kinds={"python"},
    on_history_lost="resnapshot",
)
def late_airlines(changes: Changes) -> dict[str, Any]:
    """Appends a line to `.demo/alerts.txt` whenever an airline's day becomes late, or no longer is.

    It receives the days that changed, as they were and as they are, and not the table.
    """
    told = [
        line for batch in changes.batches() for row in batch.to_pylist() if (line := _alert(row))
    ]
    if changes.snapshot:
        told = []  # the days before the demo began are no news
    file = alerts_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.writelines(f"{line}\n" for line in told)
    shown = "\n".join(f"- {line}" for line in told[-_SHOWN:])
    return {"alerts": len(told), "latest": dg.MetadataValue.md(shown or "none")}


def _alert(row: dict[str, Any]) -> str:
    """What is to be told of a changed day; empty for nothing."""
    before, after = _is_late(row, "before"), _is_late(row, "after")
    if before == after:
        return ""
    airline = row["after_airline"] or row["before_airline"]
    minutes, landed = row["after_average_delay"], row["after_landed"]
    if after:
        return (
            f"{row['flight_date']} {airline} is late: {minutes:.0f} minutes over {landed} landings"
        )
    return f"{row['flight_date']} {airline} is no longer late"


def _is_late(row: dict[str, Any], side: str) -> bool:
    minutes, landed = row[f"{side}_average_delay"], row[f"{side}_landed"]
    return minutes is not None and landed >= FEWEST and minutes >= LATE
