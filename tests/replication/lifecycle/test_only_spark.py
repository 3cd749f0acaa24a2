"""Replications into tables that only Spark writes: equal, and exactly once when they are killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dagster_streamtables import Lake, Replication, Replications
from replication.lifecycle.origins import Origin
from replication.lifecycle.test_crashes import STEPS, History, killed_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    def require_equal(self, lake: Lake, about: object = None) -> None:
        for table, wanted in self.rows.items():
            found = Counter((row["k"], row["v"]) for row in lake.read(table).collect())
            assert found == Counter(wanted), (table, about)


def test_killed_between_any_two_steps(slotted: Origin, lake: Lake) -> None:
    history = SparkHistory(slotted, 1)
    history.change()
    history.begin(lake, max_rows=3)
    for step in STEPS:
        killed_at(lake, "r", step, 1)
        history.change()
    history.require_refreshed(lake)
    assert not Replications(lake).read("r").errors


def test_rows_are_copied_again_and_compared(slotted: Origin, lake: Lake) -> None:
    history, replications = SparkHistory(slotted, 5), Replications(lake)
    history.change()
    replications.refresh(Replication("r", slotted.declared("p", "q"), on_conflict="apply"))
    place = f"delta.`{lake.location('t')}`"
    lake.access.session("t").spark.sql(f"INSERT INTO {place} VALUES ('his', 'x', 99)")
    check = replications.check("r")
    assert not check.equal
    [sample] = check.tables["t" if "t" in check.tables else "public.t"].sample
    assert (sample["k"], sample["__difference"]) == (99, "unexpected")

    replications.copy("r")

    history.require_equal(lake)
    assert replications.check("r").equal
