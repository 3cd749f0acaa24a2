"""What a stream table knows of itself, kept in the commit that it describes.

Contents, frontier, and transaction number are one Delta commit, so they cannot fall out of step: a
refresh that is killed has either happened or not. There is no other catalog.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from dagster_streamtables.runtime.delta.actions import Commit, info_of, user_metadata
from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableIdentity, TableLog
from dagster_streamtables.runtime.delta.source_change import rows_moved
from dagster_streamtables.runtime.model.commit_record import Account
from dagster_streamtables.runtime.model.costs import Costs, Effort

_MARK = "streamtables"
_FORMAT = 2


@dataclass(frozen=True)
class Seen:
    """One source as of the version that the table reflects."""

    id: str
    version: int
    columns: Mapping[str, str]
    """The columns that the query uses, and their types."""
    commit: str
    """Digest of the commit of that version: a table that is put back from a backup and overtaken
    has the same id and the same numbers, and another history."""
    encodings: Mapping[str, str] = field(default_factory=dict[str, str])
    """How they are read, where there is more to it than the type; see `encoding`."""
    rows: int | None = None
    """Rows of the table, by the statistics of its log."""

    def snapshot(self, location: str) -> Snapshot:
        return Snapshot(TableIdentity(location, self.id), self.version, self.commit)


@dataclass(frozen=True)
class Kept:
    """An intermediate table at the version that belongs to the frontier."""

    id: str
    version: int
    commit: str

    def snapshot(self, location: str) -> Snapshot:
        return Snapshot(TableIdentity(location, self.id), self.version, self.commit)


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
    """Seconds since 1970 at which the newest version was committed that it reflects, of the tables
    at the bottom: a source that is a stream table counts by its own, not by its commit, which says
    when somebody refreshed it."""
    refresh: str
    """Different for every refresh: tells a commit from another one of the same sequence."""
    account: Account
    """What the refresh did, and why."""
    base: int | None = None
    """The version of the table itself that the refresh built upon; None where it replaced all."""
    now: str | None = None
    """What the query took for the time, in ISO 8601; None if it does not ask for it."""
    effort: Effort | None = None
    """What the refresh took; None where it computed nothing."""
    costs: Costs = field(default_factory=Costs)
    """What the refreshes before it took."""
    intermediates: Mapping[str, Kept] = field(default_factory=dict[str, Kept])
    """The intermediate tables at the versions that reflect the same sources; none of them where the
    table was made without."""
    whole: str = ""
    """Fingerprint of a definition whose intermediate tables cannot be kept."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of a definition in mode AUTO whose columns, once Spark had told their types, turned out not
    to be maintainable: its fingerprint, and why."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Refreshes that committed, this one among them, by their actions: of the table's whole life,
    of which the log forgets the beginning."""

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
        values["effort"] = values["effort"] and Effort(**values["effort"])
        values["costs"] = Costs.from_values(values["costs"])
        kept = values["intermediates"]
        values["intermediates"] = {name: Kept(**each) for name, each in kept.items()}
        values["account"] = Account.from_values(values["account"])
        return cls(**values)


@dataclass(frozen=True)
class Refreshed:
    """A stream table with the state that its last refresh left in it."""

    log: TableLog
    state: State
    committed: int
    """The version that carries `state`."""
    disturbed: bool
    """Somebody else changed rows after that."""

    @property
    def costs(self) -> Costs:
        """What the refreshes took, with the one that committed last."""
        effort, costs = self.state.effort, self.state.costs
        stamp = self.log.time_of(self.committed) if effort is not None else None
        if effort is None or stamp is None:
            return costs
        return costs.with_effort(effort, self.state.sequence, stamp)


@dataclass(frozen=True)
class Stored:
    """The table at the place of a stream table."""

    log: TableLog
    refreshed: Refreshed | None
    """None where no commit carries a state that can be read."""

    @property
    def state(self) -> State | None:
        return self.refreshed.state if self.refreshed is not None else None


def application(table: str) -> str:
    """The application id of the table's Delta transactions."""
    return f"streamtables/{table}"


def state_of(table: str, log: TableLog) -> State | None:
    """The state at one version of a table; None if it is no stream table.

    The transactions of a table are part of its snapshot, so any other table costs nothing here.
    """
    if log.transaction(application(table)) is None:
        return None
    return read_state(log).state


def data_timestamp(name: str, log: TableLog) -> float | None:
    """How old the data of one version of a table is; see `State.data_timestamp`."""
    state = state_of(name, log)
    return log.committed_at if state is None else state.data_timestamp


def state_in(commit: Commit) -> State | None:
    """The state that a commit carries; None if it is not that of a refresh."""
    return State.from_json(user_metadata(info_of(commit)))


def read_state(log: TableLog) -> Stored:
    """The newest state in a log up to its version, and whether the table still is what it says."""
    for version in range(log.version, -1, -1):
        [(_, commit)] = log.commits(version - 1, version)
        if commit is None:
            break
        state = state_in(commit)
        if state is not None:
            disturbed = version != log.version and rows_moved(log, version)
            # Both writers let another's append pass between our read and our commit.
            if state.base is not None and state.base < version - 1:
                disturbed |= rows_moved(log, state.base, version - 1)
            return Stored(log, Refreshed(log, state, version, disturbed))
    return Stored(log, None)
