"""Schedules: how fresh a stream table must be, and when it must be refreshed to stay so.

A duration is a bound on age. A cron expression is a list of times, each of which asks for one
refresh. ``on change`` asks for a refresh as soon as a source moved. Nothing here reads a clock:
every time is an argument.

A table with a duration is refreshed on a grid of canonical periods, 48 · 2ᵏ seconds counted from
the epoch: the largest period that is not longer than the duration. Each period divides every longer
one, so tables that read one another come due at the same times and are refreshed together, and none
is ever older than its schedule allows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from croniter import croniter

from dagster_streamtables.errors import InvalidDefinition, StreamTablesError, underline
from dagster_streamtables.runtime.model.stream_table import check_zone

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MIN_SCHEDULE_SECONDS = 60

_FORMS = (
    "write a duration (30s, 5m, 1h30m), a cron expression of five fields (*/10 8-18 * * 1-5) or of "
    f"six with the seconds first, one of {', '.join(ALIASES)}, or on change"
)
_SPELLED_OUT = (
    r"([0-9]+)(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![a-z])"
)
# croniter also accepts R, a random value, which would differ between processes.
_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,\-#?]+")
_RANDOM = re.compile(r"(^|,)[RrHh](\(|/|$|,)")
# Gaps between ticks are measured in this year and in UTC, where no clock change shortens a gap.
_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Duration:
    """A bound on the age of a table, in seconds."""

    text: str
    seconds: int

    @property
    def period(self) -> float:
        """Seconds between two points of the grid on which it is refreshed.

        >>> Duration("5m", 300).period, Duration("48s", 48).period, Duration("30s", 30).period
        (192.0, 48.0, 24.0)
        """
        return 48.0 * 2.0 ** math.floor(math.log2(self.seconds / 48))

    def due_at(self, last: datetime) -> datetime:
        """The next point of the grid after the last refresh."""
        points = math.floor(last.timestamp() / self.period) + 1
        return datetime.fromtimestamp(points * self.period, UTC)

    def deadline(self, last: datetime) -> datetime:
        """When the table becomes older than its schedule allows."""
        return last + timedelta(seconds=self.seconds)

    def shortest_gap(self) -> float:
        """The shortest time between two refreshes that it asks for, in seconds."""
        return float(self.seconds)

    def longest_gap(self) -> float:
        """The longest time between two refreshes that it asks for, in seconds."""
        return float(self.seconds)


@dataclass(frozen=True)
class Cron:
    """A cron expression: one refresh after each tick."""

    text: str
    """As written; an alias stays an alias."""
    timezone: str = "UTC"

    @property
    def expression(self) -> str:
        """Five fields, or six with the seconds first."""
        return ALIASES.get(self.text.lower(), self.text)

    @property
    def has_seconds(self) -> bool:
        """Whether the first of its fields is the seconds."""
        return len(self.expression.split()) == 6

    def ticks(self, after: datetime) -> Iterator[datetime]:
        """All ticks after a time, in UTC.

        If the expression names hours, ticks in an hour that a clock change repeats count only once:
        2:30 comes once a day.
        """
        zone = ZoneInfo(self.timezone)
        ticks = croniter(
            self.expression, after.astimezone(zone), second_at_beginning=self.has_seconds
        )
        names_hours = not self.expression.split()[-4].startswith("*")
        while True:
            tick = ticks.get_next(datetime).astimezone(UTC)
            if not (names_hours and tick.astimezone(zone).fold):
                yield tick

    def due_at(self, last: datetime) -> datetime:
        """The first tick after the last refresh."""
        return next(self.ticks(last))

    def deadline(self, last: datetime) -> datetime:
        """The tick after the one that asks for the refresh."""
        return next(islice(self.ticks(last), 1, None))

    def shortest_gap(self) -> float:
        """The shortest time between two of the year's first ticks, in seconds."""
        return _shortest_gap(self.expression)

    def longest_gap(self) -> float:
        """The longest time between two ticks of a year, in seconds."""
        return _longest_gap(self.expression)


@dataclass(frozen=True)
class OnChange:
    """A refresh as soon as a source moved. It counts as late after ten seconds."""

    text: str = "on change"
    seconds: int = 0
    """As a bound on age, it is tighter than any duration."""

    def due_at(self, last: datetime) -> datetime:
        """At once: whether there is anything to do is for the versions of the sources to say."""
        return last

    def deadline(self, last: datetime) -> datetime:
        """When the table counts as late."""
        return last + timedelta(seconds=self.longest_gap())

    def shortest_gap(self) -> float:
        return 0.0

    def longest_gap(self) -> float:
        """How old a change may become, in seconds."""
        return 10.0


Schedule = Duration | Cron | OnChange


def resolved_text(schedule: Schedule | None, inherits: Sequence[str] | None, reader: str) -> str:
    """A schedule as text, with the tables it is inherited from: `inherits` is the path to the table
    whose duration it is, None for an own schedule. `reader` is the noun for tables that may pass
    their schedules on."""
    if inherits is None:
        return schedule.text if schedule else "none"
    if schedule is None:
        return f"on demand: no {reader} that reads it has a duration as its schedule"
    return f"{schedule.text}, from {' through '.join(reversed(inherits))}"


def parse_schedule(
    text: str | None,
    timezone: str = "UTC",
    *,
    min_schedule_seconds: float = MIN_SCHEDULE_SECONDS,
) -> Schedule | None:
    """Read a schedule; None and ``CALCULATED`` give None.

    >>> parse_schedule("1h30m")
    Duration(text='1h30m', seconds=5400)
    >>> parse_schedule("@daily", "Europe/Berlin").expression
    '0 0 * * *'

    Raises:
        InvalidDefinition: The text is not a schedule, asks for refreshes more often than every
            `min_schedule_seconds`, or the time zone does not exist.
    """
    text = (text or "").strip()
    if not text or text.upper() == "CALCULATED":
        return None
    check_zone(timezone)
    schedule = _parse(text, timezone)
    shortest = schedule.shortest_gap()
    if shortest < min_schedule_seconds:
        raise InvalidDefinition(
            f'the schedule "{schedule.text}" is too tight',
            where=underline(schedule.text, 0, len(schedule.text) - 1).shown,
            why=f"it asks for a refresh after {shortest:g} seconds; the minimum is "
            f"{min_schedule_seconds:g}",
            fix="allow more time, or lower min_schedule_seconds and run streamtables worker",
        )
    return schedule


def _parse(text: str, timezone: str) -> Schedule:
    fields = text.split()
    if [field.lower() for field in fields] == ["on", "change"]:
        return OnChange()
    is_cron = text.startswith("@") or len(fields) > 3 or "*" in text
    return _cron(text, timezone) if is_cron else _duration(text)


def _duration(text: str) -> Duration:
    seconds, position, used = 0, 0, ""
    while position < len(text):
        part = re.compile(r"([0-9]+)([smhdw])").match(text, position)
        if part is None:
            found = re.compile(r"[0-9]*").match(text, position)
            at = found.end() if found else position
            why = "a number needs one of the units s, m, h, d, w" if at > position else ""
            raise _syntax_error(text, min(at, len(text)), why=why)
        if part[2] in used:
            raise _syntax_error(
                text, part.start(), part.end(), why=f"it has the unit {part[2]} twice"
            )
        seconds += int(part[1]) * UNITS[part[2]]
        used += part[2]
        position = part.end()
    if not 0 < seconds <= 100 * 366 * UNITS["d"]:
        raise _syntax_error(text, 0, len(text), why=f"it lasts {seconds} seconds")
    return Duration(text, seconds)


def _cron(text: str, timezone: str) -> Cron:
    if text.startswith("@"):
        if text.lower() not in ALIASES:
            raise _syntax_error(text, 0, len(text), why="there is no such alias")
        return Cron(text, timezone)
    fields = list(re.finditer(r"\S+", text))
    if len(fields) not in (5, 6):
        raise _syntax_error(text, 0, len(text), why=f"it has {len(fields)} fields, not five or six")
    for place, field in enumerate(fields):
        alone = ["*"] * len(fields)
        alone[place] = field[0]
        if not _is_field(field[0], " ".join(alone)):
            name = ("second", "minute", "hour", "day of month", "month", "day of week")
            which = name[place - len(fields)]
            raise _syntax_error(text, field.start(), field.end(), why=f"it is not a valid {which}")
    cron = Cron(" ".join(field[0] for field in fields), timezone)
    try:
        next(cron.ticks(_YEAR))
    except ValueError as error:  # croniter's own errors are subclasses
        raise _syntax_error(text, 0, len(text), why=f"it has no next tick ({error})") from None
    return cron


def _is_field(field: str, expression: str) -> bool:
    if not _CRON_FIELD.fullmatch(field) or _RANDOM.search(field):
        return False
    return croniter.is_valid(expression, second_at_beginning=expression.count(" ") == 5)


@lru_cache
def _shortest_gap(expression: str) -> float:
    ticks = islice(Cron(expression).ticks(_YEAR), 400)
    return min((b - a).total_seconds() for a, b in pairwise(ticks))


@lru_cache
def _longest_gap(expression: str) -> float:
    """The longest gap between two ticks. Ticks are dense within an hour or a day and then pause, so
    it looks around the hours of the first day with a tick, around every midnight of the year, and
    among the first ticks."""
    cron = Cron(expression)
    first = list(islice(cron.ticks(_YEAR), 100))
    midnight = first[0].replace(hour=0, minute=0, second=0)
    hours = (midnight + timedelta(hours=hour) for hour in range(25))
    days = (_YEAR + timedelta(days=day) for day in range(366))
    probes = [first, *(_around(cron, moment) for moment in (*hours, *days))]
    return max((b - a).total_seconds() for probe in probes for a, b in pairwise(probe))


def _around(cron: Cron, moment: datetime) -> list[datetime]:
    ticks = croniter(cron.expression, moment, second_at_beginning=cron.has_seconds)
    before: datetime = ticks.get_prev(datetime)
    return [before, next(cron.ticks(before))]


def _syntax_error(
    text: str, start: int, stop: int | None = None, why: str = ""
) -> StreamTablesError:
    where = underline(text, start, (stop or start + 1) - 1).shown
    meant = _meant(text)
    fix = f'write "{meant}"; or {_FORMS}' if meant else _FORMS
    return InvalidDefinition(f'"{text}" is not a schedule', where=where, why=why, fix=fix)


def _meant(text: str) -> str:
    """The schedule that a text may mean; empty if none comes to mind.

    >>> _meant("5 minutes"), _meant("every 1 hour 30 min"), _meant("@dayly"), _meant("soon")
    ('5m', '1h30m', '@daily', '')
    """
    if text.startswith("@"):
        return next(iter(get_close_matches(text.lower(), ALIASES, n=1)), "")
    words = re.sub(r"^every\s+", "", text.lower()).replace(" ", "")
    if not re.fullmatch(rf"(?:{_SPELLED_OUT})+", words):
        return ""
    return "".join(n + unit[0] for n, unit in re.findall(_SPELLED_OUT, words))
