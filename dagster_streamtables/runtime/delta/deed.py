"""`Deed`: what the writer of a commit says that it did, beyond the rows that it changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dagster_streamtables.runtime.delta.actions import (
    Commit,
    committed_at,
    info_of,
    user_metadata,
)

REPLICATION = "streamtablesReplication"
"""The key of a commit's metadata under which the replication that made it says where its rows come
from."""
_EVERY_ROW = ("", "[]", '["true"]')
"""The predicates of a DELETE without one: delta-rs records none, Spark one of the others."""


@dataclass(frozen=True)
class Deed:
    truncates: bool = False
    """Whether it deleted all rows without looking at them: a DELETE without a predicate. Replacing
    all rows is not the same."""
    updates: bool = False
    """Whether it is an UPDATE, whose old and new rows are the same rows."""
    replicated: bool = False
    """Whether a replication made it, from changes that were made elsewhere."""
    committed_at: float | None = None
    """In seconds since 1970."""


def deed_of(commit: Commit) -> Deed:
    info = info_of(commit)
    return Deed(
        truncates=_truncates(info),
        updates=info.get("operation") == "UPDATE",
        replicated=REPLICATION in info or REPLICATION in stored_in(user_metadata(info)),
        committed_at=committed_at(info),
    )


def _truncates(info: Mapping[str, Any]) -> bool:
    predicate = (info.get("operationParameters") or {}).get("predicate") or ""
    deletes = info.get("operation") == "DELETE" and predicate in _EVERY_ROW
    return deletes or info.get("operation") == "TRUNCATE"


def stored_in(metadata: str) -> Mapping[str, Any]:
    """The user metadata of Spark, which is one text."""
    try:
        values = json.loads(metadata)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
