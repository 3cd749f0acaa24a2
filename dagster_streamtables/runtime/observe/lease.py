"""`Lease`: the right of one process to do something alone, as a part of a document.

No lock can remain: a process renews its lease while it works, and another may begin once the lease
has ended, or once the process is known to be dead. Exactness never rests on a lease: two processes
that both work repeat work, and each commit is made by one of them.

A process is named by its number and its birth, since another one gets its number after its end.

Of the workers below a root, one refreshes its tables: the one whose heartbeats renew its lease. The
workers of one name share the document of their heartbeats, so a second one finds the first. A
watcher trusts no other clock: it measures by its own for how long no new heartbeat was written.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from dagster_streamtables.runtime.delta.table_locations import folders_in
from dagster_streamtables.runtime.spark.supervisor import birth
from dagster_streamtables.runtime.storage.documents import FOLDER, SHORT, Document

LENGTH = timedelta(seconds=60)
"""The usual length."""


def for_json(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `asdict`: a dict for JSON, with times in ISO 8601."""
    return {name: each.isoformat() if isinstance(each, datetime) else each for name, each in pairs}


@dataclass(frozen=True)
class Lease:
    id: str
    """The id of the holder, who may take and renew the lease."""
    seconds: float
    until: datetime
    host: str
    """As `machine`."""
    pid: int
    birth: str
    """The birth of the process, since another may get its number; empty if unknown."""

    @classmethod
    def begin(cls, length: timedelta, holder: str = "") -> Lease:
        """A lease of this process; by default, of a new holder."""
        pid, until = os.getpid(), datetime.now(UTC) + length
        holder, seconds = holder or uuid.uuid4().hex, length.total_seconds()
        return cls(holder, seconds, until, machine(), pid, birth(pid) or "")

    def extend(self) -> Lease:
        return replace(self, until=datetime.now(UTC) + timedelta(seconds=self.seconds))

    def runs(self, now: datetime | None = None) -> bool:
        """Whether it has not ended, by the clocks of both machines, and its process is not known to
        be dead."""
        return self.until > (now or datetime.now(UTC)) and not self.has_dead_process

    @property
    def has_dead_process(self) -> bool:
        """Whether its process ran on this machine, and has ended."""
        here = bool(self.birth) and self.host == machine()
        return here and is_dead(self.pid, self.birth)

    @property
    def machine(self) -> str:
        """Its name, for people."""
        return self.host.partition("/")[0]

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=for_json)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Lease:
        """A lease, as this version or an earlier one stored it. Raises as `Value.from_json`."""
        known = dict(values)
        if "lease_until" in known:  # a slot's reader, once
            seconds, until = known["lease_seconds"], known["lease_until"]
            return cls(known["id"], seconds, datetime.fromisoformat(until), "", 0, "")
        if "process" in known:  # a replication's worker, once
            known |= {"pid": known.pop("process"), "seconds": LENGTH.total_seconds()}
        return cls(**{**known, "until": datetime.fromisoformat(known["until"])})

    def __str__(self) -> str:
        return f"process {self.pid} on {self.machine}" if self.pid else self.id


@contextmanager
def renewing(renew: Callable[[], object]) -> Iterator[None]:
    """Renew a lease of the usual length in another thread, as often as needed.

    Errors are ignored: a holder that has lost the lease finds out when it stores its work.
    """
    over = threading.Event()

    def run() -> None:
        while not over.wait(LENGTH.total_seconds() / 3):
            with suppress(Exception):
                renew()

    thread = threading.Thread(target=run, name="streamtables-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


_FOLDER = "worker"
BEATS = 3
"""A worker that misses this number of heartbeats counts as dead."""


@dataclass(frozen=True)
class Heartbeat:
    """The state of a worker, by its own account."""

    lease: Lease
    every: float
    """Seconds between two heartbeats."""
    started: str
    """The times are those of the worker's machine, in ISO 8601, for people only."""
    at: str = ""
    tables: tuple[str, ...] = ()
    definitions: str = ""
    """A hash of their definitions."""
    ended: bool = False
    """It has stopped, so no process needs to wait."""
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Numbers and messages for people."""

    @classmethod
    def of_this_process(cls, every: float) -> Heartbeat:
        length = timedelta(seconds=BEATS * every)
        return cls(Lease.begin(length), every, datetime.now(UTC).isoformat())

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=for_json)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Heartbeat:
        """A heartbeat, as this version or an earlier one stored it. Raises as `Value.from_json`."""
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
        """When a watcher, who knew the heartbeat `before`, first saw it, by the watcher's clock."""
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
        """Args: name: The name of the resource whose definitions the worker drives."""
        self.document = Document(
            root, f"{_FOLDER}/{name}", Heartbeat, storage_options,
            noun="heartbeat of a worker", kept=SHORT,
        )  # fmt: skip

    def newest(self) -> Heartbeat | None:
        return self.document.read()

    def alive(
        self, before: LastHeartbeat | None, now: float
    ) -> tuple[LastHeartbeat | None, Heartbeat | None]:
        """What is known now, and the heartbeat of the worker that is alive, if one is.

        Args:
            before: The first item of the last result; None at the first call, which then takes the
                worker for alive until it has missed its heartbeats.
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
        """Whether it is time for `renew`."""
        return self._age >= self.me.every

    @property
    def _age(self) -> float:
        """Seconds since the last heartbeat."""
        return float("inf") if self._beat_at is None else self._clock() - self._beat_at

    def renew(self, **said: Any) -> bool:
        """Write a heartbeat with these fields, or take the lease if no other worker holds it.
        Returns whether it is held.

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
        if self._is_ours(newest):
            return False
        if self._beat_at is not None:  # it has taken over
            return True
        now = self._clock()
        self._heard = newest.first_sighting(self._heard, now)
        return newest.is_alive(self._heard, now)


def machine() -> str:
    """This machine, or this container, as one word: process numbers are unique within it."""
    return _machine(os.getpid())


@cache
def _machine(_process: int) -> str:
    return f"{socket.gethostname()}/{_hardware()}/{_namespace()}"


def _hardware() -> str:
    node = uuid.getnode()
    if node >> 40 & 1:  # without a network card, each process draws one: RFC 9562, section 6.10
        with suppress(OSError):
            return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{node:012x}"


def _namespace() -> str:
    """Containers that share the network of their host have its name, and their own numbers."""
    try:
        return str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:
        return ""


def is_dead(pid: int, born: str) -> bool:
    """Whether a process of this machine is known to have ended."""
    try:
        return birth(pid) != born
    except psutil.Error:
        return False


def describe_processes(*pids: int) -> str:
    """This machine and the living among some of its processes: ``machine pid@birth …``."""
    marks = (f"{pid}@{born}" for pid in pids if (born := birth(pid)) is not None)
    return " ".join([machine(), *marks])


def are_dead(name: str) -> bool:
    """Whether all named processes have ended; false for those of another machine, and for a name
    of another form, since a run's tags can be edited."""
    where, *marks = name.split() or [""]
    parts = [mark.partition("@") for mark in marks]
    here = where == machine() and bool(parts)
    return here and all(pid.isdecimal() and is_dead(int(pid), born) for pid, _, born in parts)


def are_elsewhere(name: str) -> bool:
    """Whether `describe_processes` gave the name on another machine, or in another container."""
    where, *marks = name.split() or [""]
    return bool(marks) and where != machine()


def age() -> float:
    """Seconds since this process began."""
    return time.time() - psutil.Process().create_time()
