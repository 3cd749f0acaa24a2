"""A subscription, event by event, as HTTP sends them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from dagster_streamtables.changes.output.names import NAMES
from dagster_streamtables.changes.subscription import Subscription

if TYPE_CHECKING:
    import pyarrow as pa

_PROGRESSED = NAMES["delta"].progressed


@dataclass(frozen=True)
class FeedEvent:
    """What is sent at once."""

    kind: Literal["snapshot", "change", "progress", "moved"]
    """`moved` has no rows: versions that changed none went by."""
    batch: pa.RecordBatch | None
    token: str | None
    """Where to resume after it; None if its timestamp goes on in the next event."""
    timestamp: int | None
    begins: bool = False
    """Whether a snapshot begins, which replaces everything that came before."""
    lag: float | None = None
    """Seconds from the commit of a change to its reading; None if it has none, as a snapshot."""
    changed_at: float | None = None
    """When the last commit was made that changed rows, in seconds since 1970; None if unknown."""
    encoded: dict[str, bytes] = field(default_factory=dict[str, bytes], compare=False)
    """By format; kept here, since many readers may be sent the same event."""

    @property
    def rows(self) -> int:
        return 0 if self.batch is None else self.batch.num_rows


class SubscriptionReader:
    """Reads a subscription; one thread at a time. It never waits."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self._snapshots = 0
        self._in_snapshot = False
        self._token = subscription.token

    def poll(self) -> FeedEvent | None:
        """The next event; None if there is none now, or none any more."""
        followed = self.subscription
        batch = followed.next_batch(0)
        begins = followed.snapshots > self._snapshots
        self._snapshots = followed.snapshots
        token = None if batch is not None and followed.partial else followed.token
        moved, self._token = token != self._token, token
        if batch is None and not begins:
            return FeedEvent("moved", None, token, followed.timestamp) if moved and token else None
        if batch is not None and _is_progress(batch):
            return FeedEvent("progress", batch, token, followed.timestamp)
        kind = "snapshot" if begins or self._in_snapshot else "change"
        self._in_snapshot = kind == "snapshot" and token is None
        lag, changed_at = self._lag(), followed.changed_at
        return FeedEvent(kind, batch, token, followed.timestamp, begins, lag, changed_at)

    def _lag(self) -> float | None:
        committed_at = self.subscription.committed_at
        return None if committed_at is None else max(0.0, time.time() - committed_at)


def _is_progress(batch: pa.RecordBatch) -> bool:
    """A row of progress is alone in its batch."""
    position = batch.schema.get_field_index(_PROGRESSED)
    # A column of the relation may have this name; but then no column of ours has it.
    return position == 1 and batch.num_rows == 1 and bool(batch.column(position)[0].as_py())
