from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dagster_streamtables import Lake
from runtime.delta import write
from runtime.orders import orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "orders", orders(*range(20)))
    return lake
