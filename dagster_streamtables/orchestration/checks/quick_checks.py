"""Check results that a refresh or the refresh sensor reports, without a run of the checks.

Checks that read only logs are evaluated with every refresh: a run would cost more than the checks
themselves. The sensor evaluates them between refreshes, because a table that is not refreshed falls
behind, and its sources lose history. It reports only results that changed. The last results of the
other checks are repeated after a refresh.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.dagster_private import AssetCheckExecutionRecord
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import Catalog
from dagster_streamtables.orchestration.checks.check_kind import CheckSettings, StreamTableCheck
from dagster_streamtables.orchestration.checks.table_checks import KINDS
from dagster_streamtables.orchestration.instance.dagster_runs import AssetHistory
from dagster_streamtables.orchestration.instance.standing_checks import (
    COMPLETED,
    results_to_carry,
    without_record,
)
from dagster_streamtables.runtime.model.refresh_report import Action

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


_SECONDS_OF_A_TICK = 1.0
_DEAD_AFTER = timedelta(hours=1)
_FIRST_WITHIN = 60.0
"""The longest refresh, in seconds, after which checks are evaluated that scan or recompute."""


class QuickChecks:
    """The settings of the quick checks, and when this process last evaluated them."""

    def __init__(self, catalog: Catalog, settings: CheckSettings, every: timedelta) -> None:
        self._entries = {entry.name: entry for entry in catalog.sound}
        self._names = {entry.key: name for name, entry in self._entries.items()}
        self._settings, self._every = settings, every
        self._looked: dict[str, datetime] = {}

    def of(self, lake: Lake, key: dg.AssetKey, now: datetime) -> list[dg.AssetCheckEvaluation]:
        """The current results for one table."""
        return self._results(lake, key, now, [kind for kind in KINDS if kind.from_logs])

    def others(
        self, lake: Lake, key: dg.AssetKey, now: datetime, names: Collection[str]
    ) -> list[dg.AssetCheckEvaluation]:
        """The current results of some checks that are not quick; those without a schedule are
        launched by hand."""
        kinds = [kind for kind in KINDS if kind.name in names and kind.cron(self._settings)]
        return self._results(lake, key, now, kinds)

    def _results(
        self, lake: Lake, key: dg.AssetKey, now: datetime, kinds: Iterable[StreamTableCheck]
    ) -> list[dg.AssetCheckEvaluation]:
        if key not in self._names:
            return []
        entry = self._entries[self._names[key]]
        kinds = [kind for kind in kinds if kind.applies(entry.examined.table)]
        results = (kind.result(lake, entry, self._settings, now) for kind in kinds)
        return [_evaluation(key, each) for each in results]

    def new_results(
        self,
        lake: Lake,
        instance: dg.DagsterInstance,
        past: Mapping[str, AssetHistory],
        now: datetime,
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The results that differ from the last ones in Dagster, or are the first since a
        materialization.

        A tick evaluates tables for at most a second; the next tick continues with the others.
        """
        found = {each.asset_check_key: each for each in self._evaluate_due(lake, past, now)}
        storage = instance.event_log_storage
        records = storage.get_latest_asset_check_execution_by_key(list(found)) if found else {}
        for key, evaluation in found.items():
            last = past[self._names[key.asset_key]].last
            if last is not None and _is_news(evaluation, records.get(key), last, now):
                yield evaluation

    def _evaluate_due(
        self, lake: Lake, past: Mapping[str, AssetHistory], now: datetime
    ) -> Iterator[dg.AssetCheckEvaluation]:
        until, never = time.monotonic() + _SECONDS_OF_A_TICK, datetime.min.replace(tzinfo=UTC)
        for name in sorted(self._entries, key=lambda name: self._looked.get(name, never)):
            looked, history = self._looked.get(name), past.get(name, AssetHistory())
            if looked is not None and looked <= now < looked + self._every:
                continue
            if history.last is None or history.run:  # never refreshed, or a run evaluates them
                continue
            if time.monotonic() > until:
                return
            self._looked[name] = now
            try:
                yield from self.of(lake, self._entries[name].key, now)
            except Exception as error:  # the refresh also reports it; the tick goes on
                logger.warning("%s: its quick checks were not evaluated: %s", name, error)


def _evaluation(key: dg.AssetKey, result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    assert result.check_name is not None
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=result.check_name,
        passed=result.passed,
        severity=result.severity,
        description=result.description,
        metadata=result.metadata,
    )


def _is_news(
    evaluation: dg.AssetCheckEvaluation,
    record: AssetCheckExecutionRecord | None,
    last: datetime,
    now: datetime,
) -> bool:
    if record is None:
        return True
    if record.status not in COMPLETED or record.evaluation is None:
        # A run is evaluating the check, unless that run is dead.
        return now.timestamp() - record.create_timestamp > _DEAD_AFTER.total_seconds()
    differs = _verdict(evaluation) != _verdict(record.evaluation)
    return differs or record.create_timestamp < last.timestamp()


def _verdict(evaluation: dg.AssetCheckEvaluation) -> tuple[object, ...]:
    late = evaluation.metadata.get(keys.LATE)
    return evaluation.passed, evaluation.severity, late.value if late is not None else None


def tell_checks(
    context: dg.AssetExecutionContext,
    lake: Lake,
    key: dg.AssetKey,
    made: dg.MaterializeResult[Any],
    quick: QuickChecks | None = None,
) -> None:
    """Evaluate the quick checks of a table after its materialization, and repeat the last results
    of its other checks. Without this, Dagster shows them all as "Not evaluated".

    A check that never had a result is evaluated now, if the refresh took less than a minute: a new
    table need not wait until night for its first comparison. Without `quick`, the last results of
    the quick checks are also repeated.
    """
    try:
        metadata = made.metadata or {}
        changed = metadata.get(keys.ACTION) != str(Action.NO_DATA)
        found = check_results(context.instance, lake, key, quick, changed=changed)
        seconds = metadata.get(keys.SECONDS)
        if quick is not None and isinstance(seconds, float) and seconds < _FIRST_WITHIN:
            others = _checks_except(key, found)
            names = {each.name for each in without_record(context.instance, others)}
            found += quick.others(lake, key, datetime.now(UTC), names)
        for each in found:
            # Dagster records this event like the others, although the type excludes it.
            context.log_event(each)  # pyright: ignore[reportArgumentType]
    except Exception as error:  # the refresh is committed, so it must not fail
        context.log.warning(f"the checks of {key.to_user_string()} are not reported: {error}")


def check_results(
    instance: dg.DagsterInstance,
    lake: Lake,
    key: dg.AssetKey,
    quick: QuickChecks | None,
    *,
    changed: bool,
) -> list[dg.AssetCheckEvaluation]:
    """The results to report with a materialization of a table: its quick checks, evaluated now, and
    the last results of the others. `changed`: its rows have changed since the materialization
    before."""
    evaluated = quick.of(lake, key, datetime.now(UTC)) if quick is not None else []
    others = _checks_except(key, evaluated)
    return [*evaluated, *results_to_carry(instance, others, changed=changed)]


def _checks_except(
    key: dg.AssetKey, found: Iterable[dg.AssetCheckEvaluation]
) -> list[dg.AssetCheckKey]:
    names = sorted({kind.name for kind in KINDS} - {each.check_name for each in found})
    return [dg.AssetCheckKey(key, name) for name in names]
