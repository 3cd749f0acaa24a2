"""Marks of tables as fresh, without a refresh: only when Dagster would soon show them as late."""

from __future__ import annotations

from datetime import datetime, timedelta

import dagster as dg

from dagster_streamtables.declare.schedule import Schedule
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.freshness import passes
from dagster_streamtables.orchestration.catalog.provenance import CODE_VERSION, copy_tags
from dagster_streamtables.orchestration.instance.last_runs import AFTER_TAG, AssetHistory
from dagster_streamtables.runtime.model.report import Action

_MARKED_BEFORE = timedelta(seconds=30)
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
    """Whether a table that reflects its definition is to be marked: it would soon be shown as late,
    or as out of date, since its last event has the code version of another form of the query."""
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
