"""After random histories a replica has what a subscriber of PostgreSQL would have."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from changes.table import FEED, Table
from dagster_streamtables import Lake, Publications
from dagster_streamtables.replication.lake.lake_publisher import LakePublisher
from replication.lake.history import COLUMN_LISTS, SCHEMA, History, random_publications, seeds
from replication.lake.replica import NOBODY, Replica, T


def require_equal(lake: Lake, seed: int, spark: Any, *, filtered: bool, commits: int) -> None:
    chance = random.Random(seed)
    table = Table.new(lake.location("t"), SCHEMA, FEED if chance.random() < 0.5 else {})
    shown, columns = random_publications(chance, filtered=filtered), chance.choice(COLUMN_LISTS)
    history = History.of(table, shown, columns, chance)
    model, known = history.model, Publications(lake.root)
    for i, each in enumerate(shown):
        known.create(each.publication(f"p{i}", columns))
    published = [f"p{i}" for i in range(len(shown))]
    large = 0 if filtered and chance.random() < 0.5 else None
    publisher = LakePublisher(lake.root, published, spark=spark, driver_rows=large)
    replica = Replica(publisher, lenient=True).copy()
    model.begin()
    assert replica.rows[T] == model.copied, "the copy"

    steps: list[Any] = []
    for _ in range(commits):
        steps.append(history.commit())
        if chance.random() < 0.4:
            replica.follow(chance.choice([1, 3, 1000]), confirm=chance.random() < 0.7)
            assert replica.rows[T] == model.copied, (shown, columns, steps)
    replica.follow()
    assert replica.rows[T] == model.copied, (shown, columns, steps)


@seeds(range(12), range(12, 100))
def test_a_replica_has_what_is_published(tmp_path: Path, seed: int) -> None:
    require_equal(Lake(tmp_path), seed, NOBODY, filtered=False, commits=12)


@seeds([1], range(2, 60))
def test_a_replica_has_the_rows_that_filters_choose(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    require_equal(Lake(tmp_path), seed, spark, filtered=True, commits=8)
