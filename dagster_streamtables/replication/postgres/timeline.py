"""Timelines: whether a server that took over has the changes that were read from the one before.

A standby that is promoted begins a timeline, and writes other changes at positions that the old
server had, too, if it had not received all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dagster_streamtables.replication.postgres.lsn import lsn_of, lsn_text
from dagster_streamtables.replication.postgres.server import PublisherServer
from dagster_streamtables.runtime.errors.slots import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

TIMELINE = """
    SELECT ('x' || substring(pg_walfile_name(pg_current_wal_flush_lsn()) FOR 8))::bit(32)::int4
"""


@dataclass(frozen=True)
class SlotPosition:
    """What `confirm` returns."""

    position: int
    timeline: int | None

    @classmethod
    def of(cls, text: str) -> SlotPosition:
        """
        >>> str(SlotPosition.of("0/16B3748 2"))
        '0/16B3748 2'
        """
        lsn, _, timeline = text.partition(" ")
        return cls(lsn_of(lsn), int(timeline) if timeline else None)

    def since(self, begin: int | None) -> SlotPosition:
        """Where a slot began later than that, what was confirmed before is no matter of it."""
        return self if begin is None or begin <= self.position else replace(self, position=begin)

    def __str__(self) -> str:
        return f"{lsn_text(self.position)} {self.timeline or ''}".strip()


def timeline_of(connection: Connection) -> int:
    row = connection.execute(TIMELINE).fetchone()
    assert row is not None
    return row[0]


def require_server_history(
    server: PublisherServer,
    now: int,
    before: SlotPosition | None,
    after: Mapping[str, int],
    flushed: int,
) -> None:
    """
    Args:
        server: The server.
        now: Its timeline.
        before: What was confirmed last.
        after: By table, the position of what was applied last.
        flushed: The end of its log.

    Raises:
        LostSlot: The server never had what was read.
    """
    last = max(after.values())
    common = flushed
    if before is not None and before.timeline not in (None, now):
        common = min(flushed, _timeline_ends(server, now).get(before.timeline, 0))
    if last > common:
        raise LostSlot(
            f"PostgreSQL at {server.origin} lacks changes that were replicated",
            why=f"it was restored, or failed over to a standby, which has the log up to "
            f"{lsn_text(common)} only; {lsn_text(last)} was reached",
            fix="copy the tables again; with synchronized_standby_slots, a server sends no changes "
            "that its standbys lack",
        )


def _timeline_ends(server: PublisherServer, timeline: int) -> dict[int | None, int]:
    """By earlier timeline, where the server left it."""
    with server.replication() as protocol:
        row = protocol.execute(f"TIMELINE_HISTORY {timeline}".encode()).fetchone()
    assert row is not None
    content = row[1].decode() if isinstance(row[1], bytes) else row[1]
    lines = (line.split() for line in content.splitlines())
    return {int(each[0]): lsn_of(each[1]) for each in lines if each and each[0].isdigit()}
