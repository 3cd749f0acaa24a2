"""What a store does wrong, by chance or always."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from random import Random

REFUSALS = {
    "AccessDenied": 403,
    "ConditionalRequestConflict": 409,
    "ExpiredToken": 400,
    "InternalError": 500,
    "NoSuchBucket": 404,
    "RequestTimeTooSkewed": 403,
    "SlowDown": 503,
}


@dataclass(frozen=True)
class Faults:
    """Shares are of the puts of commits, from 0 to 1."""

    lost: float = 0
    """Stored, and the connection ends before the answer."""
    failed: float = 0
    """Stored, and answered with 500."""
    conflict: float = 0
    """Not stored, and answered with 409."""
    agent: str = ""
    """The three above happen to clients with this in their name."""
    within: str = ""
    """And to keys with this in them."""
    slow_every: float = 0
    """The seconds from one burst of 503 to the next; in a burst, any request may get one."""
    slow_for: float = 0
    slow_share: float = 0
    latency: float = 0
    """Each request takes up to so many seconds more."""
    held: float = 0
    """Seconds before the answer of each commit that is stored."""
    unconditional: bool = False
    """If-None-Match is ignored."""
    refuse: str = ""
    """The code of an error that answers each write."""
    refuse_reads: bool = False
    spares_data: bool = False
    """What is asked for data files is not refused."""
    after_data: bool = False
    """The refusal begins when the next data file has been stored."""
    clock: float = 0
    """Seconds that the times of commits are off, in turn forward and back."""

    def text(self) -> str:
        return json.dumps(asdict(self))


@dataclass
class Chance:
    """The faults of now, drawn at random, and how often each was met."""

    faults: Faults = Faults()
    random: Random = field(default_factory=lambda: Random(1))
    met: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    def change(self, faults: Faults) -> None:
        self.faults, self.began = faults, time.monotonic()

    def happens(self, name: str, share: float, agent: str, key: str = "") -> bool:
        meant = self.faults.agent in agent and self.faults.within in key
        if not meant or self.random.random() >= share:
            return False
        self.met[name] += 1
        return True

    def is_slow(self) -> bool:
        """Whether a request is refused for now."""
        every = self.faults.slow_every
        if not every or (time.monotonic() - self.began) % every > self.faults.slow_for:
            return False
        return self.happens("503", self.faults.slow_share, self.faults.agent)

    def refusal(self, writes: bool, kind: str) -> str:
        """The code of the error that answers a request, or nothing."""
        faults = self.faults
        if faults.spares_data and kind == "data":
            return ""
        if not faults.refuse or faults.after_data or not (writes or faults.refuse_reads):
            return ""
        self.met[faults.refuse] += 1
        return faults.refuse

    def pause(self) -> None:
        if self.faults.latency:
            time.sleep(self.random.random() * self.faults.latency)
