"""What a refresh sensor remembers from one tick to the next.

To lose it costs a look at each table, no more: one that had nothing to do is looked at once more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

_SKEW = timedelta(minutes=5)
"""How far the clocks of two machines may differ. What lies further ahead was written by a clock
that was wrong, and a table must not wait until that moment comes."""


@dataclass(frozen=True)
class Cursor:
    """The versions of sources that were recorded, and when tables were found to be fresh."""

    sources: Mapping[str, int] = field(default_factory=dict[str, int])
    looked: Mapping[str, float] = field(default_factory=dict[str, float])
    """When each table was last found to have nothing to do, in seconds since 1970."""

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        found = json.loads(text or "{}")
        return cls(found.get("sources", {}), found.get("looked", {}))

    def write(self) -> str:
        return json.dumps({"sources": self.sources, "looked": self.looked})

    def up_to_date(self, name: str, as_of: datetime | None, now: datetime) -> datetime | None:
        """Until when a table is known to reflect its sources.

        Args:
            name: The table.
            as_of: When its last refresh looked at the sources.
            now: The time.
        """
        looked = self.looked.get(name)
        moments = [as_of, datetime.fromtimestamp(looked, UTC) if looked is not None else None]
        return max((m for m in moments if m is not None and m <= now + _SKEW), default=None)

    def after(
        self, observed: Mapping[str, int], fresh: Iterable[str], kept: Iterable[str], now: datetime
    ) -> Cursor:
        """With what a tick saw.

        Args:
            observed: The versions of sources that it recorded.
            fresh: The tables that had nothing to do.
            kept: All tables; what others left behind is forgotten.
            now: The time of the tick.
        """
        looked = {name: self.looked[name] for name in kept if name in self.looked}
        return Cursor(
            {**self.sources, **observed}, looked | dict.fromkeys(fresh, round(now.timestamp(), 3))
        )
