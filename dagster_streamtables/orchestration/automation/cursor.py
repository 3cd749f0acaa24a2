"""The cursor of a refresh sensor: what it remembers from one tick to the next.

Losing it is harmless: the sensor only evaluates each table again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.observe.heartbeat import Heard

_SKEW = timedelta(minutes=5)
"""How far the clocks of two machines may differ. A time further in the future comes from a wrong
clock, and is ignored: a table must not wait for it."""


@dataclass(frozen=True)
class Cursor:
    """The recorded versions of sources, and when tables were found up to date."""

    sources: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """The newest commit of each: its version, and a digest."""
    looked: Mapping[str, float] = field(default_factory=dict[str, float])
    """When each table was last found to have nothing to do, in seconds since 1970."""
    worker: tuple[str, float] | None = None
    """The newest heartbeat of a worker, and when this sensor first saw it."""

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """The cursor of a text; an empty one where it has none, as after another version."""
        try:
            values = json.loads(text or "{}")
            return cls(
                {str(name): (int(v), str(c)) for name, (v, c) in values["sources"].items()},
                {str(name): float(at) for name, at in values["looked"].items()},
                None if values["worker"] is None else _heard(*values["worker"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()

    def write(self) -> str:
        return json.dumps({"sources": self.sources, "looked": self.looked, "worker": self.worker})

    @property
    def heard(self) -> Heard | None:
        """What is known of a worker."""
        return None if self.worker is None else Heard(*self.worker)

    def up_to_date(self, name: str, as_of: datetime | None, now: datetime) -> datetime | None:
        """The time as of which a table is known to reflect its sources; None if unknown.

        Args:
            name: The table.
            as_of: When its last refresh read the versions of its sources.
            now: The current time.
        """
        looked = self.looked.get(name)
        moments = [as_of, datetime.fromtimestamp(looked, UTC) if looked is not None else None]
        return max((m for m in moments if m is not None and m <= now + _SKEW), default=None)

    def after(
        self,
        observed: Mapping[str, Head],
        fresh: Iterable[str],
        kept: Iterable[str],
        now: datetime,
        heard: Heard | None = None,
    ) -> Cursor:
        """The cursor after a tick.

        Args:
            observed: The commits of sources that the tick recorded.
            fresh: The tables that had nothing to do.
            kept: All current tables; entries of others are removed.
            now: The time of the tick.
            heard: What is known of a worker.
        """
        looked = {name: self.looked[name] for name in kept if name in self.looked}
        return Cursor(
            {**self.sources, **{name: (h.version, h.commit) for name, h in observed.items()}},
            looked | dict.fromkeys(fresh, round(now.timestamp(), 3)),
            None if heard is None else (heard.beat, heard.since),
        )


def _heard(beat: str, since: float) -> tuple[str, float]:
    return str(beat), float(since)
