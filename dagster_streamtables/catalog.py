"""Public names: the assets of tables and replications, for definitions that users assemble."""

from __future__ import annotations

from dagster_streamtables.orchestration.catalog.asset_catalog import Catalog, build_catalog
from dagster_streamtables.orchestration.catalog.node_assets import (
    ReplicationCatalog,
    build_replication_catalog,
)

__all__ = ["Catalog", "ReplicationCatalog", "build_catalog", "build_replication_catalog"]
