"""Which worker refreshes the tables below a root: one, whose heartbeats renew its lease.

The heartbeats of the workers of one name are one document, so of two workers that both believe to
be the one, the second finds the heartbeat of the first. No machine is asked for its time: whoever
watches measures, by its own clock, for how long no new heartbeat came.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dagster_streamtables.runtime.delta.names import folders_in
from dagster_streamtables.runtime.observe.lease import Lease
from dagster_streamtables.runtime.storage.documents import FOLDER, SHORT, Document

_FOLDER = "worker"
BEATS = 3
"""A worker without so many heartbeats counts as dead."""


@dataclass(frozen=True)
class Heartbeat:
    """What a worker says of itself."""

    lease: Lease
    every: float
    """Seconds between two heartbeats."""
    started: str
    """The times are those of the worker's machine, in ISO 8601, for people only."""
    at: str = ""
    tables: tuple[str, ...] = ()
    """The tables that it refreshes."""
    definitions: str = ""
    """A hash of their definitions."""
    ended: bool = False
    """It has stopped, so that nobody needs to wait."""
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Numbers and messages for people."""

    @classmethod
    def of_this_process(cls, every: float) -> Heartbeat:
        length = timedelta(seconds=BEATS * every)
        return cls(Lease.begin(length), every, datetime.now(UTC).isoformat())

    def to_json(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**values, "lease": self.lease.to_json()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Heartbeat:
        """A heartbeat, as this version or an earlier one stored it.

        Raises:
            KeyError: It is none; likewise TypeError, ValueError.
        """
        known = dict(values)
        lease = Lease.from_json(known["lease"]) if "lease" in known else _flat_lease(known)
        return cls(**{**known, "lease": lease, "tables": tuple(known["tables"])})

    @property
    def place(self) -> str:
        """The process: ``host:pid``."""
        return f"{self.lease.machine}:{self.lease.pid}"

    def age(self, now: datetime) -> float:
        """Seconds since it was written, by the clocks of both machines."""
        return (now - datetime.fromisoformat(self.at)).total_seconds()

    def seems_alive(self, now: datetime) -> bool:
        """Whether its worker is alive, by the clocks of both machines: for people and programs that
        look once, and so cannot wait for the next heartbeat."""
        return not self.ended and self.lease.runs(now)

    def first_sighting(self, before: LastHeartbeat | None, now: float) -> LastHeartbeat:
        """When a watcher first saw it.

        Args:
            before: The newest heartbeat that the watcher knew.
            now: The watcher's clock.
        """
        beat = f"{self.lease.id} {self.at}"
        # A clock that was set back must not make a dead worker live for ever.
        known = before is not None and before.beat == beat and before.since <= now
        return before if before is not None and known else LastHeartbeat(beat, now)

    def is_alive(self, heard: LastHeartbeat, now: float) -> bool:
        """Whether its worker is alive, by the clock of a watcher that heard it."""
        silent = now - heard.since >= self.lease.seconds
        return not (self.ended or silent or self.lease.has_dead_process)


def _flat_lease(known: dict[str, Any]) -> Lease:
    """The lease of a heartbeat that had its fields, once; it takes these fields."""
    at, seconds = datetime.fromisoformat(known["at"]), BEATS * known["every"]
    holder, host, pid = known.pop("worker"), known.pop("host"), known.pop("pid")
    return Lease(holder, seconds, at + timedelta(seconds=seconds), host, pid, "")


@dataclass(frozen=True)
class LastHeartbeat:
    """The newest heartbeat that a watcher knows, and when it first saw it, by its own clock."""

    beat: str
    """Identifies the heartbeat."""
    since: float
    """In seconds; for a watcher that may be another process at its next look, since 1970."""


class Heartbeats:
    """The heartbeats of the workers of one name below a root; for watchers."""

    def __init__(
        self,
        root: str,
        storage_options: Mapping[str, str] | None = None,
        name: str = "streamtables",
    ) -> None:
        """
        Args:
            root: As for `Lake`.
            storage_options: What delta-rs needs to reach an object store.
            name: The name of the definitions that the worker drives: that of their resource.
        """
        self.document = Document(
            root, f"{_FOLDER}/{name}", Heartbeat, storage_options,
            noun="heartbeat of a worker", kept=SHORT,
        )  # fmt: skip

    def newest(self) -> Heartbeat | None:
        """The newest heartbeat; None if there never was one.

        Raises:
            DamagedTable: It cannot be read.
        """
        return self.document.read()

    def alive(
        self, before: LastHeartbeat | None, now: float
    ) -> tuple[LastHeartbeat | None, Heartbeat | None]:
        """What is known now, and the heartbeat of the worker that is alive, if one is.

        Args:
            before: What the last call returned; None at the first, which then takes the worker for
                alive until it has missed its heartbeats.
            now: The current time in seconds since 1970.
        """
        newest = self.newest()
        if newest is None:
            return None, None
        heard = newest.first_sighting(before, now)
        return heard, newest if newest.is_alive(heard, now) else None


def newest_heartbeats(
    root: str, storage_options: Mapping[str, str] | None = None
) -> dict[str, Heartbeat]:
    """The newest heartbeat of each worker that has ever run below a root, by its name."""
    names = sorted(folders_in(root, f"{FOLDER}/{_FOLDER}", storage_options))
    found = {name: Heartbeats(root, storage_options, name).newest() for name in names}
    return {name: said for name, said in found.items() if said is not None}


class WorkerLease:
    """The right of one worker to refresh the tables, kept by its heartbeats. Not thread-safe."""

    def __init__(
        self, beats: Heartbeats, me: Heartbeat, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._document, self.me, self._clock = beats.document, me, clock
        self._beat_at: float | None = None
        """When it last wrote a heartbeat; None if it does not hold the lease."""
        self._heard: LastHeartbeat | None = None
        """The newest heartbeat of another worker."""
        self.holder: Heartbeat | None = None
        """The worker that holds it instead."""

    @property
    def is_active(self) -> bool:
        """Whether this worker may begin refreshes. A worker that could not write its heartbeats
        must expect that another has begun."""
        return self._age < self.me.lease.seconds

    @property
    def due(self) -> bool:
        """Whether it is time for `turn`."""
        return self._age >= self.me.every

    @property
    def _age(self) -> float:
        """Seconds since the last heartbeat."""
        return float("inf") if self._beat_at is None else self._clock() - self._beat_at

    def renew(self, **said: Any) -> bool:
        """Write a heartbeat, or take the lease if nobody holds it. Returns whether it is held.

        Args:
            said: Fields of the heartbeat.

        Raises:
            Exception: The document can be neither read nor written; the lease then runs out.
        """
        if not self.due:
            return self.is_active
        began, beat = self._clock(), self._beat(said)
        found = self._document.change(
            lambda newest: newest if newest is not None and self._yields_to(newest) else beat
        )
        # Others count from when they see it, which is not before it was written.
        self._beat_at = began if found is beat else None
        self.holder = None if found is beat else found
        return found is beat

    def end(self, **said: Any) -> None:
        """Give the lease back, if it is held."""
        if self._beat_at is not None:
            beat = self._beat({**said, "ended": True})
            self._document.change(lambda newest: beat if self._is_ours(newest) else newest)
            self._beat_at = None

    def _beat(self, said: Mapping[str, Any]) -> Heartbeat:
        at = datetime.now(UTC).isoformat()
        return replace(self.me, lease=self.me.lease.extend(), at=at, **said)

    def _is_ours(self, beat: Heartbeat | None) -> bool:
        return beat is not None and beat.lease.id == self.me.lease.id

    def _yields_to(self, newest: Heartbeat) -> bool:
        """Whether another worker holds the lease."""
        if self._is_ours(newest):
            return False
        if self._beat_at is not None:  # it has taken over
            return True
        now = self._clock()
        self._heard = newest.first_sighting(self._heard, now)
        return newest.is_alive(self._heard, now)
