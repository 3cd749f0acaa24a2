"""The content of checkpoints: of one file, of several parts, and of version 2 with sidecars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dagster_streamtables.runtime.delta.actions import Action, actions_of, by_kind
from dagster_streamtables.runtime.delta.arrow import may_use_threads, open_parquet
from dagster_streamtables.runtime.delta.log_paths import FOLDER
from dagster_streamtables.runtime.doctor.commits import file_entry
from dagster_streamtables.runtime.doctor.log_files import LogFiles
from dagster_streamtables.runtime.errors.tables import unreadable_log

_SIDECARS = f"{FOLDER}/_sidecars"
_READ = [
    "add.path", "add.size", "add.deletionVector", "remove.path", "txn.appId", "txn.version",
    "metaData", "protocol", "sidecar.path",
]  # fmt: skip

Held = tuple[str | None, int]
"""The deletion vector of a file, and its size."""


@dataclass
class LogState:
    """What the log has up to some version."""

    live: dict[str, Held] = field(default_factory=dict)
    """Path → what makes up the table."""
    removed: set[str] = field(default_factory=set)
    transactions: dict[str, int] = field(default_factory=dict)
    metadata: Action | None = None
    protocol: Action | None = None

    @property
    def size(self) -> int:
        return sum(size for _, size in self.live.values())


def checkpoint_state(log: LogFiles, parts: list[str]) -> LogState | None:
    """The state in a checkpoint; None if a file of it was deleted meanwhile.

    Raises:
        DamagedTable: It cannot be read.
    """
    state, left = LogState(), list(parts)
    while left:
        path = left.pop()
        try:
            kinds = _kinds(log, path)
        except FileNotFoundError:
            return None
        left += [_sidecar(each["path"]) for each in kinds.get("sidecar", ())]
        for each in kinds.get("add", ()):
            entry = file_entry(each, log.paths)
            state.live[entry.path] = entry.vector, entry.size
        state.removed.update(log.paths.plain(each["path"]) for each in kinds.get("remove", ()))
        state.transactions |= {each["appId"]: each["version"] for each in kinds.get("txn", ())}
        state.metadata = next(iter(kinds.get("metaData", ())), state.metadata)
        state.protocol = next(iter(kinds.get("protocol", ())), state.protocol)
    return state


def _sidecar(path: str) -> str:
    """Its path below the table: a sidecar is always in the log's own folder."""
    return f"{_SIDECARS}/{path.rsplit('/', 1)[-1]}"


def _kinds(log: LogFiles, path: str) -> Mapping[str, list[Action]]:
    """The actions in a file of a checkpoint, by kind."""
    place = f"{log.location}/{path}"
    if path.endswith(".json"):
        content = log.read(path)
        if content is None:
            raise FileNotFoundError(place)
        return by_kind(actions_of(content, place))
    import pyarrow as pa

    try:
        with open_parquet(log.files, path) as file:
            rows = file.read(columns=_READ, use_threads=may_use_threads(log.files))
        return {name: _to_actions(rows.column(name)) for name in rows.column_names}
    except pa.ArrowException as error:
        raise unreadable_log(place, str(error)) from error


def _to_actions(column: Any) -> list[Action]:
    """The actions of one kind; a map comes as pairs."""
    found = column.drop_null().to_pylist()
    for each in found:
        if isinstance(each.get("configuration"), list):
            each["configuration"] = dict(each["configuration"])
    return found
