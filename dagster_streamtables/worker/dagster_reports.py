"""`DagsterEvents`: the events that Dagster would have if runs had done the work of the worker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import dagster as dg

from dagster_streamtables.errors import one_line
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.alerts.alert_events import failure_event, rebuild_event
from dagster_streamtables.orchestration.assets.materialization import Record, record_of
from dagster_streamtables.orchestration.automation.sensor_events import (
    needs_mark,
    repeat_materialization,
    runs_out,
)
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import CatalogEntry
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets, ReplicationEntry
from dagster_streamtables.orchestration.catalog.provenance import INPUT_VERSION
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks, check_results
from dagster_streamtables.orchestration.instance.dagster_runs import AssetHistory, read_history
from dagster_streamtables.orchestration.replication.replication_assets import ReplicationRecords
from dagster_streamtables.runtime.errors.slot_errors import LostSlot
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.refresh_report import Refresh
from dagster_streamtables.worker.outbox import ReplicationSummary, Summary

_VERSIONS = 200
_WithoutRun = dg.AssetCheckEvaluation | dg.AssetObservation


class DagsterEvents:
    """Writes to the Dagster instance. Used by one thread."""

    def __init__(
        self,
        instance: dg.DagsterInstance,
        assets: NodeAssets,
        lake: Lake,
        quick: QuickChecks | None,
    ) -> None:
        self._instance, self._lake, self._quick = instance, lake, quick
        self._assets = assets
        self._versions: dict[str, OrderedDict[int, str]] = {}
        self._last: dict[dg.AssetKey, datetime] = {}
        self._errors: dict[str, str] = {}

    def record_refreshes(self, name: str, summary: Summary | ReplicationSummary) -> None:
        """Record what happened to a table, or to a replication, since its last report.

        Raises:
            Exception: The instance cannot be reached; no materialization was recorded.
        """
        if isinstance(summary, ReplicationSummary):
            self._record_replication(self._assets.replications[name], summary)
        else:
            self._record_table(self._assets.tables[name], summary)

    def _record_replication(self, entry: ReplicationEntry, summary: ReplicationSummary) -> None:
        for target, versions in summary.versions.items():
            self._know(target, [(version, str(version)) for version in versions])
        told = ReplicationRecords(
            self._instance, self._lake, entry, summary.refresh, summary.began, logger.warning
        )
        made = [*told.of_tables()]
        for each in made:
            self._report_materialization(each, summary.count)
        for each in made if entry.tables else ():
            standing = partial(told.standing_checks, each.key, changed=each.changed)
            self._report_all(f"the checks of {each.key.to_user_string()} are", standing)
        for result in told.troubles() if entry.tables else ():
            self._instance.report_runless_asset_event(result)
        told.tell_new()
        self._last |= dict.fromkeys(entry.keys, datetime.now(UTC))
        self._errors.pop(entry.node.name, None)

    def _record_table(self, entry: CatalogEntry, summary: Summary) -> None:
        refresh = summary.refresh
        warn = logger.warning
        record = record_of(self._instance, self._lake, entry.spec, refresh, summary.until, warn)
        for seen in record.observed:
            self._instance.report_runless_asset_event(seen)
        if not record.metadata:
            return
        read = {**dict(self._inputs(entry, refresh)), **record.tags}
        self._report_materialization(replace(record, tags=read), summary.count)
        self._last[entry.key] = datetime.now(UTC)
        self._errors.pop(entry.name, None)
        if summary.rebuilt:
            self._report_all(
                f"that {entry.name} was made anew is",
                lambda: [rebuild_event(entry.key, summary.rebuilt)],
            )
        self._check_table(entry, changed=record.changed)

    def _report_materialization(self, record: Record, count: int) -> None:
        event = record.event(self._instance, metadata={keys.REFRESHES: count})
        self._instance.report_runless_asset_event(event)

    def mark_fresh(self, name: str) -> None:
        """Mark a table as fresh, before Dagster shows it as late although nothing changed; or all
        tables of a replication."""
        now, entry = datetime.now(UTC), self._assets.tables.get(name)
        schedule = self._assets.nodes.schedules.get(name)
        for spec in self._assets.specs.get(name, ()):
            last = self._last.get(spec.key)
            if last is not None and not runs_out(spec, schedule, AssetHistory(last=last), now):
                continue
            patience = timedelta(hours=1)
            found = read_history(
                self._instance, [spec.key], requested={}, stuck_after=patience, now=now
            )
            history = found[spec.key]
            self._last[spec.key] = history.last or now
            if needs_mark(spec, schedule, history, now):
                self._instance.report_runless_asset_event(repeat_materialization(spec, history))
                self._last[spec.key] = now
                if entry is not None:
                    self._check_table(entry, changed=False)

    def record_failure(self, name: str, error: Exception) -> None:
        """Record an error as an observation, once as long as it stays the same."""
        text = str(error)
        if self._errors.get(name) == text:
            return
        said = one_line(text.splitlines()[0] if text else type(error).__name__)
        entry = self._assets.replications.get(name) if isinstance(error, LostSlot) else None
        lost = entry.replication.slot_name if entry is not None else None
        for spec in self._assets.specs.get(name, ()):
            observed = failure_event(spec.key, said, text, lost_slot=lost)
            self._instance.report_runless_asset_event(observed)
        self._errors[name] = text
        if name in self._assets.tables:
            self._check_table(self._assets.tables[name], changed=False)

    def _check_table(self, entry: CatalogEntry, *, changed: bool) -> None:
        results = partial(
            check_results, self._instance, self._lake, entry.key, self._quick, changed=changed
        )
        self._report_all(f"the checks of {entry.name} are", results)

    def _report_all(self, what: str, events: Callable[[], Iterable[_WithoutRun]]) -> None:
        try:
            for each in events():
                self._instance.report_runless_asset_event(each)
        except Exception as error:  # to tell all again would repeat the materialization
            logger.warning("%s not reported: %s", what, error)

    def _know(self, name: str, versions: Iterable[tuple[int, str]]) -> None:
        known = self._versions.setdefault(name, OrderedDict())
        known.update(versions)
        while len(known) > _VERSIONS:
            known.popitem(last=False)

    def _inputs(self, entry: CatalogEntry, refresh: Refresh) -> Iterator[tuple[str, str]]:
        """The tags with the data versions of replicated tables that it read, reported or not."""
        for source, window in refresh.windows.items():
            version = self._versions.get(source, {}).get(window.after)
            key = entry.source_keys.get(source)
            if version is not None and key is not None:
                yield INPUT_VERSION + key.to_user_string(), version
