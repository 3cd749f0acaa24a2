"""`Worker`: the process that refreshes a replication, and until when no other does."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache

LEASE = timedelta(seconds=60)


@dataclass(frozen=True)
class Worker:
    id: str
    host: str
    process: int
    started: float
    """Of the process, in seconds since 1970: another may get its number."""
    until: datetime

    @classmethod
    def here(cls) -> Worker:
        """A new one, of this process."""
        host, process, started = _this_process(os.getpid())
        return cls(uuid.uuid4().hex, host, process, started, datetime.now(UTC) + LEASE)

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
        import psutil

        if self.host != _this_process(os.getpid())[0]:
            return False
        try:
            found = psutil.Process(self.process)
            another = abs(found.create_time() - self.started) > 2
            return another or found.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


@cache
def _this_process(process: int) -> tuple[str, int, float]:
    import psutil

    return f"{socket.gethostname()}/{uuid.getnode():012x}", process, psutil.Process().create_time()
