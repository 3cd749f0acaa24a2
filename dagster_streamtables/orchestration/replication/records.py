"""What Dagster is told of a refresh of a replication: by the step of a run, or without a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import legible
from dagster_streamtables.orchestration.assets.record import Record
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.provenance import DATA_VERSION
from dagster_streamtables.orchestration.catalog.replicated import ReplicationEntry
from dagster_streamtables.orchestration.catalog.translator import asset_key
from dagster_streamtables.orchestration.instance.standing_checks import results_to_carry
from dagster_streamtables.orchestration.replication import replication_metadata as values
from dagster_streamtables.orchestration.replication.replication_metadata import LAG, ORIGIN
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh, TableRefresh
from dagster_streamtables.replication.lifecycle.status import TableStatus

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

TABLES = "streamtables/tables"
"""On the asset that stands for tables which are not known yet: those that were found."""
TROUBLE = "streamtables/trouble"
"""On a check that failed since a refresh could not bring its table up to date."""


@dataclass(frozen=True)
class ReplicationRecords:
    """What is recorded of a refresh."""

    instance: dg.DagsterInstance
    lake: Lake
    entry: ReplicationEntry
    refresh: ReplicationRefresh
    began: datetime
    warn: Callable[[str], object]
    """Called with what could not be found out."""

    def of_tables(self) -> Iterator[Record]:
        """Of all tables that are still published."""
        for target, done in self.refresh.tables.items():
            spec = self.entry.specs.get(target) if self.entry.tables else None
            key = asset_key(target) if spec is None else spec.key
            version, metadata = self._version(key, target, done), self._metadata(target, done)
            yield Record(key, spec, version, metadata, done.version is not None)
        yield from self._stand_in()

    def standing_checks(self, key: dg.AssetKey, *, changed: bool) -> list[dg.AssetCheckEvaluation]:
        """The last results of its checks, which Dagster otherwise shows as not evaluated."""
        names = [dg.AssetCheckKey(key, name) for name in (ORIGIN, LAG)]
        found = results_to_carry(self.instance, names, changed=changed)
        return [_over(key) if TROUBLE in each.metadata else each for each in found]

    def troubles(self) -> Iterator[dg.AssetCheckEvaluation]:
        """A failed check for each table that could not be brought up to date."""
        for target, error in self.refresh.stopped.items():
            spec = self.entry.specs.get(target)
            if spec is not None:
                yield dg.AssetCheckEvaluation(
                    asset_key=spec.key,
                    check_name=LAG,
                    passed=False,
                    severity=dg.AssetCheckSeverity.ERROR,
                    description=str(error),
                    metadata={TROUBLE: True},
                )

    def tell_new(self) -> None:
        """Warn of tables that the code location does not have."""
        new = sorted(set(self.refresh.tables) - set(self.entry.tables.values()))
        if new:
            self.warn(
                f"the code location does not have {', '.join(new)} of the replication "
                f"{self.entry.name} yet: reload it, and each becomes an asset"
            )

    @cached_property
    def _replications(self) -> Replications:
        return Replications(self.lake)

    @cached_property
    def _status(self) -> dict[str, TableStatus]:
        return {each.target: each for each in self._replications.read(self.entry.name).tables}

    def _metadata(self, target: str, done: TableRefresh) -> dict[str, Any]:
        known = self._status[target]
        found: dict[str, Any] = {
            **values.of_table(done, self.entry.replication),
            **self._lag,
            keys.SECONDS: float(self.refresh.seconds),
            keys.AS_OF: dg.MetadataValue.timestamp(self.began.timestamp()),
            keys.URI: str(self.lake.location(target)),
            **self._columns(target),
        }
        measured = {keys.VERSION: known.version, keys.ROW_COUNT: known.rows}
        return found | {key: value for key, value in measured.items() if value is not None}

    def _version(self, key: dg.AssetKey, target: str, done: TableRefresh) -> str:
        """The version with the last change of rows, so that nothing downstream is stale without
        one."""
        newest = str(done.version if done.version is not None else self._status[target].version)
        if done.version is not None:
            return newest
        event = self.instance.get_latest_materialization_event(key)
        before = event.asset_materialization if event is not None else None
        known = None if before is None else (before.tags or {}).get(DATA_VERSION)
        return known or newest

    def _stand_in(self) -> Iterator[Record]:
        """The asset that stands for tables which are not known yet."""
        if self.entry.tables:
            return
        [spec] = self.entry.specs.values()
        moved = any(each.version is not None for each in self.refresh.tables.values())
        found = {
            keys.ACTION: self.refresh.action,
            TABLES: dg.MetadataValue.json(sorted(self.refresh.tables)),
            keys.SECONDS: float(self.refresh.seconds),
            keys.AS_OF: dg.MetadataValue.timestamp(self.began.timestamp()),
            **self._lag,
        }
        version = str(self.began.timestamp()) if moved else None
        yield Record(spec.key, spec, version, found, moved)

    @cached_property
    def _lag(self) -> dict[str, Any]:
        try:
            return values.of_lag(self._replications.lag(self.entry.name))
        except Exception as error:  # the refresh is committed, so it must not fail
            self.warn(f"the lag of {self.entry.name} is not recorded: {legible(str(error))}")
            return {}

    def _columns(self, target: str) -> dict[str, Any]:
        try:
            return {keys.COLUMN_SCHEMA: keys.column_schema(self.lake.columns(target) or {})}
        except Exception as error:  # as above
            self.warn(f"the columns of {target} are not recorded: {legible(str(error))}")
            return {}


def _over(key: dg.AssetKey) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=LAG,
        passed=True,
        description="The trouble is over: the table was brought up to date.",
    )
