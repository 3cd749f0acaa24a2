from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Lake
from runtime.delta import write
from runtime.orders import orders


@pytest.fixture
def driver_rows() -> int | None:
    """How many rows of a change the lake's process takes. Tests of both writers set it as a
    parameter: with 0, Spark writes."""
    return None


@pytest.fixture
def feed() -> bool:
    """Whether the orders have a change data feed; it may be a parameter of a test, too."""
    return True


@pytest.fixture
def ordered() -> int:
    """How many orders there are."""
    return 20


@pytest.fixture
def lake(
    spark: SparkSession, tmp_path: Path, driver_rows: int | None, feed: bool, ordered: int
) -> Lake:
    """A lake with a table of orders, if there are any."""
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    if ordered:
        write(lake, "orders", orders(*range(ordered)), feed=feed)
    return lake
