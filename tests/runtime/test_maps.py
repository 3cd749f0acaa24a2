"""MAP columns of real Delta tables: rows that differ in the order of entries stay what they are."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest
from pyspark.sql import SparkSession

from changes.reading import ready
from dagster_streamtables import Action, Lake, subscribe
from runtime.delta import on_spark
from runtime.refreshes import each_refreshed, maintained, refreshed

COLUMNS = "k INT, m MAP<STRING, INT>, s STRUCT<x: INT, m: MAP<STRING, MAP<INT, STRING>>>"
FIRST = """
    (1, map('a', 1, 'b', 2), named_struct('x', 1, 'm', map('q', map(1, 'x')))),
    (1, map('b', 2, 'a', 1), named_struct('x', 1, 'm', map('q', map(1, 'x')))),
    (1, map('b', 2, 'a', 1), named_struct('x', 1, 'm', map('q', map(1, 'x')))),
    (2, map(), NULL), (3, NULL, named_struct('x', 2, 'm', NULL))
"""
STEPS = [
    "INSERT INTO {t} VALUES (1, map('a', 1, 'b', 2), NULL), (4, map('c', NULL), NULL)",
    "DELETE FROM {t} WHERE k = 1 AND map_keys(m)[0] = 'b'",
    "UPDATE {t} SET m = map('b', 2, 'a', 1), s = named_struct('x', 1, 'm', map('q', map(2, NULL))) "
    "WHERE k = 1 AND s IS NOT NULL",
    "UPDATE {t} SET m = map_from_entries(reverse(map_entries(m))) WHERE k = 1",
    "DELETE FROM {t} WHERE k IN (2, 3)",
]
TABLES = {
    "whole": "SELECT * FROM t",
    "above": "SELECT k, to_json(m) AS j, CAST(s AS STRING) AS s FROM whole",
    "groups": "SELECT x, COUNT(*) AS n FROM "
    "(SELECT transform_values(m, (k, v) -> CAST(v AS STRING)) "
    "AS x FROM t) GROUP BY x",
    "nested": "SELECT s, MAX(k) AS k FROM t GROUP BY s",
    "lists": "SELECT k, collect_list(m) AS l, first(m) AS f FROM t GROUP BY k",
}

FOLLOWED = ["t", "whole", "SELECT k, m, s FROM t"]


@pytest.mark.long
@pytest.mark.parametrize("vectors", ["true", "false"], ids=["vectors", "files"])
def test_maps_are_stored_grouped_and_followed(
    spark: SparkSession, vectors: str, lake: Lake
) -> None:
    place = f"delta.`{lake.location('t')}`"
    on_spark(
        lake,
        f"CREATE TABLE {{t}} ({COLUMNS}) USING delta "
        f"TBLPROPERTIES (delta.enableDeletionVectors = {vectors})",
    )
    on_spark(lake, f"INSERT INTO {{t}} VALUES {FIRST}")
    tables = [maintained(*each) for each in TABLES.items()]
    each_refreshed(lake, *tables)

    with ExitStack() as held:
        followers = [held.enter_context(subscribe(lake, each)) for each in FOLLOWED]
        told: list[Counter[str]] = [Counter() for _ in followers]
        for step in ["", *STEPS]:
            if step:
                spark.sql(step.format(t=place))
                for table in tables:
                    done = refreshed(lake, table)
                    assert done.action in (Action.DIFFERENTIAL, Action.NO_DATA), (step, done)
            for rows, follower in zip(told, followers, strict=True):
                for _, diff, *row in ready(follower):
                    rows[repr(row)] += diff
                assert +rows == _rows(spark, place), step


def _rows(spark: SparkSession, place: str) -> Counter[str]:
    rows = spark.sql(f"SELECT k, m, s FROM {place}").toArrow().to_pylist()
    return Counter(repr([row["k"], row["m"], row["s"]]) for row in rows)
