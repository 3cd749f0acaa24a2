"""Events → bytes: server-sent events for browsers, JSON lines and Arrow for programs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from dagster_streamtables.changes.output.formats import ArrowFormat, Format, NdjsonFormat
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.serve.reading import FeedEvent


class EventEncoder(ABC):
    """One stream to one reader; made for each."""

    media_type: ClassVar[str]
    keep_alive: ClassVar[bytes] = b""
    """What may be sent at any time and means nothing."""

    tells_errors: ClassVar[bool] = False
    """Whether it can tell of an error; otherwise only a broken connection can."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def begin(self) -> bytes:
        return b""

    @abstractmethod
    def event(self, event: FeedEvent) -> bytes: ...

    def encode_error(self, error: StreamTablesError) -> bytes:
        """What tells of an error."""
        raise NotImplementedError

    def end(self) -> bytes:
        return b""


class ServerSentEventsEncoder(EventEncoder):
    """The protocol of a browser's EventSource.

    The id of an event is the resume token, so it comes with the last part of a timestamp alone: a
    reader that is cut off before it gets the whole timestamp again. Of a snapshot, too: `reset`
    says that what came before it is void.
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
        # An id without data moves the position of an EventSource, which then tells nobody.
        id_ = b"" if event.token is None else b"id: " + event.token.encode() + b"\n"
        if event.kind == "moved":
            return id_ + b"\n"
        reset = b""
        if event.begins:
            reset = b"event: reset\ndata: " + json.dumps(event.timestamp).encode() + b"\n\n"
        rows = b"" if event.batch is None else self._rows.batch(event.batch)
        # No row has a line break of its own, in JSON.
        data = b"[" + rows[:-1].replace(b"\n", b",\ndata: ") + b"]"
        told = reset + b"event: " + event.kind.encode() + b"\n" + id_ + b"data: " + data + b"\n\n"
        if event.token is None:
            return told
        about = {"lag": event.lag, "committed": event.changed_at}
        more = (f"event: {k}\ndata: {v:.3f}\n\n" for k, v in about.items() if v is not None)
        return told + "".join(more).encode()


class FormatEncoder(EventEncoder):
    """The rows alone, as `streamtables subscribe` writes them."""

    format: type[Format]

    def __init__(self, schema: Any) -> None:
        super().__init__(schema)
        self._format = self.format()

    def begin(self) -> bytes:
        return self._format.begin(self.schema)

    def event(self, event: FeedEvent) -> bytes:
        return b"" if event.batch is None else self._format.batch(event.batch)

    def end(self) -> bytes:
        return self._format.end()


class JsonLinesEncoder(FormatEncoder):
    format = NdjsonFormat
    media_type = NdjsonFormat.media_type


class ArrowEncoder(FormatEncoder):
    format = ArrowFormat
    media_type = ArrowFormat.media_type


_SENDINGS = (ServerSentEventsEncoder, JsonLinesEncoder, ArrowEncoder)


def encoder_for(accept: str) -> type[EventEncoder]:
    """The format that an ``Accept`` header asks for; server-sent events if it asks for none."""
    for part in accept.split(","):
        wanted = part.partition(";")[0].strip().lower()
        for each in _SENDINGS:
            if wanted == each.media_type:
                return each
    return ServerSentEventsEncoder


def error_fields(error: StreamTablesError) -> dict[str, str]:
    """An error for a reader: without the place, which may be a folder of the server."""
    return {part: getattr(error, part) for part in ("what", "why", "fix")}
