"""Spark itself gives the names that the compiler gives to columns without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compiler.database import TABLES
from compiler.test_output_names import NAMES
from dagster_streamtables.compiler import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.mark.parametrize("query", NAMES)
def test_spark_gives_these_names(query: str, spark: SparkSession) -> None:
    def empty(table: str) -> str:
        columns = ", ".join(f"CAST(NULL AS {kind}) AS `{n}`" for n, kind in TABLES[table].items())
        return f"(SELECT {columns})"

    assert spark.sql(read(query).over(empty)).columns == NAMES[query]
