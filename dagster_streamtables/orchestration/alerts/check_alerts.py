"""Alerts of checks: those that a run evaluated, and those that a worker or the refresh sensor
evaluated without a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import dagster as dg
from dagster import EventLogEntry

from dagster_streamtables.orchestration.alerts.alerts import Alert, AlertKind, moment
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.checks.check_kinds import KINDS
from dagster_streamtables.orchestration.checks.retention_check import RETENTION
from dagster_streamtables.orchestration.instance.standing_checks import completed
from dagster_streamtables.orchestration.replication.check_names import LAG, ORIGIN

EVALUATED = "checks without a run"
"""The position up to which they were read: seconds since 1970."""
_CHECKS = (*(kind.name for kind in KINDS), LAG, ORIGIN)


@dataclass(frozen=True)
class Evaluated:
    """The last results of checks that were evaluated without a run."""

    entries: tuple[EventLogEntry, ...]
    until: int
    """The new position."""


def evaluated_without_run(
    instance: dg.DagsterInstance, tables: Iterable[dg.AssetKey], since: int
) -> Evaluated:
    """The last results of all checks of tables, if they are from a time or later and of no run.

    They are not read one by one: a worker evaluates checks with each report, and few of them say
    something new.
    """
    checks = [dg.AssetCheckKey(key, name) for key in tables for name in _CHECKS]
    found = completed(instance, checks).values() if checks else ()
    events = (record.event for record in found if not record.run_id)
    entries = [each for each in events if each is not None and each.timestamp >= since]
    return Evaluated(tuple(entries), max((int(e.timestamp) for e in entries), default=since))


def of_check(entry: EventLogEntry, names: Mapping[dg.AssetKey, str]) -> Iterator[Alert]:
    """The alert of an evaluation: a problem, or the end of one."""
    event = entry.dagster_event
    found = event.asset_check_evaluation_data if event is not None else None
    if found is None or found.asset_key not in names:
        return
    late = found.metadata.get(keys.LATE)
    if not found.passed and late is not None and not late.value:
        return  # the alert of the failed refresh says it
    failed = (
        AlertKind.RETENTION_WARNING
        if found.check_name == RETENTION.name
        else AlertKind.CHECK_FAILED
    )
    said = found.description or ""
    yield Alert(
        table=names[found.asset_key],
        kind=AlertKind.RECOVERED if found.passed else failed,
        message=f"{found.check_name} {'passes again' if found.passed else 'failed'}: {said}",
        at=moment(entry.timestamp),
        run_id=entry.run_id,
        about=found.check_name,
    )
