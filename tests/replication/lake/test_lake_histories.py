"""After random histories a replica has what a subscriber of PostgreSQL would have."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from changes.table import FEED, Table
from dagster_streamtables import Lake
from dagster_streamtables.replication.lake.publication import Publications
from dagster_streamtables.replication.lake.publisher import LakePublisher
from replication.lake.history import SCHEMA, History, Model, counted, random_publications
from replication.lake.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = "public.t"
COLUMNS = [None, ("k", "My Key", "n"), ("My Key", "k")]


def require_equal(lake: Lake, seed: int, spark: Any, *, filtered: bool, commits: int) -> None:
    chance = random.Random(seed)
    settings = FEED if chance.random() < 0.5 else {}
    table = Table.new(lake.location("t"), SCHEMA, settings)
    shown, columns = random_publications(chance, filtered=filtered), chance.choice(COLUMNS)
    names = [name for name in SCHEMA.names if columns is None or name in columns]
    model = Model(shown, names)
    history = History(table, model, chance)
    history._insert()
    known = Publications(lake.root)
    for i, each in enumerate(shown):
        known.create(each.publication(f"p{i}", columns))
    published = [f"p{i}" for i in range(len(shown))]
    large = 0 if filtered and chance.random() < 0.5 else None
    publisher = LakePublisher(lake.root, published, spark=spark, driver_rows=large)
    replica = Replica(publisher, lenient=True).copy()
    model.begin()
    assert replica.rows[T] == counted(model.copy), "the copy"

    steps: list[Any] = []
    for _ in range(commits):
        steps.append(history.commit())
        if chance.random() < 0.4:
            replica.follow(chance.choice([1, 3, 1000]), confirm=chance.random() < 0.7)
            assert replica.rows[T] == counted(model.copy), (shown, columns, steps)
    replica.follow()
    assert replica.rows[T] == counted(model.copy), (shown, columns, steps)


NOBODY = "sc://nobody.invalid"
"""No row is read by Spark."""


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(n, marks=pytest.mark.long) for n in range(12, 100))]
)
def test_a_replica_has_what_is_published(tmp_path: Path, seed: int) -> None:
    require_equal(Lake(tmp_path), seed, NOBODY, filtered=False, commits=12)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 60))]
)
def test_a_replica_has_the_rows_that_filters_choose(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    require_equal(Lake(tmp_path), seed, spark, filtered=True, commits=8)
