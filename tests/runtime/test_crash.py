"""A refresh that is killed has happened or has not; the next one is exact either way.

Contents, frontier, and transaction number are one commit. So the process is killed at random
moments of a refresh, with either writer, and after each kill: the frontier has not gone back, the
table equals its query at its frontier, and the next refresh equals it at the newest versions.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dagster_streamtables import ConflictingCommit, Lake, StreamTable
from runtime.delta import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLES = [
    StreamTable(
        "mart.totals",
        "SELECT customer, SUM(amount) AS total, MIN(amount) AS least FROM orders GROUP BY customer",
        differential_max_change_ratio=0,
    ),
    StreamTable(
        "mart.copies",
        "SELECT customer, amount FROM orders WHERE amount > 2",
        differential_max_change_ratio=0,
    ),
]
DELTA_RS, SPARK = "100000", "0"


@pytest.mark.parametrize("writer", [DELTA_RS, SPARK], ids=["delta-rs", "spark"])
def test_the_refresh_after_a_kill_is_exact(
    writer: str, spark: SparkSession, tmp_path: Path
) -> None:
    kill_and_recover(spark, tmp_path, writer, kills=1)


@pytest.mark.long
@pytest.mark.parametrize("writer", [DELTA_RS, SPARK], ids=["delta-rs", "spark"])
def test_the_refresh_after_ten_kills_is_exact(
    writer: str, spark: SparkSession, tmp_path: Path
) -> None:
    kill_and_recover(spark, tmp_path, writer, kills=10)


def kill_and_recover(spark: SparkSession, folder: Path, writer: str, kills: int) -> None:
    lake, dice = Lake(folder, spark=spark), random.Random(7)
    write(lake, "orders", rows(dice, 500))
    for table in TABLES:
        lake.refresh(table)
    lasted = 3.0
    for number in range(kills):
        for table in TABLES:
            change(lake, dice)
            before = lake.frontier(table)
            began = time.monotonic()
            if killed_at(dice.uniform(0, lasted), folder, writer, table):
                lasted = max(0.5, time.monotonic() - began)
            held = lake.check(table)
            assert held.equal, (number, held.sample)
            assert before is not None and before["orders"] <= held.frontier["orders"]
            refresh_again(lake, table)
            found = lake.check(table)
            assert found.equal, (number, found.sample)
            assert found.frontier["orders"] == lake.version("orders")


def refresh_again(lake: Lake, table: StreamTable) -> None:
    """The next refresh. A statement of the killed one may go on in Spark's server and commit during
    it: then one of the two wins, the other says so, and trying again is enough."""
    for _ in range(3):
        try:
            lake.refresh(table)
            return
        except ConflictingCommit:
            time.sleep(1)
    lake.refresh(table)


def killed_at(moment: float, folder: Path, writer: str, table: StreamTable) -> bool:
    """Kill one refresh; whether it was through before the moment came."""
    script = str(Path(__file__).with_name("refresher.py"))
    command = [sys.executable, script, str(folder), writer, table.name, table.query]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "refreshing"
    deadline = time.monotonic() + moment
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.005)
    through = process.poll() is not None
    if not through:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return through


def rows(dice: random.Random, count: int) -> pa.Table:
    customers = [dice.choice([1, 2, 3, 4, None]) for _ in range(count)]
    amounts = [dice.choice([1, 2, 3, 4, 5, None]) for _ in range(count)]
    return pa.table(
        {"customer": pa.array(customers, pa.int64()), "amount": pa.array(amounts, pa.int32())}
    )


def change(lake: Lake, dice: random.Random) -> None:
    """Insert, update and delete; rows have no key and many copies."""
    write(lake, "orders", rows(dice, 20))
    orders = DeltaTable(lake.location("orders"))
    orders.update(predicate=f"customer = {dice.randint(1, 4)}", updates={"amount": "amount + 1"})
    orders.delete(f"amount = {dice.randint(4, 9)}")
