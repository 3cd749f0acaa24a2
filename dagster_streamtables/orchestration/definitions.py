"""`build_definitions`: everything for a code location, in one call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import dagster as dg

from dagster_streamtables.compiler import View
from dagster_streamtables.declare.analysis import combine_errors
from dagster_streamtables.declare.schedule import MIN_SCHEDULE_SECONDS
from dagster_streamtables.declare.sql_files import Declared, read_files
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.alerts.alert_sensor import build_alert_sensor
from dagster_streamtables.orchestration.alerts.alerts import Notify
from dagster_streamtables.orchestration.assets.assets import (
    RETRIES,
    RefreshFunction,
    build_source_assets,
    build_stream_table_assets,
    refresh_asset,
)
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.assets.thread_executor import threads_executor
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.catalog.asset_catalog import (
    RESOURCE_KEY,
    Catalog,
    Tables,
    build_catalog,
    is_only_for_runs,
    problem_level,
)
from dagster_streamtables.orchestration.catalog.node_assets import (
    DeclaredReplications,
    ReplicationCatalog,
)
from dagster_streamtables.orchestration.catalog.translator import StreamTablesTranslator, asset_key
from dagster_streamtables.orchestration.changes.change_definitions import (
    SLOT_KINDS,
    build_change_sensor,
    connect_change_assets,
)
from dagster_streamtables.orchestration.changes.feed_metadata import follows_of
from dagster_streamtables.orchestration.checks.check_kind import CheckSettings, check_schedules
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks
from dagster_streamtables.orchestration.checks.table_checks import KINDS
from dagster_streamtables.orchestration.drivers import build_drivers
from dagster_streamtables.orchestration.replication.replication_assets import (
    build_replication_assets,
)
from dagster_streamtables.orchestration.replication.replication_definitions import (
    REPLICATION_KINDS,
    replication_catalog,
)
from dagster_streamtables.setting import Range, check_arguments


@check_arguments
def build_definitions(
    *,
    resource: StreamTablesResource,
    name: str = RESOURCE_KEY,
    tables: Tables = (),
    views: Iterable[View] = (),
    folder: str | Path | None = None,
    assets: Sequence[Any] = (),
    change_assets: Sequence[dg.AssetsDefinition] = (),
    replications: DeclaredReplications = (),
    written_by_dagster: Iterable[dg.AssetKey | str | Sequence[str]] = (),
    translator: StreamTablesTranslator | None = None,
    group_name: str | None = None,
    source_group_name: str | None = None,
    source_keys: Mapping[str, dg.AssetKey] | None = None,
    min_schedule_seconds: Annotated[float, Range(0)] = MIN_SCHEDULE_SECONDS,
    compile_at_load: bool = True,
    strict: bool = False,
    sensor: SensorSettings | None = None,
    checks: CheckSettings | None = None,
    alerts: Notify | Sequence[Notify] = (),
    executor: dg.ExecutorDefinition | None = threads_executor,
    pool: str | None = None,
    retry_policy: dg.RetryPolicy | None = RETRIES,
    op_tags: Mapping[str, Any] | None = None,
    refresh: RefreshFunction = refresh_asset,
) -> dg.Definitions:
    """Stream tables as a code location: assets, sources, refresh sensor, and checks.

    Merge the result with other definitions by ``dg.Definitions.merge``. Loading it starts no JVM.

    Args:
        resource: Where the tables are, and which Spark refreshes them.
        name: The name of the resource, and the prefix of the names of sensor, schedules and checks.
            Each call in a code location needs a different one.
        tables: Declarations in Python, or a catalog, which is used unchanged.
        views: Queries that other queries may name. They are not assets.
        folder: A folder of `.sql` files, in addition to `tables` and `views`.
        assets: Assets that write sources of the stream tables. They join the graph, become part of
            the result, and are not observed.
        change_assets: What `change_asset` made: assets that receive what changed in these tables,
            with a sensor that starts them, ``<name>_changes``, and checks of their slots. Their
            `resource_key` is `name`.
        replications: Tables of another lake or of a PostgreSQL server, copied into this one and
            kept equal: each is an asset, upstream of the stream tables that read it. The refresh
            sensor refreshes them in the same graph. Loading asks no publisher; see
            `build_replication_assets` for the tables that are known then.
        written_by_dagster: Keys of further assets that write sources: of another code location, or
            of definitions that these are merged with. They join the graph, too, but are neither
            defined nor observed here.
        translator: Decides the key, dependencies and metadata of each asset.
        group_name: The group of the stream tables that declare none.
        source_group_name: The group of the observed sources, and of replicated tables.
        source_keys: Asset keys of sources, by their names in queries. The default key is the name,
            split at the dots.
        min_schedule_seconds: Refuse shorter schedules.
        compile_at_load: Compile the queries when the code location loads. This finds broken
            queries, and assets show their columns before the first refresh. It reads the Delta log
            of each source. Processes that load the definitions only to run assets skip it.
        strict: Raise the errors of all broken definitions. Otherwise their assets fail when run.
        sensor: When the refresh sensor ticks, and how it decides.
        checks: When checks run, and how many rows they compare.
        alerts: Functions that receive each `Alert` of `build_alert_sensor`, such as `log_alert`.
            Without any, there is no alert sensor.
        executor: The executor of scheduled refreshes and checks; None for that of the code
            location. The default refreshes up to `max_concurrent_refreshes` tables at the same
            time, in threads of one process.
        pool: The concurrency pool of the ops that refresh. By default each table has its own.
        retry_policy: Retries of these ops, for transient errors.
        op_tags: Tags of these ops, for example for an executor's resource limits.
        refresh: The function that materializes a stream table.

    Raises:
        StreamTablesError: The folder does not exist or, with `strict`, a definition is broken.
    """
    catalog, replicated = build_catalogs(
        tables,
        replications,
        folder=folder,
        views=views,
        resource=resource,
        name=name,
        translator=translator,
        group_name=group_name,
        source_group_name=source_group_name,
        source_keys=source_keys or {},
        min_schedule_seconds=min_schedule_seconds,
        compile_at_load=compile_at_load,
        strict=strict,
        others={key for asset in [*assets, *change_assets] for key in asset_keys(asset)},
        written_by_dagster=map(_asset_key, written_by_dagster),
    )
    replicated = replicated.read_by([catalog])
    about: dict[str, Any] = {"tables": catalog, "resource_key": name}
    checking = checks or CheckSettings()
    every = checking.quick
    quick = None if every is None else QuickChecks(catalog, checking, every)
    changing = connect_change_assets(change_assets, catalog, source_keys or {})
    refreshed, sensors = build_drivers(
        [
            *build_stream_table_assets(
                **about,
                quick=quick,
                pool=pool,
                retry_policy=retry_policy,
                op_tags=op_tags,
                refresh=refresh,
            ),
            *build_replication_assets(replications=replicated, resource_key=name),
        ],
        catalog,
        replicated,
        resource,
        settings=sensor,
        executor=executor,
        quick=quick,
        resource_key=name,
    )
    if changing:
        own = replace(sensor or SensorSettings(), name=f"{name}_changes")
        sensors.append(
            build_change_sensor(changing, settings=own, executor=executor, resource_key=name)
        )
    if alerts:
        told = {"notify": alerts, "replications": replicated}
        sensors.append(build_alert_sensor(**about, name=f"{name}_alerts", **told))
    asset_checks, schedules = _checks(catalog, changing, replicated, checking, executor, name)
    return dg.Definitions(
        assets=[
            *refreshed,
            *build_source_assets(**about, name=f"{name}_sources", group_name=source_group_name),
            *assets,
            *changing,
        ],
        sensors=sensors,
        asset_checks=asset_checks,
        schedules=schedules,
        resources={name: resource},
    )


def _checks(
    catalog: Catalog,
    changing: Sequence[dg.AssetsDefinition],
    replicated: ReplicationCatalog,
    settings: CheckSettings,
    executor: dg.ExecutorDefinition | None,
    name: str,
) -> tuple[list[dg.AssetChecksDefinition], list[dg.ScheduleDefinition]]:
    checks: list[dg.AssetChecksDefinition] = []
    schedules: list[dg.ScheduleDefinition] = []
    groups: list[tuple[Any, Collection[dg.AssetKey], str, dict[str, Any]]] = [
        *(
            (
                [kind],
                [entry.key for entry in kind.entries(catalog)],
                "stream table",
                {"catalog": catalog},
            )
            for kind in KINDS
        ),
        (SLOT_KINDS, follows_of(changing), "change asset", {"assets": changing}),
        (
            REPLICATION_KINDS,
            replicated.keys.values(),
            "replicated table",
            {"replications": replicated},
        ),
    ]
    for kinds, assets, noun, about in groups:
        checks += [kind.op(settings, name, name, **about) for kind in kinds if assets]
        schedules += check_schedules(kinds, assets, noun, settings, executor, name)
    return checks, schedules


def asset_keys(asset: Any) -> Iterator[dg.AssetKey]:
    """The asset keys of any value that `dg.Definitions` accepts as an asset."""
    if isinstance(asset, dg.AssetsDefinition):
        yield from asset.keys
    elif isinstance(asset, dg.AssetSpec | dg.SourceAsset):
        yield asset.key


def build_catalogs(
    tables: Tables,
    replications: DeclaredReplications,
    *,
    folder: str | Path | None,
    views: Iterable[View],
    resource: StreamTablesResource,
    name: str,
    group_name: str | None,
    source_group_name: str | None,
    source_keys: Mapping[str, dg.AssetKey],
    compile_at_load: bool,
    strict: bool,
    others: Collection[dg.AssetKey] = (),
    written_by_dagster: Iterable[dg.AssetKey] = (),
    **about: Any,
) -> tuple[Catalog, ReplicationCatalog]:
    """The stream tables and the replications; other arguments are as in `build_definitions`.

    Args:
        others: The keys of the other assets in the same code location.
        about: `translator` and `min_schedule_seconds`, which are for both.

    Raises:
        StreamTablesError: The folder does not exist or, with `strict`, a definition is broken.
    """
    replicated = replication_catalog(
        replications,
        resource,
        name,
        group_name=source_group_name,
        source_keys=source_keys,
        **about,
    )
    if isinstance(tables, Catalog):
        return tables, replicated
    found, found_views = read_files(folder) if folder is not None else ([], [])
    here = {*others, *replicated.nodes}
    catalog = build_catalog(
        _skip_foreign_tables([*tables, *found], here, strict),
        views=[*views, *found_views],
        lake=resource.logs() if compile_at_load and not is_only_for_runs() else None,
        group_name=group_name,
        source_keys={**source_keys, **replicated.keys},
        written_by_dagster={*here, *written_by_dagster},
        strict=strict,
        **about,
    )
    return catalog, replicated


def _asset_key(key: dg.AssetKey | str | Sequence[str]) -> dg.AssetKey:
    """An asset key from its written form: a text is a path with slashes, as in the UI."""
    if isinstance(key, str):
        return dg.AssetKey.from_user_string(key)
    return key if isinstance(key, dg.AssetKey) else dg.AssetKey(list(key))


def _skip_foreign_tables(
    declared: Iterable[Declared], written: Collection[dg.AssetKey], strict: bool
) -> Iterator[Declared]:
    """Leave out stream tables whose key belongs to an asset of other code."""
    errors: list[StreamTablesError] = []
    for table in declared:
        if asset_key(table.name) not in written:
            yield table
            continue
        error = InvalidDefinition(
            "another asset of this code location has its key",
            why="only one op may write an asset",
            fix="rename the stream table, or remove that asset",
        ).about(table.name)
        errors.append(error)
        logger.log(problem_level(), "%s", error)
    if strict and errors:
        raise combine_errors(errors)
