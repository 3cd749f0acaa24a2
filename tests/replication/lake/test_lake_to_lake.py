"""What a lake publishes, applied to real tables of another lake: equal rows after every window."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from changes.table import FEED, Table
from dagster_streamtables import Lake, Publications
from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.apply.copy_rows import copy_rows
from dagster_streamtables.replication.lake.lake_publisher import LakePublisher
from dagster_streamtables.replication.model.replication_model import Operation
from dagster_streamtables.replication.target.target_table import ReplicationTarget
from replication.lake.history import COLUMN_LISTS, FILTERS, SCHEMA, History, Shown, seeds
from replication.lake.replica import NOBODY, T, tuples


def require_equal(root: Path, seed: int, spark: Any, *, filtered: bool, commits: int) -> None:
    chance = random.Random(seed)
    lake, columns = Lake(root / "lake"), chance.choice(COLUMN_LISTS)
    table = Table.new(lake.location("t"), SCHEMA, chance.choice([FEED, {}]))
    where = chance.choice(FILTERS) if filtered else None
    shown = Shown(frozenset(Operation), where)
    history = History.of(table, [shown], columns, chance)
    model = history.model
    keyless = chance.random() < 0.3
    Publications(lake.root).create(shown.publication("p", columns, keyless=keyless))
    publisher = LakePublisher(lake.root, ["p"], spark=spark)
    target = ReplicationTarget(str(root / "target"), "replication", publisher.origin)
    with publisher.copy("s", [T]) as copy:
        at = {T: copy.position(T)}
        rows = copy.rows(T).read_all().to_reader()
        copy_rows(target, publisher.offer().require()[T], rows, at[T])
    model.begin()
    confirmed, steps = None, [f"{where} {columns} {keyless}"]
    for _ in range(commits):
        steps.append(history.commit())
        if chance.random() < 0.5:
            continue
        batch = publisher.read("s", at, confirmed, max_rows=1000).require()
        for changes in batch.tables.values():
            apply_changes(target, changes, batch.end[T])
        at = dict(batch.end)
        confirmed = publisher.confirm("s", at)
        found = DeltaTable(target.location).to_pyarrow_table().select(model.columns)
        assert Counter(tuples(found)) == model.copied, steps


@seeds(range(5), range(5, 60))
def test_a_target_has_what_is_published(tmp_path: Path, seed: int) -> None:
    require_equal(tmp_path, seed, NOBODY, filtered=False, commits=10)


@seeds([1], range(2, 30))
def test_a_target_has_the_rows_that_a_filter_chooses(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    require_equal(tmp_path, seed, spark, filtered=True, commits=8)
