"""Who reports a commit of which Dagster was never told: one process, even where two see it at once.

Dagster's event log has no compare-and-swap, so a document of the lake decides. It names the Dagster
instance, for each has events of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.runtime.storage.documents import SHORT, Documents

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

_LONGEST = timedelta(minutes=1)
"""Who does not report in this time has ended, and the next one who sees the commit does."""


@dataclass(frozen=True)
class _Claims:
    """For each Dagster instance, the last refresh that somebody began to report, and when."""

    last: Mapping[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def to_json(self) -> Any:
        return {instance: list(each) for instance, each in self.last.items()}

    @classmethod
    def from_json(cls, values: Any) -> _Claims:
        return cls({str(name): (str(each[0]), float(each[1])) for name, each in values.items()})


def may_report(
    lake: Lake, instance: dg.DagsterInstance, table: str, refresh: str, now: datetime
) -> bool:
    """Whether this process is the one that reports a refresh.

    Args:
        lake: The lake of the table.
        instance: Where it is to be reported.
        table: The table.
        refresh: The `State.refresh` of the commit.
        now: The current time.
    """
    documents = Documents(
        lake.root, "reported", _Claims, lake.storage_options, noun="report", kept=SHORT
    )
    me, mine = _name(instance), False

    def claim(known: _Claims | None) -> _Claims:
        nonlocal mine
        before = known or _Claims()
        by, at = before.last.get(me, ("", 0.0))
        mine = by != refresh or not 0 <= now.timestamp() - at < _LONGEST.total_seconds()
        said = (refresh, now.timestamp())
        return replace(before, last={**before.last, me: said}) if mine else before

    documents.change(table.replace(".", "-")[:100], claim)
    return mine


def _name(instance: dg.DagsterInstance) -> str:
    identify = getattr(instance.run_storage, "get_run_storage_id", None)
    return str(identify()) if identify is not None else str(instance.root_directory)
