"""The lines of a commit: see the section "Actions" of the Delta transaction log protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dagster_streamtables.runtime.errors.table_errors import empty, unreadable_log

Action = Mapping[str, Any]
Commit = Sequence[Action]
"""The actions of one commit, in the order of its file."""
_INFO = "commitInfo"


def actions_of(content: bytes, place: str) -> Commit:
    """The actions in the content of a commit's file, whose path `place` is for errors.

    Raises:
        DamagedTable: The content is empty, or not JSON.
    """
    try:
        actions = [json.loads(line) for line in content.splitlines() if line]
    except ValueError as error:
        raise unreadable_log(place, str(error)) from error
    if not actions:
        raise empty(place)
    return actions


def by_kind(commit: Commit) -> dict[str, list[Action]]:
    """The bodies of the actions, by kind."""
    kinds: dict[str, list[Action]] = {}
    for action in commit:
        for kind, body in action.items():
            kinds.setdefault(kind, []).append(body)
    return kinds


def info_of(commit: Commit) -> Action:
    """The writer's `commitInfo`; empty if missing."""
    return next((action[_INFO] for action in commit if _INFO in action), {})


def info_in(content: bytes) -> Action:
    """As `info_of`, without parsing the other lines of the content, which may be many."""
    mark = f'"{_INFO}"'.encode()
    lines = (line for line in content.splitlines() if mark in line[:20])
    return next((json.loads(line)[_INFO] for line in lines), {})


def informing(info: Action) -> bytes:
    """The content of a commit with only a `commitInfo`."""
    return json.dumps({_INFO: info}).encode() + b"\n"


def user_metadata(info: Action) -> str:
    """The user metadata that the writer stored in the commit."""
    return info.get("userMetadata") or ""


def moment(seconds: float | None) -> datetime | None:
    """A time in seconds since 1970; None stays None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def committed_at(info: Action) -> float | None:
    """When a commit was made, in seconds since 1970."""
    stamp = info.get("timestamp")
    return None if stamp is None else stamp / 1000


def metrics_of(info: Action) -> Mapping[str, Any]:
    """The writer's metrics, under the names of its engine."""
    found = info.get("operationMetrics") or {}
    return json.loads(found) if isinstance(found, str) else found


def changes_rows(action: Action) -> bool:
    """Whether an action of a commit, with its kind as the key, inserted or deleted rows."""
    add, remove = action.get("add"), action.get("remove")
    if add is not None:
        rows = json.loads(add.get("stats") or "{}").get("numRecords")
        return add.get("dataChange", True) and rows != 0
    return "cdc" in action or (remove is not None and remove.get("dataChange", True))


def data_changes(actions: Sequence[Action]) -> list[Action]:
    """The actions of added and removed files, without those that were only rearranged."""
    return [action for action in actions if action.get("dataChange", True)]


REPLICATION = "streamtablesReplication"
"""The key of a commit's metadata with the origin of the rows that a replication wrote."""
_EVERY_ROW = ("", "[]", '["true"]')
"""The predicates of a DELETE without one: delta-rs records none, Spark one of the others."""


@dataclass(frozen=True)
class CommitOperation:
    truncates: bool = False
    """Whether it is a DELETE of all rows without a predicate."""
    updates: bool = False
    """Whether it is an UPDATE."""
    replicated: bool = False
    """Whether a replication made it."""
    committed_at: float | None = None
    """In seconds since 1970."""


def operation_of(commit: Commit) -> CommitOperation:
    info = info_of(commit)
    operation = info.get("operation")
    predicate = (info.get("operationParameters") or {}).get("predicate") or ""
    return CommitOperation(
        truncates=operation == "TRUNCATE" or (operation == "DELETE" and predicate in _EVERY_ROW),
        updates=operation == "UPDATE",
        replicated=REPLICATION in info or REPLICATION in parse_metadata(user_metadata(info)),
        committed_at=committed_at(info),
    )


def parse_metadata(metadata: str) -> Mapping[str, Any]:
    """The user metadata of Spark, which is one text."""
    try:
        values = json.loads(metadata)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
