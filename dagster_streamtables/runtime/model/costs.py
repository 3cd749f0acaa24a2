"""How long refreshes of a table took, and how long the next one would take, differential or full.

The time is proportional to a number of rows plus a constant: the changed rows, or the rows of all
sources. That scales the measurements to other sizes. Of the nearest ones the fastest counts: other
load slowed the rest. A change larger than any measured one is tried once, if that may not take too
long.

The measurements are stored with the frontier, in the commits of the table. A commit cannot contain
its own duration; the next refresh finds it in the log.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class RefreshMethod(enum.StrEnum):
    """How the contents of a table are brought up to date."""

    DIFFERENTIAL = "differential"
    FULL = "full"


_FIXED = {RefreshMethod.DIFFERENTIAL: 20_000, RefreshMethod.FULL: 1_000_000}
"""The constant: rows that take as long as the fixed work of every refresh."""
_KEPT, _NEWEST, _LIKE = 8, 3, 4.0
_NEAR = 2.0
"""Beyond this multiple of a measured size, scaling is wrong: a merge that rewrites a whole table
takes as long for ten times the rows."""
_KNOWN = 10.0
"""Beyond this multiple of any measured size, a prediction is a guess."""
_COLD = 3.0
"""The first refresh of either way may take this many times as long as later ones."""
_AGAIN, _WORTH = 32, 3.0
"""After this many refreshes the other way is tried again, since it may have become better. A trial
may take at most this many times as long."""


@dataclass(frozen=True)
class Effort:
    """The effort of a refresh until the start of its commit."""

    way: RefreshMethod
    rows: int
    seconds: float
    until: float
    """The start of the commit, in seconds since 1970."""
    cold: bool = False
    """Whether its duration does not predict later ones of the same way and size."""


@dataclass(frozen=True)
class Measurement:
    sequence: int
    """The sequence number of the refresh."""
    rows: int
    seconds: float
    cold: bool = False


@dataclass(frozen=True)
class Forecast:
    """The seconds that a refresh would take, either way."""

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
    way: RefreshMethod
    forecast: Forecast
    trial: str = ""
    """Why the way that is predicted to be slower is chosen; empty otherwise."""

    def __str__(self) -> str:
        return f"{self.forecast}{', ' if self.trial else ''}{self.trial}"


@dataclass(frozen=True)
class Costs:
    """The newest measurements of each way and size, oldest first."""

    differential: tuple[Measurement, ...] = ()
    full: tuple[Measurement, ...] = ()

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Costs:
        return cls(
            **{way: tuple(Measurement(**each) for each in values[way]) for way in RefreshMethod}
        )

    def with_effort(self, effort: Effort, sequence: int, committed: float) -> Costs:
        """These measurements and one more, committed at `committed`."""
        seconds = effort.seconds + max(0.0, committed - effort.until)
        kept = {way: getattr(self, way) for way in RefreshMethod}
        cold = effort.cold or not kept[effort.way]
        more = Measurement(sequence, effort.rows, round(seconds, 3), cold)
        kept[effort.way] = _drop_excess(effort.way, (*kept[effort.way], more))
        return Costs(**kept)

    def choice(self, changed: int, rows: int, sequence: int) -> Choice | None:
        """The cheaper way to refresh, given the changed rows and the rows of all sources, and the
        sequence number of the next refresh; None if there are too few measurements."""
        if not (_is_within(_KNOWN, self.differential, changed) and self.full):
            return None
        forecast = Forecast(
            _predict(RefreshMethod.DIFFERENTIAL, self.differential, changed),
            _predict(RefreshMethod.FULL, self.full, rows),
        )
        full_is_better = forecast.full < forecast.differential
        better, other = list(RefreshMethod)[::-1] if full_is_better else list(RefreshMethod)
        least, most = sorted((forecast.differential, forecast.full))
        trial = self._trial(other, changed, sequence)
        if trial and most <= _WORTH * least:
            return Choice(other, forecast, trial)
        return Choice(better, forecast)

    def _trial(self, way: RefreshMethod, changed: int, sequence: int) -> str:
        """Why the prediction of the more expensive way may be wrong; empty if it should hold."""
        if sequence - getattr(self, way)[-1].sequence > _AGAIN:
            return "measured long ago"
        if way is RefreshMethod.DIFFERENTIAL and not _is_within(_NEAR, self.differential, changed):
            return "not measured for so many rows"
        return ""


def _drop_excess(way: RefreshMethod, measured: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
    """If there are too many, drop the oldest of the most frequent size: otherwise many small
    changes would displace a rare large one."""
    if len(measured) <= _KEPT:
        return measured
    sizes = [math.floor(math.log(_FIXED[way] + each.rows, _LIKE)) for each in measured]
    gone = sizes.index(max(sizes, key=sizes.count))
    return measured[:gone] + measured[gone + 1 :]


def _is_within(times: float, changes: Sequence[Measurement], rows: int) -> bool:
    """Whether a change has at most `times` the rows of a measured one."""
    fixed = _FIXED[RefreshMethod.DIFFERENTIAL]
    return any(fixed + rows <= times * (fixed + each.rows) for each in changes)


def _predict(way: RefreshMethod, measured: Sequence[Measurement], rows: int) -> float:
    def factor(each: Measurement) -> float:
        return (_FIXED[way] + rows) / (_FIXED[way] + each.rows)

    nearest = min(reversed(measured), key=lambda each: abs(math.log(factor(each))))
    like = [each for each in measured if 1 / _LIKE <= factor(each) <= _LIKE]
    warm = [each for each in like if not each.cold]
    near = [each for each in warm if 1 / _NEAR <= factor(each) <= _NEAR]
    return min(
        each.seconds * factor(each) / (_COLD if each.cold else 1.0)
        for each in near[-_NEWEST:] or warm[-_NEWEST:] or like or [nearest]
    )
