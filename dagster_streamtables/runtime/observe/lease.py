"""`Lease`: the right of one process to do something alone, as a part of a document.

No lock can stay behind: a process renews its lease while it works, and another may begin once the
lease has ended, or once the process is known to be gone. Exactness never rests on a lease: two
processes that both work repeat work, and each commit is made by one of them.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dagster_streamtables.runtime.observe import processes
from dagster_streamtables.runtime.spark.supervisor import birth

LENGTH = timedelta(seconds=60)
"""The usual length."""


@dataclass(frozen=True)
class Lease:
    id: str
    """The id of the holder. Who presents it may take and renew the lease."""
    seconds: float
    until: datetime
    host: str
    """As `processes.machine`."""
    pid: int
    birth: str
    """The birth of the process, since another may get its number; empty if unknown."""

    @classmethod
    def begin(cls, length: timedelta, holder: str = "") -> Lease:
        """A lease of this process; by default, of a new holder."""
        pid, until = os.getpid(), datetime.now(UTC) + length
        holder, seconds = holder or uuid.uuid4().hex, length.total_seconds()
        return cls(holder, seconds, until, processes.machine(), pid, birth(pid) or "")

    def extend(self) -> Lease:
        return replace(self, until=datetime.now(UTC) + timedelta(seconds=self.seconds))

    def runs(self, now: datetime | None = None) -> bool:
        """Whether it has not ended, by the clocks of both machines, and its process lives, as far
        as this machine can tell."""
        return self.until > (now or datetime.now(UTC)) and not self.has_dead_process

    @property
    def has_dead_process(self) -> bool:
        """Whether its process was one of this machine, and is gone."""
        here = bool(self.birth) and self.host == processes.machine()
        return here and processes.is_dead(self.pid, self.birth)

    @property
    def machine(self) -> str:
        """Its name, for people."""
        return self.host.partition("/")[0]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "until": self.until.isoformat()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Lease:
        """A lease, as this version or an earlier one stored it.

        Raises:
            KeyError: It is none; likewise TypeError, ValueError.
        """
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

    Args:
        renew: Renews it. Its errors are ignored: who has lost a lease finds out when it stores what
            it did.
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
