"""What a stream table knows of itself, kept in the commit that it describes.

Contents, frontier, and transaction number are one Delta commit, so they cannot fall out of step: a
refresh that is killed has either happened or not. There is no other catalog.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from dagster_streamtables.runtime.delta_log import TableLog
from dagster_streamtables.runtime.window import change_between

_MARK = "streamtables"
_FORMAT = 1
_HISTORY_STEP = 20


@dataclass(frozen=True)
class Seen:
    """One source as of the version that the table reflects."""

    id: str
    version: int
    columns: Mapping[str, str]
    """The columns that the query uses, and their types."""


@dataclass(frozen=True)
class State:
    """The frontier of a stream table, and what it was built from."""

    table: str
    sequence: int
    """Counts the commits of refreshes; also the commit's Delta transaction version."""
    query: str
    """Fingerprint of the definition."""
    sources: Mapping[str, Seen]
    data_version: str
    data_timestamp: float | None
    """Seconds since 1970 at which the newest of the source versions was committed."""
    refresh: str
    """Different for every refresh: tells a commit from another one of the same sequence."""
    now: str | None = None
    """What the query took for the time, in ISO 8601; None if it does not ask for it."""

    @property
    def frontier(self) -> dict[str, int]:
        return {name: seen.version for name, seen in self.sources.items()}

    def to_json(self) -> str:
        return json.dumps({_MARK: _FORMAT, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> State | None:
        """The state in a commit's user metadata; None where the commit carries none."""
        try:
            values = json.loads(text)
        except ValueError:
            return None
        if not isinstance(values, dict) or values.pop(_MARK, None) != _FORMAT:
            return None
        values["sources"] = {name: Seen(**seen) for name, seen in values["sources"].items()}
        return cls(**values)


@dataclass(frozen=True)
class Stored:
    """A stream table as its log shows it."""

    log: TableLog
    state: State | None
    """None where no commit carries a state that can be read."""
    committed: int | None
    """The version that carries `state`."""
    disturbed: bool
    """Somebody else changed rows after the commit that carries `state`."""


def application(table: str) -> str:
    """The application id of the table's Delta transactions."""
    return f"streamtables/{table}"


def read_state(log: TableLog) -> Stored:
    """The newest state in the log, and whether the table still is what it says."""
    limit = _HISTORY_STEP
    while True:
        history = log.table.history(limit)
        for offset, commit in enumerate(history):
            state = State.from_json(commit.get("userMetadata") or "")
            if state is not None:
                version = commit.get("version", log.version - offset)
                disturbed = version != log.version and change_between(log, version).moved
                return Stored(log, state, version, disturbed)
        if len(history) < limit:
            return Stored(log, None, None, False)
        limit *= 10
