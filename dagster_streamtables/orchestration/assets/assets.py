"""The factories of assets: stream tables, and the tables they read as observed sources."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
from dagster_shared.utils.warnings import disable_dagster_warnings
from pydantic import Field

from dagster_streamtables.errors import one_line
from dagster_streamtables.orchestration.assets.materialize import refresh_one
from dagster_streamtables.orchestration.assets.resource import StreamTablesResource
from dagster_streamtables.orchestration.catalog.catalog import Entry, Tables, build_catalog
from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY
from dagster_streamtables.orchestration.catalog.metadata import VERSION
from dagster_streamtables.orchestration.checks.after_refresh import tell_checks
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks

RETRIES = dg.RetryPolicy(
    max_retries=3, delay=1, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
)
"""For what passes: another refresh that committed first, a Spark that went away. Errors that need a
person are never retried."""


class RefreshConfig(dg.Config):
    """What can be chosen where a run is launched by hand."""

    full: bool = Field(default=False, description="Run the whole query again, whatever changed.")


def refresh_asset(
    context: dg.AssetExecutionContext,
    streamtables: StreamTablesResource,
    spec: dg.AssetSpec,
    config: RefreshConfig,
) -> Iterator[dg.MaterializeResult]:
    """Refresh the stream table of an asset: what materializing it does, unless something else is
    asked for.

    Raises:
        dg.Failure: Its definition is broken, or the refresh failed for a reason this package knows.
    """
    return refresh_one(context, streamtables.lake(), spec, full=config.full)


Refresh = Callable[
    [dg.AssetExecutionContext, StreamTablesResource, dg.AssetSpec, RefreshConfig],
    Iterator[dg.MaterializeResult],
]


def build_stream_table_assets(
    *,
    tables: Tables,
    pool: str | None = None,
    retry_policy: dg.RetryPolicy | None = RETRIES,
    op_tags: Mapping[str, Any] | None = None,
    resource_key: str = RESOURCE_KEY,
    refresh: Refresh = refresh_asset,
    quick: QuickChecks | None = None,
    **catalog: Any,
) -> list[dg.AssetsDefinition]:
    """One asset, with an op of its own, for each stream table.

    A table depends on the tables its query reads, whether these are stream tables, other assets, or
    tables that Dagster has never heard of. When the query changes, so does the code version, and
    Dagster shows the asset as out of date. A broken definition becomes an asset that says what is
    wrong, and fails with it; the others are not affected.

    Args:
        tables: The stream tables. Order does not matter.
        pool: The concurrency pool of the ops. By default each table has its own, so that a limit of
            1 keeps two refreshes of one table apart; the refreshes themselves agree either way.
        retry_policy: For errors that may pass.
        op_tags: Tags of the ops, for example for an executor's resource limits.
        resource_key: Of the `StreamTablesResource`.
        refresh: What materializing an asset does.
        quick: The checks to evaluate with each refresh.
        catalog: `lake`, `translator`, `group_name`, `source_keys`, `written_by_dagster`,
            `min_schedule_seconds`, `strict` and `views`, as `build_catalog` has them.

    Examples:
        ```python
        defs = dg.Definitions(
            assets=build_stream_table_assets(tables=load_tables("tables")),
            resources={"streamtables": StreamTablesResource(root="lake")},
        )
        ```
    """
    about: dict[str, Any] = {
        "retry_policy": retry_policy,
        "op_tags": op_tags,
        "required_resource_keys": {resource_key},
    }
    return [
        _build_asset(
            entry, pool or f"streamtables/{entry.name}", resource_key, refresh, quick, about
        )
        for entry in build_catalog(tables, **catalog).entries
    ]


def _build_asset(
    entry: Entry,
    pool: str,
    resource_key: str,
    refresh: Refresh,
    quick: QuickChecks | None,
    about: Mapping[str, Any],
) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=_op_name(entry.key), specs=[entry.spec], pool="_".join(pool.split()), **about
    )
    def materialize(
        context: dg.AssetExecutionContext, config: RefreshConfig
    ) -> Iterator[dg.MaterializeResult]:
        streamtables = getattr(context.resources, resource_key)
        for made in refresh(context, streamtables, entry.spec, config):
            yield made
            tell_checks(context, streamtables.lake(), entry.key, made, quick)

    return materialize


def stream_table_assets(
    *,
    tables: Tables,
    name: str | None = None,
    pool: str | None = None,
    retry_policy: dg.RetryPolicy | None = RETRIES,
    op_tags: Mapping[str, Any] | None = None,
    **catalog: Any,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Many stream tables in one op.

    The decorated function runs once for all the tables that are selected in a run. Its body says
    what a refresh is; nearly always, that is one line.

    Args:
        tables: The stream tables. Each is refreshed after the tables it reads.
        name: The name of the op. Defaults to the name of the decorated function.
        pool: The concurrency pool of the op.
        retry_policy: For errors that may pass. A retry runs the op for all the tables again; those
            that were refreshed have nothing to do.
        op_tags: Tags of the op.
        catalog: As for `build_catalog`.

    Examples:
        ```python
        @stream_table_assets(tables=load_tables("tables"), group_name="revenue")
        def revenue(context: dg.AssetExecutionContext, streamtables: StreamTablesResource):
            yield from streamtables.refresh(context)
        ```
    """
    return dg.multi_asset(
        name=name,
        specs=[entry.spec for entry in build_catalog(tables, **catalog).entries],
        can_subset=True,
        pool=pool,
        retry_policy=retry_policy,
        op_tags=op_tags,
    )


def build_source_assets(
    *,
    tables: Tables,
    name: str = "streamtables_sources",
    group_name: str | None = None,
    resource_key: str = RESOURCE_KEY,
    **catalog: Any,
) -> list[dg.AssetsDefinition]:
    """Observable assets for the tables that stream tables read and no asset writes.

    Their data version is the Delta version, so Dagster shows what moved. The refresh sensor records
    new versions by itself; observing them in a run is possible, too.

    Args:
        tables: The stream tables.
        name: The name of the op.
        group_name: The group of the sources.
        resource_key: Of the `StreamTablesResource`.
        catalog: As for `build_catalog`; `written_by_dagster` leaves out what other assets write.
    """
    observed = build_catalog(tables, **catalog).observed
    names = {key: table for table, key in observed.items()}
    if not names:
        return []

    def observe(context: dg.AssetExecutionContext) -> Iterator[dg.ObserveResult]:
        logs = getattr(context.resources, resource_key).logs()
        for key in sorted(context.selected_asset_keys):
            version = logs.version(names[key])
            if version is None:
                context.log.warning(f"{one_line(names[key])} does not exist")
                continue
            data_version = dg.DataVersion(str(version))
            yield dg.ObserveResult(
                asset_key=key, data_version=data_version, metadata={VERSION: version}
            )

    specs = _source_specs(names, group_name)
    with (
        disable_dagster_warnings()
    ):  # that the factory is in beta is no news for a user of this one
        observable = dg.multi_observable_source_asset(
            name=name, specs=specs, can_subset=True, required_resource_keys={resource_key}
        )
        return [observable(observe)]


def _source_specs(
    names: Mapping[dg.AssetKey, str], group_name: str | None
) -> Sequence[dg.AssetSpec]:
    return [
        dg.AssetSpec(
            key,
            group_name=group_name,
            kinds={"deltalake", "source"},
            metadata={"dagster/table_name": table},
        )
        for key, table in sorted(names.items())
    ]


def _op_name(key: dg.AssetKey) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in "__".join(key.path))
