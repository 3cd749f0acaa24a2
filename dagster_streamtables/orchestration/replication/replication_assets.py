"""The assets of replicated tables: one op for each replication, and what a refresh of it records.

`ReplicationRecords` is what Dagster records of a refresh, by the step of a run or without a run.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.assets.assets import RETRIES, op_name
from dagster_streamtables.orchestration.assets.materialization import Record
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import RESOURCE_KEY
from dagster_streamtables.orchestration.catalog.node_assets import (
    DeclaredReplications,
    ReplicationEntry,
    build_replication_catalog,
)
from dagster_streamtables.orchestration.catalog.provenance import DATA_VERSION
from dagster_streamtables.orchestration.catalog.translator import asset_key
from dagster_streamtables.orchestration.instance.dagster_runs import name_process
from dagster_streamtables.orchestration.instance.standing_checks import results_to_carry
from dagster_streamtables.orchestration.replication import replication_metadata as values
from dagster_streamtables.orchestration.replication.replication_metadata import LAG, ORIGIN
from dagster_streamtables.replication.lifecycle.replication_errors import passes
from dagster_streamtables.replication.lifecycle.replication_manager import Replications
from dagster_streamtables.replication.lifecycle.replication_report import (
    ReplicationRefresh,
    TableRefresh,
    TableStatus,
)
from dagster_streamtables.runtime.errors.slot_errors import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


TABLES = "streamtables/tables"
"""On the asset that stands for tables which are not known yet: the tables that were found."""
TROUBLE = "streamtables/trouble"
"""On a check that failed because a refresh could not bring its table up to date."""
_WAIT = 60.0
"""Seconds for another process that refreshes it, such as `streamtables replications follow`."""


def build_replication_assets(
    *,
    replications: DeclaredReplications,
    pool: str | None = None,
    retry_policy: dg.RetryPolicy | None = RETRIES,
    op_tags: Mapping[str, Any] | None = None,
    resource_key: str = RESOURCE_KEY,
    **catalog: Any,
) -> list[dg.AssetsDefinition]:
    """An asset for each replicated table; the tables of a replication are materialized together.

    The tables are named in `tables` or `targets` of the declaration, or in the stored state of the
    replication. Nothing connects to a publisher before a run does. While no
    table is known, because only publications or schemas are named, one asset stands for all of
    them, ``replications/<name>``: materialize it, and reload the code location.

    Args:
        replications: The declarations.
        pool: The concurrency pool of the ops. Default: one for each replication.
        retry_policy: For what may pass, such as a server that is away.
        op_tags: Tags of the ops.
        resource_key: The key of the `StreamTablesResource`.
        catalog: Arguments of `build_replication_catalog`: `stored`, `columns`, `translator`,
            `group_name`, `source_keys` and `min_schedule_seconds`.

    Examples:
        ```python
        shop = Replication("shop", FromPostgres("host=db dbname=shop", tables=["public.orders"]))
        defs = dg.Definitions(
            assets=build_replication_assets(replications=[shop]),
            resources={"streamtables": StreamTablesResource(root="lake")},
        )
        ```
    """

    def build_asset(entry: ReplicationEntry) -> dg.AssetsDefinition:
        @dg.multi_asset(
            name=f"replicate_{op_name(entry.name)}",
            specs=[*entry.specs.values()],
            pool=pool or f"streamtables/replication/{entry.name}",
            retry_policy=retry_policy,
            op_tags=op_tags,
            required_resource_keys={resource_key},
        )
        def materialize(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
            lake = getattr(context.resources, resource_key).lake()
            yield from replicate(context, lake, entry)

        return materialize

    found = build_replication_catalog(replications, **catalog)
    return [build_asset(entry) for entry in found.entries]


def replicate(
    context: dg.AssetExecutionContext, lake: "Lake", entry: ReplicationEntry
) -> Iterator[dg.MaterializeResult[Any]]:
    """Refresh a replication, and yield a result for each of its tables that is still published.

    A table that is in trouble is not materialized, and its check of the lag fails.

    Raises:
        dg.Failure: The refresh failed, with what, why and fix. Retries are allowed if one may be
            enough.
    """
    name_process(context)
    began, instance, warn = datetime.now(UTC), context.instance, context.log.warning
    try:
        refresh = Replications(lake).refresh(entry.replication, wait=_WAIT, strict=False)
        refresh.require_some()
        records = ReplicationRecords(instance, lake, entry, refresh, began, warn)
        made = [*records.of_tables()]
    except StreamTablesError as error:
        context.log.debug("".join(traceback.format_exception(error)))
        lost = {"lost_slot": entry.replication.slot_name} if isinstance(error, LostSlot) else {}
        raise keys.failure(error, allow_retries=passes(error), **lost) from None
    for each in made:
        if each.spec is not None:
            yield each.result()
        else:
            context.log_event(each.event(instance))
    records.tell_new()
    known = [each for each in made if each.spec is not None and entry.tables]
    for each in known:
        for result in records.standing_checks(each.key, changed=each.changed):
            # Dagster records this event like the others, although the type excludes it.
            context.log_event(result)  # pyright: ignore[reportArgumentType]
    for error in refresh.stopped.values():
        context.log.error(str(error))
    for result in records.troubles() if entry.tables else ():
        context.log_event(result)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class ReplicationRecords:
    """What is recorded of a refresh."""

    instance: dg.DagsterInstance
    lake: "Lake"
    entry: ReplicationEntry
    refresh: ReplicationRefresh
    began: datetime
    warn: Callable[[str], object]
    """Called with a warning about what could not be determined."""

    def of_tables(self) -> Iterator[Record]:
        """The records of all tables that are still published."""
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
        return keys.read_or_warn(
            lambda: values.of_lag(self._replications.lag(self.entry.name)),
            f"the lag of {self.entry.name} is",
            self.warn,
        )

    def _columns(self, target: str) -> dict[str, Any]:
        return keys.read_or_warn(
            lambda: {keys.COLUMN_SCHEMA: keys.column_schema(self.lake.columns(target) or {})},
            f"the columns of {target} are",
            self.warn,
        )


def _over(key: dg.AssetKey) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=LAG,
        passed=True,
        description="The trouble is over: the table was brought up to date.",
    )
