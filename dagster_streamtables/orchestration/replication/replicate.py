"""One refresh of a replication in a run, and what is recorded for each of its tables."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import StreamTablesError, legible
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.provenance import DATA_VERSION
from dagster_streamtables.orchestration.catalog.replicated import ReplicationEntry
from dagster_streamtables.orchestration.catalog.translator import asset_key
from dagster_streamtables.orchestration.instance.standing_checks import results_to_carry
from dagster_streamtables.orchestration.replication import replication_metadata as values
from dagster_streamtables.orchestration.replication.check_names import LAG, ORIGIN
from dagster_streamtables.replication.lifecycle.errors import passes
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh, TableRefresh
from dagster_streamtables.replication.lifecycle.status import TableStatus
from dagster_streamtables.runtime.errors.slots import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

TABLES = "streamtables/tables"
"""On the asset that stands for tables which are not known yet: those that were found."""
_WAIT = 60.0
"""Seconds for another process that refreshes it, such as `streamtables replications follow`."""


def replicate(
    context: dg.AssetExecutionContext, lake: Lake, entry: ReplicationEntry
) -> Iterator[dg.MaterializeResult[Any]]:
    """Refresh a replication, and yield a result for each of its tables that is still published.

    Raises:
        dg.Failure: The refresh failed, with what, why and fix. Retries are allowed if one may be
            enough.
    """
    began, replications = datetime.now(UTC), Replications(lake)
    try:
        refresh = replications.refresh(entry.replication, wait=_WAIT)
        status = {each.target: each for each in replications.read(entry.name).tables}
    except StreamTablesError as error:
        context.log.debug("".join(traceback.format_exception(error)))
        lost = {"lost_slot": entry.replication.slot_name} if isinstance(error, LostSlot) else {}
        raise keys.failure(error, allow_retries=passes(error), **lost) from None
    lag = _lag(context, replications, entry.name)
    recorded = _Recording(context, lake, entry, refresh, status, began, lag)
    yield from recorded.results()
    recorded.tell_checks()


@dataclass(frozen=True)
class _Recording:
    """What a run records of a refresh."""

    context: dg.AssetExecutionContext
    lake: Lake
    entry: ReplicationEntry
    refresh: ReplicationRefresh
    status: Mapping[str, TableStatus]
    began: datetime
    lag: Mapping[str, Any]

    def results(self) -> Iterator[dg.MaterializeResult[Any]]:
        """Those of the assets that the code location has; the others are events of the run."""
        for target, done in self.refresh.tables.items():
            spec = self.entry.specs.get(target) if self.entry.tables else None
            key = asset_key(target) if spec is None else spec.key
            version, metadata = self._version(key, target, done), self._metadata(target, done)
            if spec is not None:
                yield dg.MaterializeResult(
                    asset_key=key, data_version=dg.DataVersion(version), metadata=metadata
                )
            else:
                tags = {DATA_VERSION: version}
                event = dg.AssetMaterialization(key, metadata=metadata, tags=tags)
                self.context.log_event(event)
        yield from self._stand_in()
        self._tell_new()

    def tell_checks(self) -> None:
        """Repeat the last results of the checks, which Dagster otherwise shows as not evaluated."""
        for target, done in self.refresh.tables.items():
            if target not in self.entry.tables.values():
                continue
            key, moved = self.entry.specs[target].key, done.version is not None
            names = [dg.AssetCheckKey(key, name) for name in (ORIGIN, LAG)]
            for each in results_to_carry(self.context.instance, names, changed=moved):
                # Dagster records this event like the others, although the type excludes it.
                self.context.log_event(each)  # pyright: ignore[reportArgumentType]

    def _metadata(self, target: str, done: TableRefresh) -> dict[str, Any]:
        known = self.status[target]
        found: dict[str, Any] = {
            **values.of_table(done, self.entry.replication),
            **self.lag,
            keys.SECONDS: float(self.refresh.seconds),
            keys.AS_OF: dg.MetadataValue.timestamp(self.began.timestamp()),
            keys.URI: str(self.lake.location(target)),
            **_columns(self.context, self.lake, target),
        }
        measured = {keys.VERSION: known.version, keys.ROW_COUNT: known.rows}
        return found | {key: value for key, value in measured.items() if value is not None}

    def _version(self, key: dg.AssetKey, target: str, done: TableRefresh) -> str:
        """The version with the last change of rows, so that nothing downstream is stale without
        one."""
        newest = str(done.version if done.version is not None else self.status[target].version)
        if done.version is not None:
            return newest
        event = self.context.instance.get_latest_materialization_event(key)
        before = event.asset_materialization if event is not None else None
        known = None if before is None else (before.tags or {}).get(DATA_VERSION)
        return known or newest

    def _stand_in(self) -> Iterator[dg.MaterializeResult[Any]]:
        """The result of the asset that stands for tables which are not known yet."""
        if self.entry.tables:
            return
        [spec] = self.entry.specs.values()
        moved = any(each.version is not None for each in self.refresh.tables.values())
        yield dg.MaterializeResult(
            asset_key=spec.key,
            metadata={
                keys.ACTION: self.refresh.action,
                TABLES: dg.MetadataValue.json(sorted(self.refresh.tables)),
                keys.SECONDS: float(self.refresh.seconds),
                keys.AS_OF: dg.MetadataValue.timestamp(self.began.timestamp()),
                **self.lag,
            },
            data_version=dg.DataVersion(str(self.began.timestamp())) if moved else None,
        )

    def _tell_new(self) -> None:
        new = sorted(set(self.refresh.tables) - set(self.entry.tables.values()))
        if new:
            self.context.log.warning(
                f"the code location does not have {', '.join(new)} of the replication "
                f"{self.entry.name} yet: reload it, and each becomes an asset"
            )


def _lag(
    context: dg.AssetExecutionContext, replications: Replications, name: str
) -> dict[str, Any]:
    try:
        return values.of_lag(replications.lag(name))
    except Exception as error:  # the refresh is committed, so it must not fail
        context.log.warning(f"the lag of {name} is not recorded: {legible(str(error))}")
        return {}


def _columns(context: dg.AssetExecutionContext, lake: Lake, target: str) -> dict[str, Any]:
    try:
        return {keys.COLUMN_SCHEMA: keys.column_schema(lake.columns(target) or {})}
    except Exception as error:  # as above
        context.log.warning(f"the columns of {target} are not recorded: {legible(str(error))}")
        return {}
