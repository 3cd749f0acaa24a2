"""Blocking asset checks: tables below an asset must not read its rows while such a check fails.

Dagster itself stops the rest of a run. The sensor and the worker stop the refreshes after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from dagster_streamtables.dagster_private import (
    AssetCheckExecutionRecord,
    AssetCheckExecutionRecordStatus,
)


@dataclass(frozen=True)
class BlockingChecks:
    """The blocking checks of the assets of a code location; those of this package never block."""

    keys: tuple[dg.AssetCheckKey, ...] = ()

    @classmethod
    def among(cls, graph: Any) -> BlockingChecks:
        """The blocking checks in the asset graph of a code location."""
        keys = (key for key in graph.asset_check_keys if graph.get_check_spec(key).blocking)
        return cls(tuple(sorted(keys, key=str)))

    @property
    def assets(self) -> frozenset[dg.AssetKey]:
        """The assets that have one."""
        return frozenset(key.asset_key for key in self.keys)

    def of(self, assets: Collection[dg.AssetKey]) -> list[dg.AssetCheckKey]:
        return [key for key in self.keys if key.asset_key in assets]

    def refusals(self, instance: dg.DagsterInstance) -> dict[dg.AssetKey, str]:
        """Why nothing below an asset may read its rows now, for each asset to which that applies.

        A check that was never evaluated refuses nothing, as in Dagster.
        """
        if not self.keys:
            return {}
        found = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(self.keys))
        reasons = ((key.asset_key, _reason(key, found.get(key), instance)) for key in self.keys)
        return {asset: why for asset, why in reasons if why}


def blocks_of(
    sources: Mapping[str, Mapping[str, dg.AssetKey]], refused: Mapping[dg.AssetKey, str]
) -> dict[str, dict[str, str]]:
    """Which sources a table must not read now, and why: `sources` has their assets by table,
    `refused` is the result of `BlockingChecks.refusals`."""
    if not refused:
        return {}
    return {
        table: {name: refused[key] for name, key in read.items() if key in refused}
        for table, read in sources.items()
    }


class WithBlockingChecks(dg.AssetSelection):
    """Assets and their blocking checks, which are looked up in the graph of the code location."""

    def __init__(self, keys: Iterable[dg.AssetKey]) -> None:
        self._keys = frozenset(keys)

    def resolve_inner(self, asset_graph: Any, allow_missing: bool) -> set[dg.AssetKey]:
        return set(dg.AssetSelection.assets(*self._keys).resolve_inner(asset_graph, allow_missing))

    def resolve_checks_inner(self, asset_graph: Any, allow_missing: bool) -> set[dg.AssetCheckKey]:
        return set(BlockingChecks.among(asset_graph).of(self._keys))

    def to_serializable_asset_selection(self, asset_graph: Any) -> dg.AssetSelection:
        return dg.AssetSelection.assets(*self._keys)

    def to_selection_str(self) -> str:
        return dg.AssetSelection.assets(*self._keys).to_selection_str()


def _reason(
    key: dg.AssetCheckKey,
    record: AssetCheckExecutionRecord | None,
    instance: dg.DagsterInstance,
) -> str:
    if record is None or record.status is AssetCheckExecutionRecordStatus.SUCCEEDED:
        return ""
    said = f"the blocking check {key.name} of {key.asset_key.to_user_string()}"
    until = "until it passes: correct the rows and refresh that table, or run the check again"
    if record.status is AssetCheckExecutionRecordStatus.FAILED:
        severity = record.evaluation.severity if record.evaluation is not None else None
        if severity is dg.AssetCheckSeverity.WARN:
            return ""
        return f"{said} failed; {until}"
    run = instance.get_run_by_id(record.run_id) if record.run_id else None
    if run is None or not run.is_finished:
        return f"{said} is being evaluated" if run is not None else ""
    return f"{said} could not be evaluated by run {run.run_id[:8]}; {until}"
