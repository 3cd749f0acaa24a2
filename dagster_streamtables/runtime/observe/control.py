"""Whether a stream table may be refreshed: its consecutive errors, and its suspension.

An error that only a person can fix recurs at each attempt, so after a number of them the table is
suspended until somebody resumes it or changes its definition. Temporary failures (a lost race, a
machine without memory) do not count, nor do attempts by hand: who tries a query three times is
there to mend it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dagster_streamtables.errors import StreamTablesError, SuspendedTable
from dagster_streamtables.runtime.errors.foreign_words import first_line
from dagster_streamtables.runtime.errors.verdict import is_lasting
from dagster_streamtables.runtime.model.stream_table import StreamTable

_LONGEST = 200
_REMEMBERED = 20


@dataclass(frozen=True)
class FailedRefresh:
    """One failed attempt to refresh a table."""

    at: str
    """The time, in ISO 8601."""
    error: str
    """The error message, on one line."""
    lasting: bool
    """Whether it counts towards suspension: only a person can fix it, and nobody tried by hand."""


@dataclass(frozen=True)
class Control:
    """The recorded attempts to refresh a table, and its suspension.

    A suspension by a person (`held`) is separate from one by errors: neither a successful refresh
    nor a changed definition ends it.
    """

    errors: int = 0
    """Number of consecutive errors that only a person can fix."""
    error: str = ""
    """The last error message, on one line; empty if the last attempt succeeded."""
    at: str = ""
    """The time of the last error, in ISO 8601."""
    definition: str = ""
    """Fingerprint of the definition that caused the errors."""
    gave_up: str = ""
    """Why it was suspended after errors; empty if it was not."""
    held: str = ""
    """Why a person suspended it; empty if nobody did."""
    held_at: str = ""
    """The start of the suspension, in ISO 8601."""
    failures: tuple[FailedRefresh, ...] = ()
    """The newest failed attempts, newest first, including those before a successful refresh."""
    failed: int = 0
    """Number of failed attempts since the table was created."""

    @property
    def suspension(self) -> str:
        """Why it is suspended; empty if it is not."""
        return self.held or self.gave_up

    @property
    def suspended_at(self) -> str:
        return self.held_at if self.held else self.at

    @property
    def speaks(self) -> bool:
        """Whether it contains errors or a suspension that still apply."""
        return bool(self.suspension or self.error)

    @property
    def without_errors(self) -> Control:
        """The control after a successful attempt."""
        return Control(
            held=self.held, held_at=self.held_at, failures=self.failures, failed=self.failed
        )

    @property
    def without_suspension(self) -> Control:
        """The control after a person ended its suspension."""
        return replace(self.without_errors, held="", held_at="")

    def suspend(self, why: str) -> Control:
        """The control after a person suspended it.

        If a person had suspended it before, keep that time and, without a new reason, that reason.
        """
        said = why or self.held or "suspended by hand"
        return replace(self, held=said, held_at=self.held_at or _now())

    def with_hold_of(self, other: Control) -> Control:
        """The control with another's suspension by a person, if there is one."""
        return replace(self, held=other.held, held_at=other.held_at) if other.held else self

    def after(self, error: Exception, table: StreamTable, *, by_hand: bool = False) -> Control:
        """The control after a failed attempt, by a person or not."""
        here = self.under(fingerprint(table))
        lasting = is_lasting(error) and not by_hand
        failure = FailedRefresh(_now(), _in_a_line(error), lasting)
        counted = replace(
            here,
            errors=here.errors + failure.lasting,
            error=failure.error,
            at=failure.at,
            definition=fingerprint(table),
            failures=(failure, *here.failures)[:_REMEMBERED],
            failed=here.failed + 1,
        )
        if not (failure.lasting and 0 < table.max_consecutive_errors <= counted.errors):
            return counted
        why = f"it failed {counted.errors} times in a row: {failure.error}"
        return replace(counted, gave_up=why)

    def under(self, definition: str) -> Control:
        """The control without errors of another definition."""
        return self if self.definition in ("", definition) else self.without_errors

    def require_active(self) -> None:
        """
        Raises:
            SuspendedTable: It is suspended.
        """
        if self.suspension:
            raise SuspendedTable(
                f"suspended since {self.suspended_at[:19]}",
                why=self.suspension,
                fix="fix the cause, and resume the table by streamtables resume or "
                "Lake.controls.resume" + "; a changed definition resumes it, too" * (not self.held),
            )

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Control:
        """
        Raises:
            ValueError: The value is not a control; likewise TypeError, KeyError.
        """
        known = dict(values)
        failures = tuple(FailedRefresh(**each) for each in known.pop("failures"))
        return cls(**known, failures=failures)


def fingerprint(table: StreamTable) -> str:
    """Identifies a definition."""
    about = (table.query, table.mode, table.dialect, table.session_timezone, repr(table.views))
    return hashlib.sha256("\n".join(map(str, about)).encode()).hexdigest()[:16]


def _in_a_line(error: Exception) -> str:
    """What, and the first line of why: Spark's reasons have many lines."""
    if not isinstance(error, StreamTablesError):
        return f"{type(error).__name__}: {first_line(str(error))[:_LONGEST]}"
    why = error.why.strip().partition("\n")[0][:_LONGEST]
    return f"{error.what}: {why}" if why else error.what


def _now() -> str:
    return datetime.now(UTC).isoformat()
