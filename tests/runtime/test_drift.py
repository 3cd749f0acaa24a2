"""A stored table that is not what its query gave, and whose state says that it is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake
from dagster_streamtables.runtime.delta.delta_log import Logs
from dagster_streamtables.runtime.model.state import read_state
from dagster_streamtables.runtime.storage import delta_rs_writer
from dagster_streamtables.runtime.storage.target import Target
from runtime.delta import run_on_delta, write
from runtime.refreshes import maintained, refreshed

LARGE = maintained("large", "SELECT id, amount FROM orders WHERE amount > 10")


@pytest.mark.long
@pytest.mark.parametrize("driver_rows", [100_000, 0], ids=["delta-rs", "spark"])
def test_a_row_that_cannot_be_taken_away_starts_the_table_anew(
    driver_rows: int, spark: SparkSession, tmp_path: Path
) -> None:
    """As the last digits of a float do that was summed in another order."""
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    write(lake, "orders", pa.table({"id": [1, 2], "amount": [20.0, 30.0]}))
    refreshed(lake, LARGE)
    _store(lake, pa.table({"id": [1, 2], "amount": [20.000000000000004, 30.0]}))
    run_on_delta(lake, "DELETE FROM orders WHERE id = 1")

    done = refreshed(lake, LARGE)

    assert done.action is Action.REINITIALIZE
    assert done.reason == "a deleted row is not in the table"
    assert done.row_count == 1


def _store(lake: Lake, rows: pa.Table) -> None:
    """Put other rows under the state of the last refresh."""
    log = Logs().newest(lake.location(LARGE.name))
    assert log is not None
    state = read_state(log).state
    assert state is not None
    delta_rs_writer.replace(log, Target(lake.location(LARGE.name), state, None), rows)
