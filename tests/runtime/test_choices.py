"""What a table's author may choose: where changes are read, and what a new schema means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from dagster_streamtables import Action, CdcMode, Lake, OnSchemaChange, SourceProblem
from runtime.delta import refreshed, run_on_delta, write
from runtime.orders import LARGE, orders, source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def captured(lake: Lake, mode: CdcMode) -> str:
    return refreshed(lake, replace(LARGE, cdc_mode=mode)).windows["orders"].capture


def test_a_source_moves_between_feed_and_snapshots_and_back(lake: Lake) -> None:
    refreshed(lake, LARGE)
    found: list[str] = []
    for row, mode in enumerate([CdcMode.CDF, CdcMode.SNAPSHOT, CdcMode.AUTO, CdcMode.SNAPSHOT]):
        source(lake).delete(f"id = {row}")
        found.append(captured(lake, mode))
    assert found == ["feed", "snapshots", "feed", "snapshots"]

    write(lake, "orders", orders(100))
    assert captured(lake, CdcMode.CDF) == "appended"


@pytest.mark.long
def test_a_feed_that_is_switched_off_and_on_is_left_where_it_has_a_gap(lake: Lake) -> None:
    refreshed(lake, LARGE)
    for row, feed in enumerate(["false", "true"]):
        source(lake).alter.set_table_properties({"delta.enableChangeDataFeed": feed})
        source(lake).delete(f"id = {row}")
    strict = replace(LARGE, cdc_mode=CdcMode.CDF)

    with pytest.raises(SourceProblem, match='feed of "orders" does not cover the window') as raised:
        lake.refresh(strict)
    assert "cdc_mode" in raised.value.fix
    assert captured(lake, CdcMode.AUTO) == "snapshots"
    source(lake).delete("id = 3")
    assert captured(lake, CdcMode.CDF) == "feed"


@pytest.mark.long
def test_a_new_schema_fails_the_refresh_where_it_is_asked_to(
    spark: SparkSession, lake: Lake
) -> None:
    strict = replace(LARGE, on_schema_change=OnSchemaChange.FAIL)
    first = refreshed(lake, strict)
    run_on_delta(spark, lake, "INSERT INTO orders VALUES (200, 1, 9, 'x')")
    wider = "CAST(amount AS BIGINT) AS amount"
    place = lake.location("orders")
    rows = spark.sql(f"SELECT id, customer, {wider}, note FROM delta.`{place}`")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", True).save(place)

    with pytest.raises(SourceProblem, match='columns of "orders" that the query uses') as raised:
        lake.refresh(strict)

    assert raised.value.why == "amount was int, and is bigint"
    assert lake.version(strict.name) == first.version
    assert refreshed(lake, strict, full=True).action is Action.REINITIALIZE
    assert refreshed(lake, strict).action is Action.NO_DATA
