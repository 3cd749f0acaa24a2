"""What refreshes of a table took, and what the next one would take in either way.

Either way takes about as long as so many rows, and a fixed number more: the rows that changed, or
the rows of all sources. Where nothing of like size was measured, that scales what was. Of the
nearest ones the least counts: whatever else the machine was doing has made the others slower. A
change larger than any that was measured is tried once, if it may not take too long.

What was measured is kept with the frontier, in the commits of the table. A commit cannot hold the
time that it takes itself; the next refresh finds it in the log.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Way(enum.StrEnum):
    """How the contents of a table are brought up to date."""

    DIFFERENTIAL = "differential"
    FULL = "full"


_FIXED = {Way.DIFFERENTIAL: 20_000, Way.FULL: 1_000_000}
"""Rows that take as long as what every refresh does."""
_KEPT, _NEWEST, _LIKE = 8, 3, 4.0
_NEAR = 2.0
"""Farther than so many times the size of what was measured, scaling errs: a merge that writes a
whole table anew takes as long for ten times the rows."""
_KNOWN = 10.0
"""Beyond so many times the size of anything measured, a prediction is a guess."""
_COLD = 3.0
"""The first refresh of either way may take so many times as long as later ones."""
_AGAIN, _WORTH = 32, 3.0
"""After so many refreshes the other way is tried again, if it may take up to so many times as long:
nothing else would notice that it has become the better one. The second holds for any trial."""


@dataclass(frozen=True)
class Effort:
    """What a refresh took until it began to commit."""

    way: Way
    rows: int
    seconds: float
    until: float
    """When it began to commit, in seconds since 1970."""
    cold: bool = False
    """What it took, a later one of the same way and size will not take."""


@dataclass(frozen=True)
class Measured:
    sequence: int
    """The refresh, as the table counts them."""
    rows: int
    seconds: float
    cold: bool = False


@dataclass(frozen=True)
class Forecast:
    """Seconds that a refresh would take in either way."""

    differential: float
    full: float

    def __str__(self) -> str:
        """
        >>> str(Forecast(0.2512, 13.75))
        'differential about 0.25 s, full about 14 s'
        """
        return f"differential about {self.differential:.2g} s, full about {self.full:.2g} s"


@dataclass(frozen=True)
class Choice:
    way: Way
    forecast: Forecast
    trial: str = ""
    """Why it is taken although the other one is cheaper by what is known; empty if it is not."""

    def __str__(self) -> str:
        return f"{self.forecast}{', ' if self.trial else ''}{self.trial}"


@dataclass(frozen=True)
class Costs:
    """Measurements of each way, oldest first: the newest ones of each size."""

    differential: tuple[Measured, ...] = ()
    full: tuple[Measured, ...] = ()

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Costs:
        return cls(**{way: tuple(Measured(**each) for each in values[way]) for way in Way})

    def with_effort(self, effort: Effort, sequence: int, committed: float) -> Costs:
        """These and one more, which was committed at `committed`."""
        seconds = effort.seconds + max(0.0, committed - effort.until)
        kept = {way: getattr(self, way) for way in Way}
        cold = effort.cold or not kept[effort.way]
        more = Measured(sequence, effort.rows, round(seconds, 3), cold)
        kept[effort.way] = _kept(effort.way, (*kept[effort.way], more))
        return Costs(**kept)

    def choice(self, changed: int, rows: int, sequence: int) -> Choice | None:
        """The cheaper way to refresh; None where too little was measured to know.

        Args:
            changed: Changed rows of all sources.
            rows: Rows of all sources.
            sequence: Of the refresh that is to be.
        """
        if not (_is_within(_KNOWN, self.differential, changed) and self.full):
            return None
        forecast = Forecast(
            _predicted(Way.DIFFERENTIAL, self.differential, changed),
            _predicted(Way.FULL, self.full, rows),
        )
        full_is_better = forecast.full < forecast.differential
        better, other = list(Way)[::-1] if full_is_better else list(Way)
        least, most = sorted((forecast.differential, forecast.full))
        trial = self._trial(other, changed, sequence)
        if trial and most <= _WORTH * least:
            return Choice(other, forecast, trial)
        return Choice(better, forecast)

    def _trial(self, way: Way, changed: int, sequence: int) -> str:
        """Why what is known of a way, which is not the cheaper one, may be wrong."""
        if sequence - getattr(self, way)[-1].sequence > _AGAIN:
            return "measured long ago"
        if way is Way.DIFFERENTIAL and not _is_within(_NEAR, self.differential, changed):
            return "not measured for so many rows"
        return ""


def _kept(way: Way, measured: tuple[Measured, ...]) -> tuple[Measured, ...]:
    """Without the oldest of the size that was measured most often, if there are too many: what a
    rare large change took would be forgotten among small ones."""
    if len(measured) <= _KEPT:
        return measured
    sizes = [math.floor(math.log(_FIXED[way] + each.rows, _LIKE)) for each in measured]
    gone = sizes.index(max(sizes, key=sizes.count))
    return measured[:gone] + measured[gone + 1 :]


def _is_within(times: float, changes: Sequence[Measured], rows: int) -> bool:
    """Whether a change has no more than so many times the rows of a measured one."""
    fixed = _FIXED[Way.DIFFERENTIAL]
    return any(fixed + rows <= times * (fixed + each.rows) for each in changes)


def _predicted(way: Way, measured: Sequence[Measured], rows: int) -> float:
    def factor(each: Measured) -> float:
        return (_FIXED[way] + rows) / (_FIXED[way] + each.rows)

    nearest = min(reversed(measured), key=lambda each: abs(math.log(factor(each))))
    like = [each for each in measured if 1 / _LIKE <= factor(each) <= _LIKE]
    warm = [each for each in like if not each.cold]
    near = [each for each in warm if 1 / _NEAR <= factor(each) <= _NEAR]
    return min(
        each.seconds * factor(each) / (_COLD if each.cold else 1.0)
        for each in near[-_NEWEST:] or warm[-_NEWEST:] or like or [nearest]
    )
