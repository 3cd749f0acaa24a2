"""A replication of one table from one lake to another, each in a store."""

from __future__ import annotations

from dagster_streamtables import (
    FromLake,
    Lake,
    Publication,
    PublicationEntry,
    Publications,
    Replication,
    Replications,
)


def publish(shop: Lake, entry: PublicationEntry) -> None:
    Publications(shop.root, shop.storage_options).create(Publication("sales", (entry,)))


def replicating(shop: Lake, lake: Lake, entry: PublicationEntry) -> Replications:
    """Into the schema `eu`, by the replication `eu`."""
    publish(shop, entry)
    source = FromLake(str(shop.root), ["sales"], storage_options=shop.storage_options)
    replications = Replications(lake)
    replications.create(Replication("eu", source, schema="eu"))
    return replications
