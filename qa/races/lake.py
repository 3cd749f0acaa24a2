"""Two sources that change all the time, and stream tables over them and over one another."""

from __future__ import annotations

import contextlib
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import StreamTable

_QUERIES = {
    "totals": "SELECT g, SUM(v) AS total, COUNT(*) AS n, MIN(v) AS least FROM t GROUP BY g",
    "copies": "SELECT id, g, v FROM t WHERE v > 2",
    "named": "SELECT t.id, t.v, u.label FROM t JOIN u ON t.g = u.k",
    "places": "SELECT id, g, RANK() OVER (PARTITION BY g ORDER BY v) AS place FROM t",
    "kinds": "SELECT DISTINCT g, v FROM t",
    "most": "SELECT n, COUNT(*) AS groups FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) "
    "GROUP BY n",
    "by_label": "SELECT label, SUM(v) AS total, COUNT(*) AS n FROM named GROUP BY label",
    "richest": "SELECT totals.g, total, label FROM totals JOIN u ON totals.g = u.k",
    "large": "SELECT id, v, total FROM copies JOIN totals ON copies.g = totals.g",
}
TABLES = tuple(
    StreamTable(name, query, differential_max_change_ratio=0, max_consecutive_errors=0)
    for name, query in _QUERIES.items()
)
_FEED = {"delta.enableChangeDataFeed": "true"}


def place(root: Path, name: str) -> Path:
    return root / "public" / name


def make(root: Path, random: Random) -> None:
    """The sources; one of them writes a change feed."""
    for name, configuration in (("t", _FEED), ("u", None)):
        place(root, name).mkdir(parents=True)
        rows = _rows(random, 20) if name == "t" else _labels(random, 4)
        write_deltalake(str(place(root, name)), rows, configuration=configuration)


def change(root: Path, random: Random) -> None:
    """A commit by delta-rs."""
    t, u = str(place(root, "t")), str(place(root, "u"))
    with contextlib.suppress(Exception):  # the other engine committed first
        match random.randrange(8):
            case 0:
                DeltaTable(t).delete(f"id < {random.randrange(30)} AND g = {random.randrange(4)}")
            case 1:
                DeltaTable(t).update(updates={"v": "v + 1"}, predicate=f"g = {random.randrange(4)}")
            case 2:
                _merge(t, random)
            case 3:
                write_deltalake(u, _labels(random, 1), mode="append")
            case 4:
                DeltaTable(u).delete(f"k = {random.randrange(4)}")
            case _:
                write_deltalake(t, _rows(random, random.randrange(1, 4)), mode="append")


def change_by_spark(spark: SparkSession, root: Path, random: Random) -> None:
    t = f"delta.`{place(root, 't')}`"
    group, number = random.randrange(4), random.randrange(100)
    with contextlib.suppress(Exception):  # the other engine committed first
        spark.sql(
            random.choice(
                (
                    f"INSERT INTO {t} VALUES ({number}, {group}, {number % 7})",
                    f"INSERT INTO {t} SELECT * FROM {t} WHERE g = {group} LIMIT 2",
                    f"DELETE FROM {t} WHERE id > {number} AND g = {group}",
                    f"UPDATE {t} SET g = {group} WHERE id = {number}",
                    f"OPTIMIZE {t}",
                )
            )
        )


def _merge(t: str, random: Random) -> None:
    merging = DeltaTable(t).merge(
        _rows(random, 1), "t.id = r.id", source_alias="r", target_alias="t"
    )
    merging.when_matched_update({"v": "r.v"}).when_not_matched_insert_all().execute()


def _rows(random: Random, count: int) -> pa.Table:
    rows = [(random.randrange(100), random.randrange(4), random.randrange(7)) for _ in range(count)]
    ids, groups, values = zip(*rows, strict=True)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "g": pa.array(groups, pa.int64()),
         "v": pa.array(values, pa.int64())}
    )  # fmt: skip


def _labels(random: Random, count: int) -> pa.Table:
    keys = pa.array([random.randrange(4) for _ in range(count)], pa.int64())
    return pa.table({"k": keys, "label": pa.array([random.choice("abc") for _ in range(count)])})
