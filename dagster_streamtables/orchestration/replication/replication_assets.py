"""The factory of the assets of replicated tables: one op for each replication."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from dagster_streamtables.orchestration.assets.assets import RETRIES
from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY
from dagster_streamtables.orchestration.catalog.replicated import (
    DeclaredReplications,
    ReplicationEntry,
    build_replication_catalog,
)
from dagster_streamtables.orchestration.replication.replicate import replicate


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
