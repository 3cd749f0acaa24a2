"""What one commit says of files, transactions and times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dagster_streamtables.runtime.delta.actions import (
    Action,
    Commit,
    by_kind,
    committed_at,
    info_of,
    metrics_of,
)
from dagster_streamtables.runtime.doctor.paths import Paths

_CONDITIONAL = re.compile(r"delta-rs:py-[1-9]")
"""Writers that create a commit only if the store says that there is none."""
_REPLACING = re.compile(r"REPLACE|RESTORE|CLONE")
_CHANGE_COUNTS = ("numAddedChangeFiles", "numTargetChangeFilesAdded")


@dataclass(frozen=True)
class FileEntry:
    """A file, as an add or remove action names it."""

    path: str
    """As `Paths.plain` returns it."""
    vector: str | None
    """Identifies its deletion vector."""
    size: int
    changes_data: bool


@dataclass(frozen=True)
class CommitRecord:
    version: int
    written: float
    """When its file was written, by the store's clock, in seconds since 1970."""
    told: float | None
    """When it was committed, by the writer's clock."""
    exact: int | None
    """The `inCommitTimestamp`, in milliseconds, which must increase."""
    id: str | None
    """The writer's id for the commit."""
    may_erase: bool
    """Whether its writer may have put it in place of another commit."""
    replaces: bool
    """Whether it replaces the whole table, with which an application may begin anew."""
    adds: list[FileEntry]
    removes: list[FileEntry]
    changes: list[str]
    """The paths of its change files."""
    change_count: int
    """The number of change files by the writer's metrics."""
    transactions: Mapping[str, int]
    """Application → number."""
    metadata: Action | None
    protocol: Action | None


def commit_record(version: int, written: float, actions: Commit, paths: Paths) -> CommitRecord:
    kinds, info = by_kind(actions), info_of(actions)
    metrics = metrics_of(info)
    return CommitRecord(
        version,
        written,
        committed_at(info),
        info.get("inCommitTimestamp"),
        info.get("txnId"),
        _CONDITIONAL.match(str(info.get("engineInfo"))) is None,
        _replaces(info),
        [file_entry(each, paths) for each in kinds.get("add", ())],
        [file_entry(each, paths) for each in kinds.get("remove", ())],
        [paths.plain(each["path"]) for each in kinds.get("cdc", ())],
        sum(int(metrics.get(name) or 0) for name in _CHANGE_COUNTS),
        {each["appId"]: each["version"] for each in kinds.get("txn", ())},
        next(iter(kinds.get("metaData", ())), None),
        next(iter(kinds.get("protocol", ())), None),
    )


def _replaces(info: Action) -> bool:
    mode = (info.get("operationParameters") or {}).get("mode")
    named = _REPLACING.search(str(info.get("operation")))
    return named is not None or str(mode).lower() == "overwrite"


def file_entry(action: Mapping[str, Any], paths: Paths) -> FileEntry:
    return FileEntry(
        paths.plain(action["path"]),
        vector_id(action.get("deletionVector")),
        action.get("size") or 0,
        action.get("dataChange") is not False,
    )


def vector_id(vector: Mapping[str, Any] | None) -> str | None:
    """The unique id of a deletion vector, as the protocol defines it."""
    if not vector or not vector.get("storageType"):
        return None
    offset = vector.get("offset")
    told = f"{vector['storageType']}{vector['pathOrInlineDv']}"
    return told if offset is None else f"{told}@{offset}"
