"""`build_definitions`: everything for a code location, in one call."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from dagster_streamtables.compiler.views import View
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.orchestration.assets import build_source_assets, build_stream_table_assets
from dagster_streamtables.orchestration.catalog import Catalog, Tables, build_catalog
from dagster_streamtables.orchestration.checks import build_equality_checks, build_equality_schedule
from dagster_streamtables.orchestration.load import Declared, read_files
from dagster_streamtables.orchestration.resource import RESOURCE_KEY, StreamTablesResource
from dagster_streamtables.orchestration.retention import (
    build_retention_checks,
    build_retention_schedule,
)
from dagster_streamtables.orchestration.schedule import MIN_SCHEDULE_SECONDS
from dagster_streamtables.orchestration.sensor import build_refresh_sensor
from dagster_streamtables.orchestration.tick import SensorSettings
from dagster_streamtables.orchestration.translator import StreamTablesTranslator, asset_key

logger = logging.getLogger("dagster_streamtables")


def build_definitions(
    *,
    resource: StreamTablesResource,
    name: str = RESOURCE_KEY,
    tables: Tables = (),
    views: Iterable[View] = (),
    folder: str | Path | None = None,
    assets: Sequence[Any] = (),
    written_by_dagster: Collection[dg.AssetKey] = (),
    translator: StreamTablesTranslator | None = None,
    group_name: str | None = None,
    source_group_name: str | None = None,
    source_keys: Mapping[str, dg.AssetKey] | None = None,
    min_schedule_seconds: float = MIN_SCHEDULE_SECONDS,
    compile_at_load: bool = True,
    strict: bool = False,
    sensor: SensorSettings | None = None,
    sensor_interval_seconds: int = 5,
    sensor_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
    equality_cron: str | None = "0 3 * * *",
    equality_timezone: str = "UTC",
    equality_status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.STOPPED,
    retention_cron: str | None = "0 * * * *",
    retention_status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.STOPPED,
    executor: dg.ExecutorDefinition | None = dg.in_process_executor,
    **ops: Any,
) -> dg.Definitions:
    """Stream tables as a code location: assets, sources, refresh sensor, and checks.

    Merge the result with other definitions by ``dg.Definitions.merge``. Loading it starts no JVM.

    Args:
        resource: Where the tables are and which Spark refreshes them.
        name: Of the resource, and what the names of sensor, schedules and checks begin with. Give
            another one to each further call in one code location.
        tables: Declarations in Python; or a catalog, and then nothing is added to it.
        views: Queries that those of the tables may name, and that are no assets.
        folder: A folder of `.sql` files; with `tables` and `views`, all are used.
        assets: Assets that write tables which stream tables read. They join the graph, become part
            of the result, and are not observed.
        written_by_dagster: Keys of more such assets, which are no part of the result: those of what
            it is merged with.
        translator: Decides the key, dependencies and metadata of each asset.
        group_name: The group of the stream tables that declare none.
        source_group_name: The group of the observed sources.
        source_keys: The asset keys of sources whose key is not their name taken apart at the dots.
        min_schedule_seconds: Refuse schedules that are tighter.
        compile_at_load: Compile the queries when the code location is loaded, so that broken ones
            are found and assets show their columns before they are refreshed. It reads the Delta
            log of each source.
        strict: Raise the first broken definition instead of making an asset of it that fails.
        sensor: How the refresh sensor decides.
        sensor_interval_seconds: Between two ticks of the refresh sensor.
        sensor_status: Whether it is on before anybody touches its switch.
        equality_cron: When the equality checks run; None for no schedule.
        equality_timezone: Where the hours of that schedule are.
        equality_status: Whether that schedule is on before anybody touches its switch.
        retention_cron: When the retention checks run, in UTC; None for no schedule.
        retention_status: Whether that schedule is on before anybody touches its switch.
        executor: Of scheduled refreshes and checks; None takes the code location's.
        ops: `pool`, `retry_policy` and `op_tags`, as `build_stream_table_assets` has them.

    Raises:
        StreamTablesError: The folder does not exist or, with `strict`, a definition is broken.
    """
    equality = (equality_cron, equality_timezone, equality_status)
    written = {key for asset in assets for key in asset_keys(asset)}
    catalog = _catalog(
        tables,
        folder,
        views,
        lake=resource.logs() if compile_at_load else None,
        translator=translator,
        group_name=group_name,
        source_keys=source_keys,
        written_by_dagster={*written, *written_by_dagster},
        not_here=written,
        min_schedule_seconds=min_schedule_seconds,
        strict=strict,
    )
    about: dict[str, Any] = {"tables": catalog, "resource_key": name}
    settings = sensor or SensorSettings(name=f"{name}_refresh")
    return dg.Definitions(
        assets=[
            *build_stream_table_assets(**about, **ops),
            *build_source_assets(**about, name=f"{name}_sources", group_name=source_group_name),
            *assets,
        ],
        sensors=_sensors(about, settings, sensor_interval_seconds, sensor_status, executor),
        asset_checks=[
            build_equality_checks(**about, name=f"{name}_equality"),
            build_retention_checks(**about, name=f"{name}_retention"),
        ]
        if catalog.sound
        else [],
        schedules=[
            *_schedules(catalog, name, executor, equality, retention_cron, retention_status)
        ],
        resources={name: resource},
    )


def asset_keys(asset: Any) -> Iterator[dg.AssetKey]:
    """The keys of whatever `dg.Definitions` takes as an asset."""
    if isinstance(asset, dg.AssetsDefinition):
        yield from asset.keys
    elif isinstance(asset, dg.AssetSpec | dg.SourceAsset):
        yield asset.key


def _catalog(
    tables: Tables,
    folder: str | Path | None,
    views: Iterable[View],
    *,
    not_here: set[dg.AssetKey],
    strict: bool,
    **about: Any,
) -> Catalog:
    if isinstance(tables, Catalog):
        return tables
    found, found_views = read_files(folder) if folder is not None else ([], [])
    return build_catalog(
        _not_written([*tables, *found], not_here, strict),
        views=[*views, *found_views],
        strict=strict,
        **about,
    )


def _sensors(
    about: Mapping[str, Any],
    settings: SensorSettings,
    interval: int,
    status: dg.DefaultSensorStatus,
    executor: dg.ExecutorDefinition | None,
) -> list[dg.SensorDefinition]:
    if not about["tables"].entries:
        return []
    return [
        build_refresh_sensor(
            **about,
            settings=settings,
            minimum_interval_seconds=interval,
            default_status=status,
            executor=executor,
        )
    ]


def _schedules(
    catalog: Catalog,
    name: str,
    executor: dg.ExecutorDefinition | None,
    equality: tuple[str | None, str, dg.DefaultScheduleStatus],
    retention_cron: str | None,
    retention_status: dg.DefaultScheduleStatus,
) -> Iterator[dg.ScheduleDefinition]:
    cron, timezone, status = equality
    about: dict[str, Any] = {"tables": catalog, "executor": executor}
    if catalog.sound and cron:
        about |= {"timezone": timezone, "default_status": status}
        yield build_equality_schedule(cron, name=f"{name}_equality_schedule", **about)
    if catalog.sound and retention_cron:
        about = {"tables": catalog, "executor": executor, "default_status": retention_status}
        yield build_retention_schedule(retention_cron, name=f"{name}_retention_schedule", **about)


def _not_written(
    declared: Iterable[Declared], written: set[dg.AssetKey], strict: bool
) -> Iterator[Declared]:
    """Leave out stream tables whose key an asset of other code has: an asset has one writer."""
    for table in declared:
        if asset_key(table.name) not in written:
            yield table
            continue
        error: StreamTablesError = InvalidDefinition(
            "another asset of this code location has its key",
            why="an asset is written by one op",
            fix="rename the stream table, or take that asset away",
        ).about(table.name)
        if strict:
            raise error
        logger.warning("%s", error)
