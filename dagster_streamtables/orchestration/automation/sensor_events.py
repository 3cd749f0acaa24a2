"""Materializations that the sensor or a worker reports without a run.

A table without changes is marked fresh when Dagster would soon show it as late.

A commit of a refresh may have no event: a run may end between the two, and a user may refresh a
table without Dagster. Downstream assets would record the data version before, and automation would
miss the change. One process reports such a commit, even if two see it at once. Dagster's event log
has no compare-and-swap, so a document of the lake decides. It names the Dagster instance, because
each has its own events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.declare.schedule import Schedule
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.assets.materialization import record_of
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import CatalogEntry
from dagster_streamtables.orchestration.catalog.freshness import passes
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from dagster_streamtables.orchestration.catalog.provenance import (
    CODE_VERSION,
    DATA_VERSION,
    copy_tags,
)
from dagster_streamtables.orchestration.instance.dagster_runs import AFTER_TAG, AssetHistory
from dagster_streamtables.runtime.model.refresh_report import Action
from dagster_streamtables.runtime.model.refresh_work import HeadWithState
from dagster_streamtables.runtime.storage.documents import SHORT, Documents
from dagster_streamtables.scheduling.refresh_states import Versions

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


_MARKED_BEFORE = timedelta(seconds=30)
_LONGEST = timedelta(minutes=1)
"""A process that does not report in this time has ended; the next that sees the commit reports."""
# Metadata of the last materialization that stays true while the sources do not change.
_LASTING = (
    keys.VERSION,
    keys.FRONTIER,
    keys.SEEN,
    keys.ROW_COUNT,
    keys.SIZE_BYTES,
    keys.FILES,
    keys.URI,
    keys.COLUMN_SCHEMA,
    keys.COLUMN_LINEAGE,
    keys.DATA_TIMESTAMP,
    keys.CHANGED,
)


def runs_out(
    spec: dg.AssetSpec, schedule: Schedule | None, history: AssetHistory, now: datetime
) -> bool:
    """Whether Dagster may show a table as late before its second next due time. Not the first:
    ticks may be late."""
    policy = spec.freshness_policy
    if policy is None or schedule is None or history.last is None:
        return False
    pause = max(schedule.due_at(now) - now, _MARKED_BEFORE)
    return history.last > now or not passes(policy, history.last, now + 2 * pause)


def needs_mark(
    spec: dg.AssetSpec, schedule: Schedule | None, history: AssetHistory, now: datetime
) -> bool:
    """Whether a table that reflects its definition must be marked: it would soon be shown as late,
    or is shown as out of date, since its last event has the code version of another form of the
    query."""
    known = history.tags.get(CODE_VERSION)
    outdated = history.last is not None and spec.code_version not in (None, known)
    return outdated or runs_out(spec, schedule, history, now)


def repeat_materialization(spec: dg.AssetSpec, history: AssetHistory) -> dg.AssetMaterialization:
    """A repetition of the last materialization of a table that reflects its definition: it restarts
    the freshness clock, nothing else."""
    own = {CODE_VERSION: spec.code_version} if spec.code_version is not None else {}
    own |= {AFTER_TAG: history.planned} if history.planned else {}
    return dg.AssetMaterialization(
        asset_key=spec.key,
        tags={**copy_tags(history.tags), **own},
        metadata=keys.in_reading_order(
            {
                **{key: history.metadata[key] for key in _LASTING if key in history.metadata},
                keys.ACTION: str(Action.NO_DATA),
                keys.REASON: "no source has a new version",
                keys.ROWS_IN: 0,
                keys.INSERTED: 0,
                keys.DELETED: 0,
            }
        ),
    )


def missing_events(
    assets: NodeAssets,
    due: Iterable[str],
    left: Collection[str],
    past: Mapping[str, AssetHistory],
    versions: Versions,
    instance: dg.DagsterInstance,
    lake: Lake,
    now: datetime,
) -> dict[str, dg.AssetMaterialization]:
    """The materializations to report, by table: of the newest commit, if it has none.

    Only tables that are due are examined, and tables whose run ended without an event. A table that
    a run refreshes now is left to the run, and a table of a worker to the worker.
    """
    looked = {*due, *(name for name, each in past.items() if each.planned != each.by)}
    found: dict[str, dg.AssetMaterialization] = {}
    for name, entry in assets.tables.items():
        if name not in looked or name in left or past[name].run:
            continue
        try:
            stored = versions.head_with_state(name)
            if stored is None or not has_no_event(stored, past[name]):
                continue
            if may_report(lake, instance, name, stored.state.refresh, now):
                found[name] = materialization(entry, past[name], instance, lake)
        except Exception as error:  # its refresh reports what cannot be read
            logger.warning("whether a commit of %s was reported is not known: %s", name, error)
    return found


@dataclass(frozen=True)
class _Claims:
    """For each Dagster instance, the last refresh that a process began to report, and when."""

    last: Mapping[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def to_json(self) -> Any:
        return {instance: list(each) for instance, each in self.last.items()}

    @classmethod
    def from_json(cls, values: Any) -> _Claims:
        return cls({str(name): (str(each[0]), float(each[1])) for name, each in values.items()})


def has_no_event(stored: HeadWithState, history: AssetHistory) -> bool:
    """Whether a refresh has committed since the last materialization."""
    version = history.metadata.get(keys.VERSION)
    told = version.value if isinstance(version, dg.IntMetadataValue) else None
    same = history.tags.get(DATA_VERSION) == stored.state.data_version
    return not same or told is None or told < stored.committed


def materialization(
    entry: CatalogEntry, history: AssetHistory, instance: dg.DagsterInstance, lake: Lake
) -> dg.AssetMaterialization:
    """The event that a run would have reported, from the commit in the log."""
    refresh = lake.monitor.last_refresh(entry.name)
    assert refresh is not None
    record = record_of(instance, lake, entry.spec, refresh, {}, logger.warning)
    return record.event(instance, tags={AFTER_TAG: history.planned} if history.planned else {})


def may_report(
    lake: Lake, instance: dg.DagsterInstance, table: str, refresh: str, now: datetime
) -> bool:
    """Whether this process reports the refresh of a table to an instance. `refresh` is the
    `StreamTableState.refresh` of its commit."""
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
