"""The state of a stream table and the account of its refresh, in the commit that they describe.

Rows, frontier and transaction number are one Delta commit, so they are always consistent: a refresh
that is killed has either happened as a whole or not at all. No state is stored elsewhere. A table's
history is its log: a refresh that commits nothing has no account, and a failed one is recorded in
the table's control. A commit cannot contain what is known only after it: the rest of the time and,
of a MERGE, the rows that it changed. Both are in the commit's own entry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dagster_streamtables.runtime.delta.actions import Commit, info_of, user_metadata
from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableIdentity, TableLog
from dagster_streamtables.runtime.delta.source_change import Capture, has_row_changes
from dagster_streamtables.runtime.model.costs import Costs, Effort


@dataclass(frozen=True)
class ConsumedWindow:
    """The window of one source; its end is the frontier's version."""

    before: int | None
    capture: Capture
    rows: int | None


@dataclass(frozen=True)
class RefreshRecord:
    """One refresh, until the start of its commit."""

    action: str
    reason: str
    mode: str
    seconds: float
    until: float
    """The start of the commit, in seconds since 1970."""
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    windows: Mapping[str, ConsumedWindow] = field(default_factory=dict[str, ConsumedWindow])
    """The window of each source, by its name in the query."""
    rows: tuple[int, int] | None = None
    """Inserted and deleted rows, if known before the commit."""
    expected: float | None = None
    """The seconds that mode AUTO expected, if it chose."""

    fallback: str = ""
    """As in `Refresh`."""
    full_reason: str = ""
    """As in `Refresh`; empty for None, and if an older version wrote it."""
    fallbacks: int = 0
    """Consecutive refreshes that fell back, including this one, ignoring refreshes without data."""

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> RefreshRecord:
        windows = {
            name: ConsumedWindow(each["before"], Capture(each["capture"]), each["rows"])
            for name, each in values["windows"].items()
        }
        rows = values["rows"] and tuple(values["rows"])
        return cls(**{**values, "windows": windows, "rows": rows})


_MARK = "streamtables"
_FORMAT = 2


@dataclass(frozen=True)
class SourceState:
    """One source as of the version that the table reflects."""

    id: str
    version: int
    columns: Mapping[str, str]
    """The columns that the query uses, and their types."""
    commit: str
    """A digest of that version's commit: a table that is restored from a backup and then written to
    has the same id and version numbers, but another history."""
    encodings: Mapping[str, str] = field(default_factory=dict[str, str])
    """How they are read, if that takes more than the type; see `encoding`."""
    rows: int | None = None
    """Rows of the table, by the statistics of its log."""

    def snapshot(self, location: str) -> Snapshot:
        return Snapshot(TableIdentity(location, self.id), self.version, self.commit)


@dataclass(frozen=True)
class IntermediateState:
    """An intermediate table at the version that belongs to the frontier."""

    id: str
    version: int
    commit: str

    def snapshot(self, location: str) -> Snapshot:
        return Snapshot(TableIdentity(location, self.id), self.version, self.commit)


@dataclass(frozen=True)
class StreamTableState:
    """The frontier of a stream table, and what it was built from."""

    table: str
    sequence: int
    """Number of the refresh's commit, which is also its Delta transaction version."""
    query: str
    """Fingerprint of the definition."""
    sources: Mapping[str, SourceState]
    data_version: str
    data_timestamp: float | None
    """The commit time of the newest version that it reflects, of the tables at the bottom, in
    seconds since 1970: a source that is a stream table counts by its own timestamp, not by the time
    of its refresh."""
    refresh: str
    """Unique for each refresh: distinguishes commits of the same sequence number."""
    account: RefreshRecord
    base: int | None = None
    """The version of the table that the refresh updated; None if it replaced all rows."""
    now: str | None = None
    """The query's current time, in ISO 8601; None if it does not use it."""
    effort: Effort | None = None
    """The effort of the refresh; None if it computed nothing."""
    costs: Costs = field(default_factory=Costs)
    """The effort of earlier refreshes."""
    intermediates: Mapping[str, IntermediateState] = field(
        default_factory=dict[str, IntermediateState]
    )
    """The intermediate tables at the versions that reflect the same sources; empty if the table was
    built without them."""
    whole: str = ""
    """Fingerprint of a definition whose intermediate tables cannot be stored."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """The fingerprint of a definition in mode AUTO that Spark's column types proved impossible to
    maintain, and why."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Committed refreshes since the table was created, including this one, by action: the log keeps
    only the newest."""

    compared: bool = False
    """Whether the names of its columns were compared with those that Spark gives to the query;
    false in tables that an older version wrote."""
    changed_at: str = ""
    """The name of the column with the time of each row's last change; empty without it."""

    @property
    def frontier(self) -> dict[str, int]:
        return {name: seen.version for name, seen in self.sources.items()}

    def with_fingerprints(self, names: Mapping[str, str]) -> StreamTableState:
        """The state with other fingerprints of definitions: present → new."""
        return replace(
            self,
            query=names.get(self.query, self.query),
            whole=names.get(self.whole, self.whole),
            refused={names.get(known, known): why for known, why in self.refused.items()},
        )

    def to_json(self) -> str:
        # The columns of a source keep their order: a step of a pipe may count them.
        values = asdict(self)
        if not self.changed_at:  # older versions know no such key
            del values["changed_at"]
        if not self.account.full_reason:
            del values["account"]["full_reason"]
        return json.dumps({_MARK: _FORMAT, **values})

    @classmethod
    def from_json(cls, text: str) -> StreamTableState | None:
        """The state in a commit's user metadata; None if missing."""
        try:
            values = json.loads(text)
        except ValueError:
            return None
        if not isinstance(values, dict) or values.pop(_MARK, None) != _FORMAT:
            return None
        values["sources"] = {name: SourceState(**seen) for name, seen in values["sources"].items()}
        values["effort"] = values["effort"] and Effort(**values["effort"])
        values["costs"] = Costs.from_values(values["costs"])
        kept = values["intermediates"]
        values["intermediates"] = {name: IntermediateState(**each) for name, each in kept.items()}
        values["account"] = RefreshRecord.from_values(values["account"])
        return cls(**values)


@dataclass(frozen=True)
class TableWithState:
    """A stream table with the state of its last refresh."""

    log: TableLog
    state: StreamTableState
    committed: int
    """The version with `state`."""
    disturbed: bool
    """Whether another writer changed rows after that."""

    @property
    def query_columns(self) -> dict[str, str]:
        """The stored columns of the query, visible and hidden, and their types."""
        own = self.state.changed_at
        return {name: type_ for name, type_ in self.log.columns.items() if name != own}

    @property
    def costs(self) -> Costs:
        """The effort of all refreshes, including the last commit."""
        effort, costs = self.state.effort, self.state.costs
        stamp = self.log.time_of(self.committed) if effort is not None else None
        if effort is None or stamp is None:
            return costs
        return costs.with_effort(effort, self.state.sequence, stamp)


@dataclass(frozen=True)
class TableInStorage:
    """The table at the location of a stream table."""

    log: TableLog
    refreshed: TableWithState | None
    """None if no commit has a readable state."""

    @property
    def state(self) -> StreamTableState | None:
        return self.refreshed.state if self.refreshed is not None else None


def application(table: str) -> str:
    """The application id of the table's Delta transactions."""
    return f"streamtables/{table}"


def state_of(table: str, log: TableLog) -> StreamTableState | None:
    """The state at one version of a table; None if it is not a stream table.

    The transactions of a table are part of its snapshot, so other tables cost nothing here.
    """
    if log.transaction(application(table)) is None:
        return None
    return read_state(log).state


def state_in(commit: Commit) -> StreamTableState | None:
    """The state in a commit; None if no refresh made it."""
    return StreamTableState.from_json(user_metadata(info_of(commit)))


def read_state(log: TableLog) -> TableInStorage:
    """The newest state in a log up to its version, and whether the table was changed since."""
    for version, commit in log.commits_back():
        state = state_in(commit)
        if state is not None:
            disturbed = version != log.version and has_row_changes(log, version)
            # Both writers allow a foreign append between our read and our commit.
            if state.base is not None and state.base < version - 1:
                disturbed |= has_row_changes(log, state.base, version - 1)
            return TableInStorage(log, TableWithState(log, state, version, disturbed))
    return TableInStorage(log, None)
