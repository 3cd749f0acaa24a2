"""Which worker refreshes the tables below a root: one, whose heartbeats are commits of a ledger.

A heartbeat is a commit that must follow the worker's last one, so of two workers that both believe
to be the one, the second finds that its commit is taken. No lock can stay behind, and no machine
is asked for its time: whoever watches measures, by its own clock, for how long no new heartbeat
came. Refreshes do not depend on it: two of one table at the same time are always safe.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.runtime.delta.names import folders_in
from dagster_streamtables.runtime.storage.documents import FOLDER
from dagster_streamtables.runtime.storage.ledger import Entry, Ledger, OvertakenAppend

_FOLDER = f"{FOLDER}/worker"
BEATS = 3
"""A worker without so many heartbeats counts as dead."""
# Only the newest heartbeat is ever read.
_KEPT = "interval 10 minutes"


@dataclass(frozen=True)
class Heartbeat:
    """What a worker says of itself."""

    worker: str
    """An id of its own, new for each process."""
    host: str
    pid: int
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
        started = datetime.now(UTC).isoformat()
        return cls(uuid.uuid4().hex, socket.gethostname(), os.getpid(), every, started)

    @classmethod
    def from_value(cls, value: Any) -> Heartbeat:
        """
        Raises:
            DamagedTable: The entry is not one of a worker.
        """
        try:
            return cls(**{**value, "tables": tuple(value["tables"])})
        except (TypeError, KeyError) as error:
            raise DamagedTable(
                "the heartbeat of a worker cannot be read",
                why=str(error),
                fix="if a worker of another version runs, stop it; else delete the folder",
            ) from error

    @property
    def place(self) -> str:
        """The process: ``host:pid``."""
        return f"{self.host}:{self.pid}"

    def age(self, now: datetime) -> float:
        """Seconds since it was written, by the clocks of both machines."""
        return (now - datetime.fromisoformat(self.at)).total_seconds()

    def seems_alive(self, now: datetime) -> bool:
        """Whether its worker is alive, by the clocks of both machines: for people and programs that
        look once, and so cannot wait for the next heartbeat."""
        return not self.ended and self.age(now) < BEATS * self.every


@dataclass(frozen=True)
class Heard:
    """The newest heartbeat that a watcher knows, and when it first saw it, by its own clock."""

    version: int
    since: float
    """Seconds since 1970: a watcher may be another process at its next look."""


class Beats:
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
        place = f"{root.rstrip('/')}/{_FOLDER}/{name}"
        self.ledger = Ledger(place, storage_options, kept=_KEPT)

    def newest(self) -> Heartbeat | None:
        """The newest heartbeat; None if there never was one."""
        entry = self.ledger.read()
        return None if entry is None else Heartbeat.from_value(entry.value)

    def alive(self, before: Heard | None, now: float) -> tuple[Heard | None, Heartbeat | None]:
        """What is known now, and the heartbeat of the worker that is alive, if one is.

        Args:
            before: What the last call returned; None at the first, which then takes the worker for
                alive until it has missed its heartbeats.
            now: The current time in seconds since 1970.
        """
        entry = self.ledger.read()
        if entry is None:
            return None, None
        said = Heartbeat.from_value(entry.value)
        # A clock that was set back must not make a dead worker live for ever.
        if before is None or before.version != entry.version or before.since > now:
            before = Heard(entry.version, now)
        lives = not said.ended and now - before.since < BEATS * said.every
        return before, said if lives else None


def newest_heartbeats(
    root: str, storage_options: Mapping[str, str] | None = None
) -> dict[str, Heartbeat]:
    """The newest heartbeat of each worker that has ever run below a root, by its name."""
    names = sorted(folders_in(root, _FOLDER, storage_options))
    found = {name: Beats(root, storage_options, name).newest() for name in names}
    return {name: said for name, said in found.items() if said is not None}


class Lease:
    """The right of one worker to refresh the tables, kept by its heartbeats. Not thread-safe."""

    def __init__(
        self, beats: Beats, me: Heartbeat, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger, self.me, self._clock = beats.ledger, me, clock
        self._own: int | None = None
        """The version of its last heartbeat; None if it does not hold the lease."""
        self._beat_at = 0.0
        self._other: tuple[int, float] | None = None
        """The newest heartbeat of another worker, and when this one first saw it."""
        self.holder: Heartbeat | None = None
        """The worker that holds it instead."""

    @property
    def held(self) -> bool:
        """Whether this worker may begin refreshes. A worker that could not write its heartbeats
        must expect that another has begun."""
        return self._own is not None and self._age < BEATS * self.me.every

    @property
    def due(self) -> bool:
        """Whether it is time for `turn`."""
        return self._own is None or self._age >= self.me.every

    @property
    def _age(self) -> float:
        return self._clock() - self._beat_at

    def turn(self, **said: Any) -> bool:
        """Write a heartbeat, or take the lease if nobody holds it. Returns whether it is held.

        Args:
            said: Fields of the heartbeat.

        Raises:
            Exception: The ledger can be neither read nor written; the lease then runs out.
        """
        if self._own is None:
            entry = self._ledger.read()
            if entry is not None and self._lives(entry):
                return False
            return self._append(said, None if entry is None else entry.version)
        return self._append(said, self._own) if self.due else self.held

    def end(self, **said: Any) -> None:
        """Give the lease back, if it is held."""
        if self._own is not None:
            self._append({**said, "ended": True}, self._own)
            self._own = None

    def _lives(self, entry: Entry) -> bool:
        said, now = Heartbeat.from_value(entry.value), self._clock()
        if self._other is None or self._other[0] != entry.version:
            self._other = entry.version, now
        self.holder = said
        return not said.ended and now - self._other[1] < BEATS * said.every

    def _append(self, said: Mapping[str, Any], after: int | None) -> bool:
        began = self._clock()
        beat = replace(self.me, at=datetime.now(UTC).isoformat(), **said)
        try:
            self._own = self._ledger.append(asdict(beat), after)
        except OvertakenAppend:
            self._own = self._other = None
            return False
        # Others count from when they see it, which is not before it was written.
        self._beat_at, self.holder = began, None
        return True
