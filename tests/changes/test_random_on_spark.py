"""Random histories of tables that Spark writes, with deletion vectors and nested columns."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from changes.reading import read
from changes.test_random import plainly
from dagster_streamtables import Lake

pytestmark = pytest.mark.long

COMMITS = 6
VALUES = [
    "(1, named_struct('x', -0.0D, 'y', array(1, NULL)))",
    "(1, named_struct('x', 0.0D, 'y', array(1, NULL)))",
    "(2, named_struct('x', double('NaN'), 'y', array()))",
    "(3, NULL)",
    "(NULL, named_struct('x', NULL, 'y', NULL))",
]


@pytest.mark.parametrize("seed", [1, *(n for n in range(2, 12))])
@pytest.mark.parametrize("vectors", [True, False])
def test_nested_columns(spark: SparkSession, tmp_path: Path, seed: int, vectors: bool) -> None:
    chance = random.Random(seed)
    lake = Lake(tmp_path, spark=spark)
    place = f"delta.`{lake.location('t')}`"
    spark.sql(
        f"CREATE TABLE {place} (k INT, s STRUCT<x: DOUBLE, y: ARRAY<INT>>) USING delta "
        f"TBLPROPERTIES (delta.enableDeletionVectors = {vectors}, "
        f"delta.enableChangeDataFeed = {chance.random() < 0.5})"
    )
    for n in range(COMMITS):
        rows = ", ".join(chance.choices(VALUES, k=3))
        way = chance.choice(["INTO", "INTO", "OVERWRITE", "delete", "update", "restore"])
        if way in ("INTO", "OVERWRITE") or n == 0:
            spark.sql(f"INSERT {way if way.isupper() else 'INTO'} {place} VALUES {rows}")
        elif way == "delete":
            spark.sql(f"DELETE FROM {place} WHERE k = {chance.randint(1, 3)}")
        elif way == "update":
            spark.sql(f"UPDATE {place} SET k = k + 1 WHERE s.x = 0 OR k = 3")
        else:
            # A statement that finds no row makes no version.
            newest = lake.version("t") or 0
            spark.sql(f"RESTORE TABLE {place} TO VERSION AS OF {chance.randint(0, newest)}")

    last = lake.version("t") or 0
    found: Counter[Any] = Counter()
    rows = read(lake, "t", as_of=0, up_to=last + 1)
    for version in range(last + 1):
        for timestamp, diff, *row in rows:
            if timestamp == version:
                found[plainly(row)] += diff
        told = spark.sql(f"SELECT * FROM {place} VERSION AS OF {version}").toArrow().to_pylist()
        assert +found == Counter(plainly((row["k"], row["s"])) for row in told), version
        assert all(n >= 0 for n in found.values())
