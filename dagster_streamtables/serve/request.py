"""The parameters of a request → what is followed, and from where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dagster_streamtables.changes.clock.clock import AtLeast, bound
from dagster_streamtables.changes.output.output_options import ENVELOPES, Envelope
from dagster_streamtables.changes.subscription import Subscription, subscribe
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.serve.access_policy import ServerConfig

_WORDS = {"true": True, "1": True, "": True, "false": False, "0": False}
Parameters = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class RelationRequest:
    """A relation and its form. Readers of the same share the reading of new changes."""

    relation: str
    progress: bool = False
    envelope: Envelope | None = None
    order_by: tuple[str, ...] = ()
    clock: Any = None

    def subscribe(self, offer: ServerConfig, start: Start) -> Subscription:
        return subscribe(
            offer.lake, self.relation, progress=self.progress, envelope=self.envelope,
            order_by=self.order_by, clock=self.clock, batch_rows=offer.limits.batch_rows,
            **vars(start),
        )  # fmt: skip


@dataclass(frozen=True)
class Start:
    """The bounds of a subscription."""

    as_of: str | AtLeast | None = None
    up_to: str | None = None
    snapshot: bool = True
    resume: str | None = None
    on_history_lost: Literal["error", "resnapshot"] = "error"

    def after_token(self, token: str) -> Start:
        return Start(up_to=self.up_to, resume=token, on_history_lost=self.on_history_lost)


def read_request(
    relation: str, given: Parameters, *, last_event_id: str | None
) -> tuple[RelationRequest, Start]:
    """
    Args:
        relation: The relation to follow.
        given: The parameters; each may be repeated.
        last_event_id: The header of a browser that reconnects with the address unchanged: it
            replaces `as_of`, `snapshot` and `resume`.

    Raises:
        RefusedOperation: A parameter is unknown, repeated, or has an invalid value.
    """
    values = {name: read(name, given[name]) for name, read in _READ.items() if name in given}
    for name in given:
        if name not in _READ and name not in ("token", "q", "query"):
            raise RefusedOperation(
                f'parameter "{name[:80]}" is not known', fix=f"known are: {', '.join(_READ)}"
            )
    envelope = _envelope(values.pop("envelope", None), values.pop("key", ()))
    of = {name: values.pop(name) for name in ("progress", "order_by", "clock") if name in values}
    start = Start(**values)
    if last_event_id:
        start = start.after_token(last_event_id)
    return RelationRequest(relation, envelope=envelope, **of), start


def _once(name: str, values: Sequence[str]) -> str:
    if len(values) != 1:
        raise RefusedOperation(f'parameter "{name}" is given twice', fix="give it once")
    return values[0]


def _flag(name: str, values: Sequence[str]) -> bool:
    value = _once(name, values).lower()
    if value not in _WORDS:
        raise RefusedOperation(
            f'parameter "{name}" is "{value[:80]}"', fix=f"write {name}=true or {name}=false"
        )
    return _WORDS[value]


def _columns(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Repeated, or separated by commas."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _one_of(*known: str) -> Callable[[str, Sequence[str]], str]:
    def read(name: str, values: Sequence[str]) -> str:
        value = _once(name, values).lower()
        if value not in known:
            raise RefusedOperation(
                f'parameter "{name}" is "{value[:80]}"',
                fix="write " + " or ".join(f"{name}={each}" for each in known),
            )
        return value

    return read


def _as_of(name: str, values: Sequence[str]) -> str | AtLeast:
    """``>=12`` is `AtLeast`."""
    value = _once(name, values)
    return AtLeast(bound(value[2:], name)) if value.startswith(">=") else value


_READ: dict[str, Callable[[str, Sequence[str]], Any]] = {
    "as_of": _as_of,
    "up_to": _once,
    "snapshot": _flag,
    "progress": _flag,
    "envelope": _one_of(*ENVELOPES),
    "key": _columns,
    "order_by": _columns,
    "clock": _one_of("version", "ms"),
    "resume": _once,
    "on_history_lost": _one_of("error", "resnapshot"),
}


def _envelope(name: str | None, key: Sequence[str]) -> Envelope | None:
    if name is not None:
        return ENVELOPES[name](*key)
    if key:
        raise RefusedOperation(
            "a key is given without an envelope",
            fix="add envelope=upsert or envelope=debezium, or leave out the key",
        )
    return None
