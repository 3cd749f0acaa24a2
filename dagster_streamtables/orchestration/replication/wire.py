"""Replications as a part of a code location: their catalog, checks and schedules.

Which tables one has, with their columns, is as stored: a publisher is never asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import dagster as dg

from dagster_streamtables.declare.replications import ScheduledReplication, declared_tables
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.assets.resource import StreamTablesResource
from dagster_streamtables.orchestration.catalog.load_kind import (
    is_only_for_runs,
    read_from_first_load,
    store_for_later_loads,
)
from dagster_streamtables.orchestration.catalog.replicated import (
    DeclaredReplications,
    ReplicationCatalog,
    Tables,
    build_replication_catalog,
)
from dagster_streamtables.orchestration.catalog.translator import StreamTablesTranslator
from dagster_streamtables.orchestration.checks.check_settings import CheckSettings
from dagster_streamtables.orchestration.replication.replica_checks import REPLICATION_KINDS
from dagster_streamtables.replication.lifecycle.errors import MissingReplication
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replications import Replications

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

_KEY = "streamtables/replications/"


def read_stored_tables(
    replications: Iterable[Replication], lake: Lake, name: str
) -> dict[str, Tables]:
    """By replication, the tables that its stored state has.

    A run has the assets that were there when the code location was loaded, so its process takes
    what was known then: the tables that became known since would be other assets.

    Args:
        replications: The declarations.
        lake: Where the state is.
        name: Of the resource, which the definitions of one call have.
    """
    known = read_from_first_load(_KEY + name)
    if known is not None:
        return json.loads(known)
    found: dict[str, Tables] = {each.name: _read_tables(each, lake) for each in replications}
    store_for_later_loads(_KEY + name, json.dumps(found))
    return found


def read_columns(
    replications: Iterable[Replication], stored: Mapping[str, Tables], lake: Lake
) -> dict[str, Mapping[str, str]]:
    """By target, the columns of the targets that exist."""
    if is_only_for_runs():
        return {}
    found: dict[str, Mapping[str, str]] = {}
    for each in replications:
        for target in (declared_tables(each) | dict(stored[each.name])).values():
            if columns := _columns(target, lake):
                found[target] = columns
    return found


def _read_tables(replication: Replication, lake: Lake) -> dict[str, str]:
    try:
        status = Replications(lake).read(replication.name)
    except MissingReplication:
        return {}
    except Exception as error:  # the code location must load; a refresh reports the error
        logger.warning("the tables of replication %s are not known: %s", replication.name, error)
        return {}
    return {each.name: replication.target(each.name) for each in status.tables}


def _columns(target: str, lake: Lake) -> Mapping[str, str] | None:
    try:
        return lake.columns(target)
    except Exception as error:  # as above
        logger.warning("the columns of %s are not known: %s", target, error)
        return None


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
    stored = read_stored_tables(declared, lake, name)
    return build_replication_catalog(
        given,
        stored=stored,
        columns=read_columns(declared, stored, lake),
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
