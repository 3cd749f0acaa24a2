"""Spark commits only where its log store is known to erase no commit of another writer.

A folder by its URI, ``file:///…``, stands for a bucket: for it, Spark's session is asked as for S3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import CdcMode, Lake
from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.errors.error_translation import is_lasting
from dagster_streamtables.runtime.spark import log_store
from dagster_streamtables.runtime.spark.spark_commits import commits_safely, require_safe_commits
from runtime.refreshes import maintained

TOTALS = maintained("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
SETTING = "spark.delta.logStore.{}.impl"
DYNAMODB = "io.delta.storage.S3DynamoDBLogStore"
REFUSED = "Spark does not commit, since it could erase a commit of another writer"


@pytest.fixture
def asked(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session that is asked for its log store of ``file``, and has none that is safe."""
    monkeypatch.setattr(log_store, "SCHEMES", ("file", *log_store.SCHEMES))
    spark.conf.set(SETTING.format("file"), DYNAMODB)
    yield spark
    spark.conf.unset(SETTING.format("file"))


@pytest.fixture
def lake(tmp_path: Path, asked: SparkSession) -> Lake:
    """Every commit of which is made by Spark."""
    lake = Lake(tmp_path.as_uri(), spark=asked, driver_rows=0)
    append(lake, (1, "ann", 10), (2, "bob", 20))
    return lake


def append(lake: Lake, *rows: tuple[int, str, int], name: str = "orders") -> None:
    columns = ("id", "customer", "amount")
    table = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows])
    write_deltalake(lake.location(name), table, mode="append")


def safe(spark: SparkSession) -> None:
    spark.conf.set(SETTING.format("file"), log_store.CLASS)


@pytest.mark.parametrize("scheme", log_store.SCHEMES)
def test_our_own_server_commits_safely(spark: SparkSession, scheme: str) -> None:
    assert commits_safely(spark, f"{scheme}://lake/mart/totals")
    spark.conf.set(SETTING.format(scheme), DYNAMODB)
    try:
        assert not commits_safely(spark, f"{scheme}://lake/mart/totals")
        with pytest.raises(EnvironmentProblem, match=REFUSED) as raised:
            require_safe_commits(spark, f"{scheme}://lake/mart/totals")
        said = str(raised.value)
        assert DYNAMODB in said and str(log_store.JAR) in said and "allow_unsafe_commits" in said
        assert f"{SETTING.format(scheme)}={log_store.CLASS}" in said
        assert not is_lasting(raised.value)
    finally:
        spark.conf.unset(SETTING.format(scheme))


@pytest.mark.parametrize(
    "location", ["/lake/mart/totals", "gs://lake/totals", "abfss://lake@account/totals"]
)
def test_other_stores_are_as_delta_has_them(spark: SparkSession, location: str) -> None:
    assert commits_safely(spark, location)


def test_no_table_is_made(lake: Lake) -> None:
    with pytest.raises(EnvironmentProblem, match=REFUSED):
        lake.refresh(TOTALS)
    assert lake.version("totals") is None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda lake: append(lake, (3, "eve", 30)), id="rows that come"),
        pytest.param(
            lambda lake: DeltaTable(lake.location("orders")).delete("id = 1"), id="rows that go"
        ),
        pytest.param(lambda lake: append(lake, (4, "ann", 7), (5, "eve", 9)), id="both"),
    ],
)
@pytest.mark.parametrize("query", [TOTALS.query, "SELECT id, amount FROM orders WHERE amount > 5"])
def test_no_change_is_committed(asked: SparkSession, lake: Lake, change: Any, query: str) -> None:
    table = replace(TOTALS, query=query)
    safe(asked)
    lake.refresh(table)
    found = lake.version("totals")
    change(lake)
    asked.conf.set(SETTING.format("file"), DYNAMODB)
    with pytest.raises(EnvironmentProblem, match=REFUSED):
        lake.refresh(table)
    with pytest.raises(EnvironmentProblem, match=REFUSED):
        lake.refresh(table, full=True)
    assert lake.version("totals") == found
    safe(asked)
    assert lake.refresh(table).writer == "spark"
    assert lake.check(table).equal


def test_small_changes_are_committed_by_delta_rs(tmp_path: Path, asked: SparkSession) -> None:
    lake = Lake(tmp_path.as_uri(), spark=asked)
    append(lake, (1, "ann", 10), (2, "bob", 20))
    append(lake, (3, "eve", 30))
    assert lake.refresh(TOTALS).writer == "delta-rs"
    DeltaTable(lake.location("orders")).delete("id = 1")
    assert lake.refresh(TOTALS).writer == "delta-rs"
    assert lake.check(TOTALS).equal


def test_who_alone_writes_may_allow_it(lake: Lake, asked: SparkSession) -> None:
    from dagster_streamtables.runtime.spark import spark_commits

    lake = Lake(lake.root, spark=asked, driver_rows=0, allow_unsafe_commits=True)
    try:
        assert lake.refresh(TOTALS).writer == "spark"
        assert lake.check(TOTALS).equal
    finally:
        spark_commits._alone.clear()


def test_no_vacuum_commits(asked: SparkSession, lake: Lake) -> None:
    safe(asked)
    lake.refresh(TOTALS)
    asked.conf.set(SETTING.format("file"), DYNAMODB)
    for name in ("orders", "totals"):
        before = lake.version(name)
        lake.retention.vacuum(name, keep=timedelta(0), dry=True)
        with pytest.raises(EnvironmentProblem, match=REFUSED):
            lake.retention.vacuum(name, keep=timedelta(0))
        assert lake.version(name) == before


def test_delta_rs_turns_on_a_feed(tmp_path: Path, asked: SparkSession) -> None:
    """It changes a table that is somebody else's, and which others write."""
    lake = Lake(tmp_path.as_uri(), spark=asked)
    append(lake, *((n, "ann", n) for n in range(10)))
    table = replace(TOTALS, cdc_mode=CdcMode.ENABLE)
    lake.refresh(table)
    DeltaTable(lake.location("orders")).delete("id = 1")
    assert 'the change feed of "orders" is now on' in lake.refresh(table).reason
    source = DeltaTable(lake.location("orders"))
    assert source.metadata().configuration["delta.enableChangeDataFeed"] == "true"
    assert "delta-rs" in str(source.history(1)[0])
    for row in (2, 3):  # the first window has the commit that turned it on
        source.delete(f"id = {row}")
        done = lake.refresh(table)
    assert done.windows["orders"].capture == "feed"
    assert lake.check(table).equal
