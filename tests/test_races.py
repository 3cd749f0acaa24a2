"""A short race: threads that share one `Lake`. The long ones are a command: see `qa/races/`."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from dagster_streamtables import Lake, Refresh, StreamTable
from dagster_streamtables.errors import ConflictingCommit
from qa.races.lake import TABLES, change, make
from qa.races.verdict import wrong

THREADS, ROUNDS = 4, 5
_RACED = {table.name: table for table in TABLES if table.name in ("copies", "kinds", "totals")}


def test_threads_that_share_a_lake_apply_each_change_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All of them refresh one table at the same moment; one commits, the others see that."""
    random = Random(1)
    make(tmp_path, random)
    lake = Lake(tmp_path, spark=spark)
    with ThreadPoolExecutor(THREADS) as threads:
        for _ in range(ROUNDS):
            for table in _RACED.values():
                line = threading.Barrier(THREADS)
                list(threads.map(lambda _: _refreshed(lake, table, line), range(THREADS)))  # noqa: B023
            change(tmp_path, random)

    compared, found = wrong(spark, tmp_path)

    assert compared > len(_RACED)
    assert not found, found


def _refreshed(lake: Lake, table: StreamTable, line: threading.Barrier) -> Refresh | None:
    line.wait()
    try:
        return lake.refresh(table)
    except ConflictingCommit:
        return None
