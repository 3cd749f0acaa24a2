"""Orders in a store, and a replication of one table from one lake to another."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from changes.table import FEED
from dagster_streamtables import (
    FromLake,
    Lake,
    Publication,
    PublicationEntry,
    Publications,
    Replication,
    Replications,
)
from qa.object_store.store import AuditedStore


def append(store: AuditedStore, place: str, *rows: tuple[int, int], feed: bool = True) -> None:
    """Add orders: their ids and amounts."""
    options = dict(store.options)
    table = pa.table({"id": [id for id, _ in rows], "amount": [amount for _, amount in rows]})
    write_deltalake(
        place, table, mode="append", configuration=FEED if feed else None, storage_options=options
    )


def held(store: AuditedStore, place: str) -> list[tuple[int, int]]:
    rows = DeltaTable(place, storage_options=dict(store.options)).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["amount"]) for row in rows)


def publish(shop: Lake, entry: PublicationEntry) -> None:
    Publications(shop.root, shop.storage_options).create(Publication("sales", (entry,)))


def replicating(shop: Lake, lake: Lake, entry: PublicationEntry) -> Replications:
    """Into the schema `eu`, by the replication `eu`."""
    publish(shop, entry)
    source = FromLake(str(shop.root), ["sales"], storage_options=shop.storage_options)
    replications = Replications(lake)
    replications.create(Replication("eu", source, schema="eu"))
    return replications
