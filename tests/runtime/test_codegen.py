"""Small statements are interpreted, large ones compiled, and a check runs compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.connect.session import SparkSession

from dagster_streamtables import Action, Lake, StreamTable, subscribe
from dagster_streamtables.runtime.spark.server import ensure_server, key_of
from dagster_streamtables.runtime.spark.session import to_local
from dagster_streamtables.runtime.spark.session_settings import FEW

pytestmark = pytest.mark.spark

SALES = StreamTable("totals", "SELECT k, SUM(v) AS v FROM sales GROUP BY k", mode="DIFFERENTIAL")


def sales(rows: int) -> pa.Table:
    numbers = np.arange(rows)
    return pa.table({"k": numbers % 7, "v": numbers})


def is_interpreted(lake: Lake) -> bool:
    spark = lake.access.session(SALES.name).spark
    names = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    return [spark.conf.get(name) for name in names] == ["false", "NO_CODEGEN"]


def test_what_reads_few_rows_is_interpreted_and_its_check_is_not(tmp_path: Path) -> None:
    lake, place = Lake(tmp_path), str(tmp_path / "public" / "sales")
    write_deltalake(place, sales(100))

    lake.refresh(SALES)
    assert is_interpreted(lake)
    assert lake.checks.equality(SALES).equal
    assert not is_interpreted(lake)

    write_deltalake(place, sales(10), mode="append")
    assert lake.refresh(SALES).action is Action.DIFFERENTIAL
    assert is_interpreted(lake)


@pytest.mark.long
def test_what_reads_many_rows_is_compiled_and_a_small_change_of_them_is_not(tmp_path: Path) -> None:
    lake, place = Lake(tmp_path), str(tmp_path / "public" / "sales")
    write_deltalake(place, sales(FEW * 7 // 2))
    lake.refresh(SALES)
    assert not is_interpreted(lake)

    write_deltalake(place, sales(10), mode="append")
    assert lake.refresh(SALES).action is Action.DIFFERENTIAL
    assert is_interpreted(lake)

    write_deltalake(place, sales(FEW // 4), mode="append")
    assert lake.refresh(SALES).action is Action.DIFFERENTIAL
    assert not is_interpreted(lake)
    assert lake.checks.equality(SALES).equal


GUARDED = """SELECT k, CAST(COUNT(*) AS TINYINT) * CAST(60 AS TINYINT) AS scaled FROM sales
GROUP BY k HAVING COUNT(*) < 3"""


def test_what_a_condition_guards_is_computed_for_no_other_row(tmp_path: Path) -> None:
    """180 is too large for a TINYINT, and an interpreted statement computes it before HAVING."""
    lake, place = Lake(tmp_path), str(tmp_path / "public" / "sales")
    write_deltalake(place, pa.table({"k": [1, 1, 1, 2], "v": [1, 1, 1, 1]}))
    table = StreamTable("scaled", GUARDED, mode="DIFFERENTIAL")
    followed = subscribe(lake, GUARDED, clock="version")

    assert lake.refresh(table).inserted == 1
    assert followed.fetch(None, timeout=0).select(["_diff", "k", "scaled"]).to_pylist() == [
        {"_diff": 1, "k": 2, "scaled": 60}
    ]
    write_deltalake(place, pa.table({"k": [2, 3], "v": [1, 1]}), mode="append")
    assert lake.refresh(table).action is Action.DIFFERENTIAL
    assert lake.checks.equality(table).equal
    write_deltalake(place, pa.table({"k": [2], "v": [1]}), mode="append")
    found = followed.fetch(None, timeout=0).select(["_timestamp", "_diff", "k", "scaled"])
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == [
        (1, -1, 2, 60), (1, 1, 2, 120), (1, 1, 3, 60), (2, -1, 2, 120)
    ]  # fmt: skip


def test_a_session_of_the_user_keeps_its_confs(tmp_path: Path) -> None:
    # It is on the local server, but nothing says so: it could be anybody's.
    key = key_of(ensure_server())
    assert key is not None
    channel: Any = to_local(key.port, key.token, "user_id=somebody")
    given: Any = SparkSession.builder.channelBuilder(channel).create()
    try:
        lake = Lake(tmp_path, spark=given)
        write_deltalake(str(tmp_path / "public" / "sales"), sales(100))
        lake.refresh(SALES)
        assert not is_interpreted(lake)
    finally:
        given.stop()
