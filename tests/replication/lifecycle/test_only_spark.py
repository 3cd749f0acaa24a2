"""Replications into tables that only Spark writes: equal, and exactly once when they are killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Lake
from replication.lifecycle.origins import Origin, Row
from replication.lifecycle.test_crashes import STEPS, History, killed_at

pytestmark = pytest.mark.long


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    lake = Lake(tmp_path / "subscriber", spark=spark)
    for name in ("t", "bag"):
        spark.sql(
            f"CREATE TABLE delta.`{lake.location(name)}` (own STRING, v STRING, k BIGINT) "
            "USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
            "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true')"
        )
    return lake


class SparkHistory(History):
    def stored(self, table: str) -> Counter[Row]:
        return Counter((row["k"], row["v"]) for row in self.lake.read(table).collect())


def test_killed_between_any_two_steps(slotted: Origin, lake: Lake) -> None:
    history = SparkHistory(slotted, lake, 1)
    history.begin(max_rows=3)
    for step in STEPS:
        killed_at(lake, step, 1)
        history.change()
    history.require_refreshed()
    assert not history.replications.read("r").errors


def test_rows_are_copied_again_and_compared(slotted: Origin, lake: Lake) -> None:
    history = SparkHistory(slotted, lake, 5)
    history.change()
    replications = history.replications
    replications.refresh(history.declared(on_conflict="apply"))
    place = f"delta.`{lake.location('t')}`"
    lake.access.session("t").spark.sql(f"INSERT INTO {place} VALUES ('his', 'x', 99)")
    check = replications.check("r")
    assert not check.equal
    [sample] = check.tables["t" if "t" in check.tables else "public.t"].sample
    assert (sample["k"], sample["__difference"]) == (99, "unexpected")

    replications.copy("r")

    history.require_equal()
