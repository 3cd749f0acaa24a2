"""`Worker`: the process that refreshes a replication, and until when no other does."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from dagster_streamtables.runtime.observe import processes
from dagster_streamtables.runtime.spark.supervisor import birth

LEASE = timedelta(seconds=60)


@dataclass(frozen=True)
class Worker:
    id: str
    host: str
    process: int
    birth: str
    """Of the process: another may get its number."""
    until: datetime

    @classmethod
    def here(cls) -> Worker:
        """A new one, of this process."""
        pid, until = os.getpid(), datetime.now(UTC) + LEASE
        return cls(uuid.uuid4().hex, processes.machine(), pid, birth(pid) or "", until)

    def renewed(self) -> Worker:
        return replace(self, until=datetime.now(UTC) + LEASE)

    @property
    def works(self) -> bool:
        """Whether its lease runs, and its process, as far as this machine can tell.

        That a process is gone lets another begin at once. If it is not gone after all, both work,
        which costs time and nothing else: each commit to a target is of one of them.
        """
        return self.until > datetime.now(UTC) and not self._is_gone()

    def _is_gone(self) -> bool:
        return self.host == processes.machine() and processes.is_gone(self.process, self.birth)

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"
