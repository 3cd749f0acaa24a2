"""How long a refresh takes, and for what."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass
class Clock:
    """Seconds by phase."""

    phases: dict[str, float] = field(default_factory=dict[str, float])
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _begin: float = field(default_factory=time.perf_counter)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - begin

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin
