"""Replications as a part of a code location: their catalog, checks and schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import dagster as dg

from dagster_streamtables.declare.replications import ScheduledReplication
from dagster_streamtables.orchestration.assets.resource import StreamTablesResource
from dagster_streamtables.orchestration.catalog.replicated import (
    DeclaredReplications,
    ReplicationCatalog,
    build_replication_catalog,
)
from dagster_streamtables.orchestration.catalog.translator import StreamTablesTranslator
from dagster_streamtables.orchestration.checks.check_settings import CheckSettings
from dagster_streamtables.orchestration.replication.known_tables import (
    known_columns,
    stored_tables,
)
from dagster_streamtables.orchestration.replication.replica_checks import REPLICATION_KINDS


def replication_catalog(
    replications: DeclaredReplications,
    resource: StreamTablesResource,
    name: str,
    *,
    translator: StreamTablesTranslator | None = None,
    group_name: str | None = None,
    source_keys: Mapping[str, dg.AssetKey] | None = None,
    min_schedule_seconds: float,
) -> ReplicationCatalog:
    """The replications, with the tables that their stored states have. Asks no publisher.

    Args:
        replications: The declarations, or a catalog, which is used unchanged.
        resource: Where the states and the targets are.
        name: The name of the resource.
        translator: As for `build_definitions`.
        group_name: The group of those that declare none.
        source_keys: As for `build_definitions`.
        min_schedule_seconds: Likewise.
    """
    if isinstance(replications, ReplicationCatalog):
        return replications
    given = list(replications)
    if not given:
        return ReplicationCatalog()
    declared = [e.replication if isinstance(e, ScheduledReplication) else e for e in given]
    lake = resource.logs()
    stored = stored_tables(declared, lake, name)
    return build_replication_catalog(
        given,
        stored=stored,
        columns=known_columns(declared, stored, lake),
        translator=translator,
        group_name=group_name,
        source_keys=source_keys,
        min_schedule_seconds=min_schedule_seconds,
    )


def replica_checks(
    catalog: ReplicationCatalog, settings: CheckSettings, name: str
) -> Iterator[dg.AssetChecksDefinition]:
    """The checks of replicated tables, one op for each kind."""
    if catalog.keys:
        for kind in REPLICATION_KINDS:
            yield kind.op(settings, name, replications=catalog, resource_key=name)


def replica_schedules(
    catalog: ReplicationCatalog,
    settings: CheckSettings,
    executor: dg.ExecutorDefinition | None,
    name: str,
) -> Iterator[dg.ScheduleDefinition]:
    """The schedules of these checks."""
    for kind in REPLICATION_KINDS:
        yield from kind.schedules(
            catalog.keys.values(), "replicated table", settings, executor, name
        )
