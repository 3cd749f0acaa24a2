"""`Changes`: what one run receives of the changes of a relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.changes.position import (
    Position,
    position_of,
    require_of,
)
from dagster_streamtables.changes.spool import Spool
from dagster_streamtables.errors import RefusedOperation

if TYPE_CHECKING:
    import pyarrow as pa


class Changes:
    """The changes from a slot's position up to a fixed end, whole timestamps only.

    They were read before they are given out, so they may be read as often as wanted, and slowly.
    More than 64 MB of them lie in a temporary file. They can be read until the function that
    receives them returns.
    """

    def __init__(self, spool: Spool, start: Position, end: Position) -> None:
        self.schema = spool.schema
        """Of all rows and batches."""
        self._spool, self._start, self._end = spool, start, end
        self._stored: Position | None = None

    @property
    def rows(self) -> pa.Table:
        """All rows, in order of time, in the requested shape."""
        import pyarrow as pa

        return pa.Table.from_batches(self.batches(), self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches, each of one timestamp; one batch at a time is in memory."""
        return self._spool.batches(self._after)

    def __len__(self) -> int:
        return self._spool.rows(self._after)

    @property
    def snapshot(self) -> bool:
        """Whether the rows begin with a snapshot, which replaces everything before it."""
        return self._start.snapshot and self._after is None

    @property
    def from_timestamp(self) -> int:
        """The timestamp up to which everything was processed before; of a snapshot, its own."""
        return self._start.timestamp if self._after is None else self._after

    @property
    def to_timestamp(self) -> int:
        """The last timestamp whose changes are here."""
        return max(self._end.timestamp, self.from_timestamp)

    @property
    def token(self) -> str:
        """The position after these changes. A sink that stores it together with the rows, in one
        transaction, tells it to `resume_after`, and receives nothing twice."""
        stored = self._stored
        ahead = stored is not None and stored.timestamp > self._end.timestamp
        return (stored if ahead and stored is not None else self._end).token

    def resume_after(self, token: str | None) -> None:
        """Leave out what a sink has stored already, by the token that it stored with it.

        Args:
            token: The last one that the sink stored; None if it has stored none.

        Raises:
            RefusedOperation: It is damaged, of another subscription, or older than the slot, so
                that changes between the two would be missing.
        """
        if token is None:
            return
        stored = position_of(token)
        require_of(stored, self._start.fingerprint, self._start.frontier, self._start.clock)
        if self._start.snapshot and not self._covers(stored):
            return
        if not self._covers(stored):
            raise RefusedOperation(
                "the sink is behind its slot",
                why=f"it has stored the changes up to {stored.timestamp}, and those up to "
                f"{self._start.timestamp} were acknowledged, so what is between would be missing",
                fix="move the slot back to the sink's position, or to a snapshot",
            )
        self._stored = stored

    def _covers(self, stored: Position) -> bool:
        """Whether a position is of the same tables, and not before the first change here."""
        tables = {name: each.table.id for name, each in stored.frontier.items()}
        same = tables == {name: each.table.id for name, each in self._start.frontier.items()}
        return same and stored.timestamp >= self._start.timestamp

    @property
    def _after(self) -> int | None:
        """The timestamp up to which rows are left out; None for none."""
        stored = self._stored
        if stored is None or (stored.snapshot and stored.timestamp == self._start.timestamp):
            return None
        return stored.timestamp - stored.snapshot

    def by_state(self) -> Mapping[str, int]:
        """The number of rows of each state of the envelope; without one, of the copies that were
        inserted and deleted."""
        found: Counter[str] = Counter()
        for batch in self.batches():
            for each in batch.column(1).value_counts().to_pylist():
                value, count = each["values"], each["counts"]
                if isinstance(value, str):
                    found[value] += count
                else:
                    found["inserted" if value > 0 else "deleted"] += abs(value) * count
        return dict(found)
