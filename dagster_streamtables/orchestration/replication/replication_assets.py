"""The assets of replicated tables: one op for each replication, and what one run of it records."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.assets.assets import RETRIES
from dagster_streamtables.orchestration.assets.record import Record
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY
from dagster_streamtables.orchestration.catalog.replicated import (
    DeclaredReplications,
    ReplicationEntry,
    build_replication_catalog,
)
from dagster_streamtables.orchestration.instance.run_process import name_process
from dagster_streamtables.orchestration.replication.records import ReplicationRecords
from dagster_streamtables.replication.lifecycle.errors import passes
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.runtime.errors.slots import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

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

    The tables are those that the declaration names in `tables` or `targets`, and those that the
    stored state of the replication has. Nothing connects to a publisher before a run does. While no
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
    about: dict[str, Any] = {
        "retry_policy": retry_policy,
        "op_tags": op_tags,
        "required_resource_keys": {resource_key},
    }
    found = build_replication_catalog(replications, **catalog)
    return [_asset(entry, pool, resource_key, about) for entry in found.entries]


def _asset(
    entry: ReplicationEntry, pool: str | None, resource_key: str, about: Mapping[str, Any]
) -> dg.AssetsDefinition:
    op = "replicate_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in entry.name)

    @dg.multi_asset(
        name=op,
        specs=[*entry.specs.values()],
        pool=pool or f"streamtables/replication/{entry.name}",
        **about,
    )
    def materialize(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        lake = getattr(context.resources, resource_key).lake()
        yield from replicate(context, lake, entry)

    return materialize


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
    _tell_checks(context, records, made)
    for error in refresh.stopped.values():
        context.log.error(str(error))
    for result in records.troubles() if entry.tables else ():
        context.log_event(result)  # pyright: ignore[reportArgumentType]


def _tell_checks(
    context: dg.AssetExecutionContext, records: ReplicationRecords, made: list[Record]
) -> None:
    for each in made:
        if each.spec is None or not records.entry.tables:
            continue
        for result in records.standing_checks(each.key, changed=each.changed):
            # Dagster records this event like the others, although the type excludes it.
            context.log_event(result)  # pyright: ignore[reportArgumentType]
