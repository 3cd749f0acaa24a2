"""Alerts, and their delivery: each once, unless a tick crashes between its delivery and its end.

Dagster itself does not alert anybody when a check fails or an asset is late. A sensor finds new
events (`alert_events`); this module stores the alerts until they are delivered, or until more than
a thousand newer ones wait. A problem is reported when it begins, not at each repetition: it is
*open* until the table recovers.
"""

from __future__ import annotations

import enum
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime

from dagster_streamtables.amounts import count
from dagster_streamtables.log import logger

_MOST_WAITING = 1_000
_LONGEST = 4_000
"""Maximum length of a message: the cursor is a cell of a database."""


class AlertKind(enum.StrEnum):
    """What an alert is about."""

    REFRESH_FAILED = "refresh_failed"
    SUSPENDED = "suspended"
    """The table failed too often: refreshes are refused until a user resumes it."""
    FRESHNESS_WARNING = "freshness_warning"
    """Reported by Dagster's freshness policy, like `FRESHNESS_FAILED`."""
    FRESHNESS_FAILED = "freshness_failed"
    CHECK_FAILED = "check_failed"
    RETENTION_WARNING = "retention_warning"
    """A source may soon lose the history that the next refresh needs."""
    REINITIALIZED = "reinitialized"
    """The table was recomputed from scratch, because its stored state was unusable."""
    SLOT_LOST = "slot_lost"
    """The publisher dropped the slot of a replication: changes are missing."""
    REPLICATION_DISABLED = "replication_disabled"
    """An error disabled a replication: it is not refreshed until a user enables it."""
    ERRORS_IN_A_ROW = "errors_in_a_row"
    """Three refreshes of a replication failed, so the cause does not pass by itself."""
    RECOVERED = "recovered"
    """A reported problem is over."""


@dataclass(frozen=True)
class Alert:
    """Something that happened to a stream table, or to a replication."""

    table: str
    """Its name; ``replication shop`` where a refresh of all tables of a replication failed."""
    kind: AlertKind
    message: str
    """What happened. For a failed refresh: what, where, why and fix."""
    at: datetime
    run_id: str = ""
    """The run in which it happened; empty if there was none."""
    about: str = ""
    """The problem that stays open until the table recovers: ``refresh``, ``suspension``,
    ``errors in a row``, ``freshness``, or the name of a check. Empty for an alert that opens no
    problem."""

    @property
    def is_problem(self) -> bool:
        """Whether a person may have to act."""
        return self.kind not in (AlertKind.RECOVERED, AlertKind.REINITIALIZED)

    def __str__(self) -> str:
        return f"{self.table}: {self.kind.replace('_', ' ')}: {self.message}"

    def to_values(self) -> dict[str, str]:
        """The alert as a JSON object."""
        return {**asdict(self), "kind": str(self.kind), "at": self.at.isoformat()}

    @classmethod
    def from_values(cls, values: Mapping[str, str]) -> Alert:
        """The alert that `to_values` wrote."""
        at = datetime.fromisoformat(values["at"])
        return cls(**{**values, "kind": AlertKind(values["kind"]), "at": at})  # type: ignore[arg-type]


Notify = Callable[[Alert], object]


def log_alert(alert: Alert) -> None:
    """Write an alert to the log of this package: the default."""
    logger.log(logging.WARNING if alert.is_problem else logging.INFO, "%s", alert)


@dataclass(frozen=True)
class OpenProblem:
    """A problem that a table has not recovered from."""

    table: str
    about: str
    said: str
    """The kind of the last alert; for a failed refresh, with the first line of its message."""
    since: float
    """The time of the last alert about it, in seconds since 1970."""


@dataclass(frozen=True)
class AlertState:
    """The state between two ticks: read positions, open problems, pending deliveries."""

    positions: Mapping[str, int] = field(default_factory=dict[str, int])
    """The last event read of each event type."""
    open: tuple[OpenProblem, ...] = ()
    waiting: tuple[tuple[int, Alert], ...] = ()
    """(index of the function, alert) of each pending delivery."""

    def enqueue(self, found: Iterable[Alert], functions: int) -> AlertState:
        """The state with the found alerts pending, except for problems reported before."""
        desk = self
        for alert in sorted(found, key=lambda each: each.at):
            alert = replace(alert, message=alert.message[:_LONGEST])
            if desk.is_news(alert):
                more = tuple((number, alert) for number in range(functions))
                desk = replace(desk, open=desk._after(alert), waiting=(*desk.waiting, *more))
        if (dropped := len(desk.waiting) - _MOST_WAITING) > 0:
            said = count(dropped, "alert")
            logger.warning("%s dropped: newer ones wait for their delivery", said)
        return replace(desk, waiting=desk.waiting[-_MOST_WAITING:])

    def is_news(self, alert: Alert) -> bool:
        """Whether it opens a problem, ends an open one, or says something new about it."""
        same = [
            each for each in self.open if (each.table, each.about) == (alert.table, alert.about)
        ]
        if alert.kind is AlertKind.RECOVERED:
            return bool(same)
        return not alert.about or all(each.said != _problem_text(alert) for each in same)

    def _after(self, alert: Alert) -> tuple[OpenProblem, ...]:
        others = tuple(e for e in self.open if (e.table, e.about) != (alert.table, alert.about))
        if alert.kind is AlertKind.RECOVERED or not alert.about:
            return others if alert.about else self.open
        return (
            *others,
            OpenProblem(alert.table, alert.about, _problem_text(alert), alert.at.timestamp()),
        )

    def deliver(self, functions: Sequence[Notify]) -> tuple[AlertState, list[Exception]]:
        """Call each function with its pending alerts.

        If a function raises, only that alert stays pending.

        Returns:
            The state with the alerts that are still pending, and the errors.
        """
        left: list[tuple[int, Alert]] = []
        errors: list[Exception] = []
        for number, alert in self.waiting:
            if number >= len(functions):  # the function was removed since
                continue
            try:
                functions[number](alert)
            except Exception as error:
                logger.exception("an alert could not be delivered: %s", alert)
                left.append((number, alert))
                errors.append(error)
        return replace(self, waiting=tuple(left)), errors

    def to_cursor(self) -> str:
        waiting = [(number, alert.to_values()) for number, alert in self.waiting]
        opened = [asdict(each) for each in self.open]
        return json.dumps({"positions": self.positions, "open": opened, "waiting": waiting})

    @classmethod
    def from_cursor(cls, text: str) -> AlertState:
        values = json.loads(text)
        waiting = tuple((number, Alert.from_values(each)) for number, each in values["waiting"])
        opened = tuple(OpenProblem(**each) for each in values["open"])
        return cls(values["positions"], opened, waiting)


def _problem_text(alert: Alert) -> str:
    # A failing check reports other numbers each time, so only its kind counts.
    what = alert.message.split("\n", 1)[0] if alert.about == "refresh" else ""
    return f"{alert.kind} {what}".strip()


def moment(timestamp: float) -> datetime:
    """A time in seconds since 1970."""
    return datetime.fromtimestamp(timestamp, UTC)
