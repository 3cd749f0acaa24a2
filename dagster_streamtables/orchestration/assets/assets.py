"""The factories of assets: for stream tables, and for their sources, which are observed."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from dagster_streamtables.errors import one_line
from dagster_streamtables.orchestration.assets.materialization import refresh_one
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.catalog.asset_catalog import (
    RESOURCE_KEY,
    CatalogEntry,
    Tables,
    build_catalog,
)
from dagster_streamtables.orchestration.catalog.metadata import TABLE_NAME
from dagster_streamtables.orchestration.catalog.provenance import (
    DATA_VERSION,
    last_observation,
    observation,
)
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks, tell_checks

RETRIES = dg.RetryPolicy(
    max_retries=3, delay=1, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
)
"""For transient errors: another refresh committed first, or Spark stopped. Errors that need a
person are never retried."""


class RefreshConfig(dg.Config):
    """The run config in Dagster's launchpad."""

    full: bool = Field(default=False, description="Recompute the whole query, whatever changed.")


def refresh_asset(
    context: dg.AssetExecutionContext,
    streamtables: StreamTablesResource,
    spec: dg.AssetSpec,
    config: RefreshConfig,
) -> Iterator[dg.MaterializeResult[Any]]:
    """Refresh the stream table of an asset: the default way to materialize it. Raises `dg.Failure`
    if its definition is broken, or the refresh failed."""
    return refresh_one(context, streamtables.lake(), spec, full=config.full)


RefreshFunction = Callable[
    [dg.AssetExecutionContext, StreamTablesResource, dg.AssetSpec, RefreshConfig],
    Iterator[dg.MaterializeResult[Any]],
]


def build_stream_table_assets(
    *,
    tables: Tables,
    pool: str | None = None,
    retry_policy: dg.RetryPolicy | None = RETRIES,
    op_tags: Mapping[str, Any] | None = None,
    resource_key: str = RESOURCE_KEY,
    refresh: RefreshFunction = refresh_asset,
    quick: QuickChecks | None = None,
    **catalog: Any,
) -> list[dg.AssetsDefinition]:
    """One asset, with its own op, for each stream table.

    A table depends on the tables that its query reads: stream tables, other assets, or tables that
    Dagster does not know. When the query changes, so does the code version, and Dagster shows the
    asset as out of date. A broken definition becomes an asset that shows the error, and fails with
    it; other assets are not affected.

    Args:
        tables: The stream tables, in any order.
        pool: The concurrency pool of the ops. By default each table has its own, so that a limit of
            1 prevents two refreshes of a table at the same time. They are safe without it.
        retry_policy: For transient errors.
        op_tags: Tags of the ops, for example for an executor's resource limits.
        resource_key: The key of the `StreamTablesResource`.
        refresh: The function that materializes an asset.
        quick: The checks to evaluate with each refresh.
        catalog: Arguments of `build_catalog`: `lake`, `translator`, `group_name`, `source_keys`,
            `written_by_dagster`, `min_schedule_seconds`, `strict` and `views`.

    Examples:
        ```python
        defs = dg.Definitions(
            assets=build_stream_table_assets(tables=load_tables("tables")),
            resources={"streamtables": StreamTablesResource(root="lake")},
        )
        ```
    """

    def build_asset(entry: CatalogEntry) -> dg.AssetsDefinition:
        @dg.multi_asset(
            name=op_name("__".join(entry.key.path)),
            specs=[entry.spec],
            pool="_".join((pool or f"streamtables/{entry.name}").split()),
            retry_policy=retry_policy,
            op_tags=op_tags,
            required_resource_keys={resource_key},
        )
        def materialize(
            context: dg.AssetExecutionContext, config: RefreshConfig
        ) -> Iterator[dg.MaterializeResult[Any]]:
            streamtables = getattr(context.resources, resource_key)
            for made in refresh(context, streamtables, entry.spec, config):
                yield made
                tell_checks(context, streamtables.lake(), entry.key, made, quick)

        return materialize

    return [build_asset(entry) for entry in build_catalog(tables, **catalog).entries]


def op_name(text: str) -> str:
    """A text as the name of an op: letters, digits and underscores of ASCII."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in text)


def stream_table_assets(
    *,
    tables: Tables,
    name: str | None = None,
    pool: str | None = None,
    retry_policy: dg.RetryPolicy | None = RETRIES,
    op_tags: Mapping[str, Any] | None = None,
    **catalog: Any,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Several stream tables in one op.

    The decorated function runs once for all the tables selected in a run, and refreshes them;
    nearly always, its body is one line.

    Args:
        tables: The stream tables. Each is refreshed after the tables it reads.
        name: The name of the op. Defaults to the name of the decorated function.
        pool: The concurrency pool of the op.
        retry_policy: For transient errors. A retry runs the op for all tables again; those already
            refreshed have nothing to do.
        op_tags: Tags of the op.
        catalog: Arguments of `build_catalog`.

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
    """Observable assets for the sources of stream tables that no asset writes.

    Their data version is the Delta version, so Dagster shows which sources changed. The refresh
    sensor records new versions; a run can observe them, too.

    Args:
        tables: The stream tables.
        name: The name of the op.
        group_name: The group of the sources.
        resource_key: The key of the `StreamTablesResource`.
        catalog: Arguments of `build_catalog`; `written_by_dagster` excludes tables that other
            assets write.
    """
    observed = build_catalog(tables, **catalog).observed
    names = {key: table for table, key in observed.items()}
    if not names:
        return []

    def observe(context: dg.AssetExecutionContext) -> Iterator[dg.ObserveResult]:
        logs = getattr(context.resources, resource_key).logs()
        heads = logs.latest_versions()
        for key in sorted(context.selected_asset_keys):
            head = heads.head(names[key])
            if head is None:
                context.log.warning(f"{one_line(names[key])} does not exist")
                continue
            seen = observation(key, head, last_observation(context.instance, key))
            data_version = dg.DataVersion((seen.tags or {})[DATA_VERSION])
            yield dg.ObserveResult(asset_key=key, data_version=data_version, metadata=seen.metadata)

    specs = [
        dg.AssetSpec(
            key,
            group_name=group_name,
            kinds={"deltalake", "source"},
            metadata={TABLE_NAME: table},
        )
        for key, table in sorted(names.items())
    ]
    # Dagster's factory is in beta, but users did not choose it, so do not warn.
    with warnings.catch_warnings(action="ignore", category=dg.BetaWarning):
        observable = dg.multi_observable_source_asset(
            name=name, specs=specs, can_subset=True, required_resource_keys={resource_key}
        )
        return [observable(observe)]
