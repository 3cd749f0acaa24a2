"""Another lake whose tables are replicated, and what Dagster recorded of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import (
    FromLake,
    Lake,
    Publication,
    PublicationEntry,
    Publications,
    Replication,
)
from dagster_streamtables.declarations import declare

ORDERS = dg.AssetKey(["raw", "orders"])
TOTALS = declare("mart.totals", "SELECT COUNT(*) AS n FROM raw.orders", schedule="2m")


class Origin:
    """Another lake, whose table sales.orders is published."""

    def __init__(self, root: Path) -> None:
        self.lake = Lake(root)
        self.add("sales.orders", id=[1, 2], v=["a", "b"])
        entry = PublicationEntry("sales.orders", key=("id",))
        Publications(self.lake.root).create(Publication("sales", (entry,)))

    def add(self, table: str, **columns: list[Any]) -> None:
        write_deltalake(self.lake.location(table), pa.table(columns), mode="append")

    def update(self, v: str, where: str) -> None:
        DeltaTable(self.lake.location("sales.orders")).update({"v": f"'{v}'"}, predicate=where)

    def publish_customers(self) -> None:
        self.add("sales.customers", id=[7])
        entry = PublicationEntry("sales.customers", key=("id",))
        Publications(self.lake.root).add("sales", entry)

    def replication(self, **more: Any) -> Replication:
        about = {"targets": {"sales.orders": "raw.orders"}, "schema": "raw"} | more
        return Replication("shop", FromLake(self.lake.root, ["sales"]), **about)


def materialized(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetMaterialization]:
    events = [event.materialization for event in result.get_asset_materialization_events()]
    return {event.asset_key.to_user_string(): event for event in events}


def said(event: dg.AssetMaterialization) -> dict[str, Any]:
    return {key.rpartition("/")[2]: value.value for key, value in event.metadata.items()}


def version(event: dg.AssetMaterialization) -> str | None:
    return (event.tags or {}).get("dagster/data_version")
