"""`DagsterEvents`: the events that Dagster would have if a run had done what the worker did."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg

from dagster_streamtables.errors import one_line
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.assets.record import record_of
from dagster_streamtables.orchestration.automation.mark import runs_out, unchanged
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.catalog import Catalog, CatalogEntry
from dagster_streamtables.orchestration.catalog.provenance import INPUT_VERSION, tags_without_run
from dagster_streamtables.orchestration.checks.after_refresh import check_results
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks
from dagster_streamtables.orchestration.instance.last_runs import History, read_history
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.report import Action, Refresh
from dagster_streamtables.worker.summary import Summary

_VERSIONS = 200
ERROR = "streamtables/error"


class DagsterEvents:
    """Writes to the Dagster instance. Used by one thread."""

    def __init__(
        self,
        instance: dg.DagsterInstance,
        catalog: Catalog,
        lake: Lake,
        quick: QuickChecks | None,
    ) -> None:
        """
        Args:
            instance: Where the events are stored.
            catalog: The assets of the tables.
            lake: The lake, for reading logs.
            quick: The checks that are evaluated with each report.
        """
        self._instance, self._lake, self._quick = instance, lake, quick
        self._entries: Mapping[str, CatalogEntry] = {each.name: each for each in catalog.sound}
        self._versions: dict[str, OrderedDict[int, str]] = {}
        self._last: dict[str, datetime] = {}
        self._errors: dict[str, str] = {}

    def refreshed(self, name: str, summary: Summary) -> None:
        """Record what happened to a table since its last report.

        Raises:
            Exception: The instance cannot be reached; no materialization was recorded.
        """
        entry, refresh = self._entries[name], summary.refresh
        self._know(name, summary)
        warn = logger.warning
        record = record_of(self._instance, self._lake, entry.spec, refresh, summary.until, warn)
        for seen in record.observed:
            self._instance.report_runless_asset_event(seen)
        if refresh.action is Action.SKIP:
            return
        made = dg.AssetMaterialization(
            entry.key,
            metadata={**record.metadata, keys.REFRESHES: summary.count},
            tags=tags_without_run(
                self._instance,
                entry.spec,
                refresh.data_version,
                {**record.tags, **self._read(entry, refresh)},
            ),
        )
        self._instance.report_runless_asset_event(made)
        self._last[name] = datetime.now(UTC)
        self._errors.pop(name, None)
        self._check(entry, changed=refresh.action is not Action.NO_DATA)

    def looked(self, name: str) -> None:
        """Mark a table as fresh, before Dagster shows it as late although nothing changed."""
        entry, now = self._entries[name], datetime.now(UTC)
        last = self._last.get(name)
        if last is not None and not self._late(entry, History(last=last), now):
            return
        history = self._history(entry, now)
        self._last[name] = history.last or now
        if self._late(entry, history, now):
            self._instance.report_runless_asset_event(unchanged(entry.key, history))
            self._last[name] = now
            self._check(entry, changed=False)

    def failed(self, name: str, error: Exception) -> None:
        """Record an error as an observation, once as long as it stays the same."""
        text = str(error)
        if self._errors.get(name) == text or name not in self._entries:
            return
        entry = self._entries[name]
        said = one_line(text.splitlines()[0] if text else type(error).__name__)
        observed = dg.AssetObservation(
            entry.key,
            description=f"The refresh by the worker failed: {said}",
            metadata={ERROR: keys.fenced(text, "")},
        )
        self._instance.report_runless_asset_event(observed)
        self._errors[name] = text
        self._check(entry, changed=False)

    def _check(self, entry: CatalogEntry, *, changed: bool) -> None:
        try:
            found = check_results(
                self._instance, self._lake, entry.key, self._quick, changed=changed
            )
            for each in found:
                self._instance.report_runless_asset_event(each)
        except Exception as error:  # to tell all again would repeat the materialization
            logger.warning("the checks of %s are not reported: %s", entry.name, error)

    def _late(self, entry: CatalogEntry, history: History, now: datetime) -> bool:
        return runs_out(entry.spec, entry.examined.schedule, history, now)

    def _history(self, entry: CatalogEntry, now: datetime) -> History:
        found = read_history(
            self._instance, [entry.key], requested={}, stuck_after=timedelta(hours=1), now=now
        )
        return found[entry.key]

    def _know(self, name: str, summary: Summary) -> None:
        known = self._versions.setdefault(name, OrderedDict())
        known.update(summary.versions)
        while len(known) > _VERSIONS:
            known.popitem(last=False)

    def _read(self, entry: CatalogEntry, refresh: Refresh) -> dict[str, str]:
        """The data versions of stream tables that it read, reported or not."""
        return dict(self._inputs(entry, refresh))

    def _inputs(self, entry: CatalogEntry, refresh: Refresh) -> Iterator[tuple[str, str]]:
        for source, window in refresh.windows.items():
            version = self._versions.get(source, {}).get(window.after)
            key = entry.source_keys.get(source)
            if version is not None and key is not None:
                yield INPUT_VERSION + key.to_user_string(), version
