"""The events of one subscription → bytes: server-sent events, JSON lines, or Arrow."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

from dagster_streamtables.changes.output.output_options import NAMES
from dagster_streamtables.changes.output.row_formats import ArrowFormat, Format, NdjsonFormat
from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.delta.arrow import pa

_PROGRESSED = NAMES["delta"].progressed


@dataclass(frozen=True)
class FeedEvent:
    kind: Literal["snapshot", "change", "progress", "moved"]
    """`moved` has no rows: versions passed that changed none."""
    batch: pa.RecordBatch | None
    token: str | None
    """Where to resume after it; None if its timestamp goes on in the next event."""
    timestamp: int | None
    begins: bool = False
    """Whether a snapshot begins, which replaces everything before it."""
    lag: float | None = None
    """Seconds from the commit of a change to its reading; None if it has none, as a snapshot."""
    changed_at: float | None = None
    """When the last commit that changed rows was made, in seconds since 1970; None if unknown."""
    encoded: dict[str, bytes] = field(default_factory=dict[str, bytes], compare=False)
    """Format → its text; kept, since many readers may receive the same event."""

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
        """The next event; None if there is none now, or the subscription has ended."""
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


class EventEncoder(ABC):
    """One stream to one reader; made for each."""

    media_type: str
    keep_alive: ClassVar[bytes] = b""
    """Bytes without meaning, which may be sent at any time."""

    tells_errors: ClassVar[bool] = False
    """Whether the format has errors; otherwise the connection must be broken."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def begin(self) -> bytes:
        return b""

    @abstractmethod
    def event(self, event: FeedEvent) -> bytes: ...

    def encode_error(self, error: StreamTablesError) -> bytes:
        raise NotImplementedError

    def end(self) -> bytes:
        return b""


class ServerSentEventsEncoder(EventEncoder):
    """The protocol of a browser's EventSource.

    The id of an event is the resume token, so only the last part of a timestamp has one: a reader
    that is cut off before gets the whole timestamp again. The same holds for a snapshot: `reset`
    makes everything before it void.
    """

    media_type = "text/event-stream"
    keep_alive = b": still here\n\n"
    tells_errors = True

    def __init__(self, schema: Any) -> None:
        super().__init__(schema)
        self._rows = NdjsonFormat()
        self._rows.begin(schema)

    def begin(self) -> bytes:
        return b"retry: 1000\n\n"

    def event(self, event: FeedEvent) -> bytes:
        if self.media_type not in event.encoded:
            event.encoded[self.media_type] = self._encode(event)
        return event.encoded[self.media_type]

    def encode_error(self, error: StreamTablesError) -> bytes:
        return b"event: error\ndata: " + json.dumps(error_fields(error)).encode() + b"\n\n"

    def _encode(self, event: FeedEvent) -> bytes:
        # An id without data moves the position of an EventSource, which then fires no event.
        id_ = b"" if event.token is None else b"id: " + event.token.encode() + b"\n"
        if event.kind == "moved":
            return id_ + b"\n"
        reset = f"event: reset\ndata: {json.dumps(event.timestamp)}\n\n" if event.begins else ""
        rows = b"" if event.batch is None else self._rows.batch(event.batch)
        # Rows in JSON contain no line breaks.
        data = b"[" + rows[:-1].replace(b"\n", b",\ndata: ") + b"]"
        told = f"{reset}event: {event.kind}\n".encode() + id_ + b"data: " + data + b"\n\n"
        if event.token is None:
            return told
        about = {"lag": event.lag, "committed": event.changed_at}
        more = (f"event: {k}\ndata: {v:.3f}\n\n" for k, v in about.items() if v is not None)
        return told + "".join(more).encode()


class FormatEncoder(EventEncoder):
    """The rows alone, as `streamtables subscribe` writes them."""

    def __init__(self, kind: type[Format], schema: Any) -> None:
        super().__init__(schema)
        self.media_type, self._format = kind.media_type, kind()

    def begin(self) -> bytes:
        return self._format.begin(self.schema)

    def event(self, event: FeedEvent) -> bytes:
        return b"" if event.batch is None else self._format.batch(event.batch)

    def end(self) -> bytes:
        return self._format.end()


_ENCODERS: dict[str, Callable[[Any], EventEncoder]] = {
    ServerSentEventsEncoder.media_type: ServerSentEventsEncoder,
    NdjsonFormat.media_type: partial(FormatEncoder, NdjsonFormat),
    ArrowFormat.media_type: partial(FormatEncoder, ArrowFormat),
}


def encoder_for(accept: str) -> Callable[[Any], EventEncoder]:
    """Schema → the encoder that an ``Accept`` header requests; by default, server-sent events."""
    types = (part.partition(";")[0].strip().lower() for part in accept.split(","))
    return next((_ENCODERS[each] for each in types if each in _ENCODERS), ServerSentEventsEncoder)


def error_fields(error: StreamTablesError) -> dict[str, str]:
    """An error for a reader: without the place, which may be a folder of the server."""
    return {part: getattr(error, part) for part in ("what", "why", "fix")}
