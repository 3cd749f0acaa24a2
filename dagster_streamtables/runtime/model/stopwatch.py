"""How long a refresh takes, by phase."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

CONNECT = "connect"


@dataclass
class Stopwatch:
    """Seconds by phase."""

    phases: dict[str, float] = field(default_factory=dict[str, float])
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _begin: float = field(default_factory=time.perf_counter)
    _within: float = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of a block to a phase, except for phases inside it."""
        begin, outside, self._within = time.perf_counter(), self._within, 0.0
        try:
            yield
        finally:
            took = time.perf_counter() - begin
            self.phases[name] = self.phases.get(name, 0.0) + took - self._within
            self._within = outside + took

    @property
    def work_seconds(self) -> float:
        """Seconds without the time to open a Spark session, or to start the server."""
        return self.seconds - self.phases.get(CONNECT, 0.0)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin
