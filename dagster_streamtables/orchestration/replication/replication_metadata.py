"""The metadata of replicated tables: what a refresh did to one, and how far it is behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replication_report import TableRefresh
from dagster_streamtables.replication.model.replication_model import Lag

ORIGIN = "replica_equals_origin"
LAG = "replication_lag"


COPIED = "streamtables/copied"
UPDATED = "streamtables/updated"
CONFLICTS = "streamtables/conflicts"
"""Followed by a slash and a kind, those of that kind."""
POSITION = "streamtables/position"
"""All changes of the publisher up to it are applied: a version of a lake's table, or an LSN as a
number."""
LSN = "streamtables/lsn"
"""The same as PostgreSQL writes it."""


def of_table(done: TableRefresh, replication: Replication) -> dict[str, Any]:
    """What a refresh did to one table."""
    changed = "NO_DATA" if done.version is None else "CHANGES"
    moved = (done.inserted, done.updated, done.deleted)
    found: dict[str, Any] = {
        keys.ACTION: "COPY" if done.copied is not None else changed,
        keys.REASON: _reason(done),
        keys.ROWS_IN: (done.copied or 0) + sum(moved),
        COPIED: done.copied or 0,
        keys.INSERTED: done.inserted,
        UPDATED: done.updated,
        keys.DELETED: done.deleted,
        CONFLICTS: sum(done.conflicts.values()),
        **{f"{CONFLICTS}/{kind}": number for kind, number in done.conflicts.items()},
    }
    if done.position is not None:
        found[POSITION] = done.position
        if text := replication.publisher.position_text(done.position):
            found[LSN] = text
    return found


def of_lag(lag: Lag) -> dict[str, Any]:
    """How far a replication is behind. What is unknown is left out."""
    found: Mapping[str, Any] = {
        keys.BEHIND: float(lag.seconds),
        keys.BYTES_BEHIND: lag.bytes,
        keys.VERSIONS_BEHIND: lag.commits,
    }
    return {key: value for key, value in found.items() if value is not None}


def _reason(done: TableRefresh) -> str:
    parts = [
        f"{number} {what}"
        for number, what in (
            (done.copied, "copied"),
            (done.inserted, "inserted"),
            (done.updated, "updated"),
            (done.deleted, "deleted"),
            (sum(done.conflicts.values()), "in conflict"),
        )
        if number
    ]
    if parts:
        return f"rows: {', '.join(parts)}"
    return "the publisher has nothing new" if done.version is None else "no row is different"
