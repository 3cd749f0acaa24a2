"""Alerts: what somebody should know of, and how it gets to them, once.

Dagster alerts nobody by itself when a check fails or an asset is late. A sensor finds what is new
(see `happened`), and what is here keeps it until it is delivered. An alarm is raised when something
begins, not each time it is seen again: what goes on is *open* until the table recovers.
"""

from __future__ import annotations

import enum
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime

from dagster_streamtables.log import logger

_MOST_WAITING = 1_000
_LONGEST = 4_000
"""Characters of a message: a cursor is a cell of a database."""


class AlertKind(enum.StrEnum):
    """What an alert is about."""

    REFRESH_FAILED = "refresh_failed"
    SUSPENDED = "suspended"
    """It failed too often, and is left alone until somebody resumes it."""
    FRESHNESS_WARNING = "freshness_warning"
    """By Dagster's own freshness policy, as the next."""
    FRESHNESS_FAILED = "freshness_failed"
    CHECK_FAILED = "check_failed"
    RETENTION_WARNING = "retention_warning"
    """A source may soon forget what the next refresh needs."""
    REINITIALIZED = "reinitialized"
    """It was built anew, because what was stored could not be built upon."""
    RECOVERED = "recovered"
    """What was the matter is over."""


@dataclass(frozen=True)
class Alert:
    """Something that happened to a stream table."""

    table: str
    kind: AlertKind
    message: str
    """What is the matter; of a failed refresh: what, where, why and fix."""
    at: datetime
    run_id: str = ""
    """The run in which it happened; empty where there was none."""
    about: str = ""
    """What goes on until the table recovers from it: ``refresh``, ``freshness``, or the name of a
    check. Empty for what is over when it is said."""

    @property
    def is_problem(self) -> bool:
        """Whether somebody may have to act."""
        return self.kind not in (AlertKind.RECOVERED, AlertKind.REINITIALIZED)

    def __str__(self) -> str:
        return f"{self.table}: {self.kind.replace('_', ' ')}: {self.message}"

    def to_values(self) -> dict[str, str]:
        """What JSON can hold of it: all."""
        return {**asdict(self), "kind": str(self.kind), "at": self.at.isoformat()}

    @classmethod
    def from_values(cls, values: Mapping[str, str]) -> Alert:
        """The alert that `to_values` wrote."""
        at = datetime.fromisoformat(values["at"])
        return cls(**{**values, "kind": AlertKind(values["kind"]), "at": at})  # type: ignore[arg-type]


Notify = Callable[[Alert], object]


def log_alert(alert: Alert) -> None:
    """Write an alert to the log of this package: what is done if nothing else is asked for."""
    logger.log(logging.WARNING if alert.is_problem else logging.INFO, "%s", alert)


@dataclass(frozen=True)
class Open:
    """A matter that a table has not recovered from."""

    table: str
    about: str
    said: str
    """The kind of the last alert, and the first line of its message."""
    since: float
    """When the last alert about it was, in seconds since 1970."""


@dataclass(frozen=True)
class Desk:
    """What is kept between two ticks: how far events were read, what is open, what waits."""

    positions: Mapping[str, int] = field(default_factory=dict[str, int])
    """The last event that was read, of each type of event."""
    open: tuple[Open, ...] = ()
    waiting: tuple[tuple[int, Alert], ...] = ()
    """(number of the function, alert) for each delivery that is still to be made."""

    def taken(self, found: Iterable[Alert], functions: int) -> Desk:
        """With what was found, but for alarms that were raised already, waiting for delivery."""
        desk = self
        for alert in sorted(found, key=lambda each: each.at):
            alert = replace(alert, message=alert.message[:_LONGEST])
            if desk.is_news(alert):
                more = tuple((number, alert) for number in range(functions))
                waiting = (*desk.waiting, *more)[-_MOST_WAITING:]
                desk = replace(desk, open=desk._after(alert), waiting=waiting)
        return desk

    def is_news(self, alert: Alert) -> bool:
        """Whether it begins something, ends what is open, or says something else of it."""
        same = [
            each for each in self.open if (each.table, each.about) == (alert.table, alert.about)
        ]
        if alert.kind is AlertKind.RECOVERED:
            return bool(same)
        return not alert.about or all(each.said != _said(alert) for each in same)

    def _after(self, alert: Alert) -> tuple[Open, ...]:
        others = tuple(e for e in self.open if (e.table, e.about) != (alert.table, alert.about))
        if alert.kind is AlertKind.RECOVERED or not alert.about:
            return others if alert.about else self.open
        return (*others, Open(alert.table, alert.about, _said(alert), alert.at.timestamp()))

    def delivered(self, functions: Sequence[Notify]) -> tuple[Desk, list[Exception]]:
        """Call each function with what waits for it.

        An error of a function keeps its alert waiting, and no other one.

        Returns:
            What is still waiting, and the errors.
        """
        left: list[tuple[int, Alert]] = []
        errors: list[Exception] = []
        for number, alert in self.waiting:
            if number >= len(functions):  # one was taken away since
                continue
            try:
                functions[number](alert)
            except Exception as error:
                logger.exception("an alert could not be delivered: %s", alert)
                left.append((number, alert))
                errors.append(error)
        return replace(self, waiting=tuple(left)), errors

    def to_cursor(self) -> str:
        """As text, for the cursor of a sensor."""
        waiting = [(number, alert.to_values()) for number, alert in self.waiting]
        opened = [asdict(each) for each in self.open]
        return json.dumps({"positions": self.positions, "open": opened, "waiting": waiting})

    @classmethod
    def from_cursor(cls, text: str) -> Desk:
        """What `to_cursor` wrote."""
        values = json.loads(text)
        waiting = tuple((number, Alert.from_values(each)) for number, each in values["waiting"])
        opened = tuple(Open(**each) for each in values["open"])
        return cls(values["positions"], opened, waiting)


def _said(alert: Alert) -> str:
    # Of a check, which says other numbers each time, that it fails; of a refresh, also with what.
    what = alert.message.split("\n", 1)[0] if alert.kind is AlertKind.REFRESH_FAILED else ""
    return f"{alert.kind} {what}".strip()


def moment(timestamp: float) -> datetime:
    """A time in seconds since 1970."""
    return datetime.fromtimestamp(timestamp, UTC)
