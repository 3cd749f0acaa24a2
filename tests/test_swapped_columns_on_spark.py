"""Two columns of one type that are swapped in what a refresh stores are noticed by every oracle.

See `test_swapped_columns`. What runs `Lake.check` for its verdict is here once: `refreshed`
(and so the tests of traps), TPC, the object store, and the check of an asset; soaks, benchmarks and
the example call it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import swapped
from changes import test_queries
from compiler import casefile
from compiler.database import Database
from dagster_streamtables import (
    CheckSettings,
    Lake,
    StreamTable,
    StreamTablesResource,
    build_stream_table_assets,
)
from dagster_streamtables.checks import build_table_checks
from dagster_streamtables.runtime.spark.session import drop_views
from named_rows import rows_in_order
from qa.fuzz.command import make_trial
from qa.fuzz.outcome import Verdict
from qa.fuzz.spark import SparkEngine
from qa.fuzz.switches import all_switches
from qa.histories.history import History, Sessions, run
from qa.histories.tally import Tally
from qa.races import lake as raced, verdict
from qa.tpc.trial import Trial
from runtime import delta, test_cases_on_delta
from runtime.refreshes import refreshed
from test_swapped_columns import fails

CASE = casefile.load("scan.sql")[0]
TABLE = StreamTable("pair", "SELECT a, b FROM t", differential_max_change_ratio=0)
ROWS = pa.table({"a": [1, 2, 2], "b": [10, 20, 20]})


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path / "lake", spark=spark)
    delta.write(made, "t", ROWS)
    yield made
    drop_views(spark)


@pytest.fixture
def swap(monkeypatch: pytest.MonkeyPatch) -> None:
    swapped.swap_what_is_stored(monkeypatch)


@pytest.mark.usefixtures("swap")
@pytest.mark.parametrize("most", [None, pytest.param(0, marks=pytest.mark.long)])
def test_a_refresh_that_is_checked(lake: Lake, most: int | None) -> None:
    lake = Lake(lake.root, spark=lake.access.spark, driver_rows=most)
    with pytest.raises(AssertionError, match="3 rows missing, 3 unexpected"):
        refreshed(lake, TABLE)
    assert delta.stored(lake, "pair", ["a", "b"]) == {("10", "1"): 1, ("20", "2"): 2}
    assert rows_in_order(lake.read("pair"), "a, b") == [(10, 1), (20, 2), (20, 2)]
    source = f"delta.`{lake.location('t')}`"
    assert delta.outputs(lake, f"SELECT b, a FROM {source}") == ["b", "a"]


@pytest.mark.usefixtures("swap")
def test_the_check_of_an_asset(lake: Lake) -> None:
    definitions: list[Any] = [
        *build_stream_table_assets(tables=[TABLE]),
        *build_table_checks(
            tables=[TABLE], kinds=["equality"], settings=CheckSettings(sample=None)
        ),
    ]
    resource = StreamTablesResource(root=lake.root)
    done = dg.materialize(definitions, resources={"streamtables": resource})
    [found] = done.get_asset_check_evaluations()
    assert not found.passed
    assert found.description == "Rows missing: 3, unexpected: 3."


@pytest.mark.usefixtures("swap")
def test_a_trial_of_tpc(lake: Lake) -> None:
    trial = Trial(1, TABLE.query)
    trial.begin(lake, twin=False)
    trial.window(lake, 1)
    assert trial.unequal == 1 and not trial.passed


@pytest.mark.usefixtures("swap")
def test_stream_tables_of_an_object_store(spark: SparkSession, tmp_path: Path) -> None:
    from qa.object_store import refreshes as command

    lake = Lake(tmp_path, spark=spark)
    for name, rows in command._first().items():
        delta.write(lake, name, pa.Table.from_pylist(rows))
    with pytest.raises(AssertionError, match="equal=False"):
        command._refresh(lake, {"REINITIALIZE"})


@pytest.mark.usefixtures("swap")
def test_a_case_on_delta(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        test_cases_on_delta.test_every_case(CASE, True, Database(), Lake(tmp_path, spark=spark))


@pytest.mark.parametrize("swap", [False, True])
def test_a_case_as_a_subscription(swap: bool, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    if swap:
        swapped.swap_what_is_given_out(monkeypatch)
    with fails(swap):
        test_queries.test_every_case(CASE, Database(), lake)


@pytest.mark.usefixtures("swap")
def test_random_queries_on_spark(spark: SparkSession) -> None:
    trials = [make_trial(1, n, all_switches(), whole=False, batch=4) for n in range(4)]
    found = SparkEngine(spark).run_many(trials)
    assert any(each.verdict is Verdict.FAILED for each in found), found


@pytest.mark.long
@pytest.mark.parametrize("subscribed", [False, True])
def test_random_histories(
    subscribed: bool, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = swapped.swap_what_is_given_out if subscribed else swapped.swap_what_is_stored
    swap(monkeypatch)
    # Both roots have two columns of one type, which not every query has.
    steps = History.random(5, 1).steps[:1]
    history = History("5:2", steps, ("bag", "keyed"), subscribed)
    failure = run(history, Sessions(spark, spark), Tally())
    assert failure is not None and failure.what == "wrong rows", failure


@pytest.mark.usefixtures("swap")
def test_races(spark: SparkSession, tmp_path: Path) -> None:
    raced.make(tmp_path, Random(1))
    lake = Lake(tmp_path, spark=spark)
    for table in raced.TABLES:
        if table.name in ("totals", "copies"):
            lake.refresh(table)
    compared, found = verdict.wrong(spark, tmp_path)
    assert compared == 2
    assert any("copies version 0" in each for each in found), found


@pytest.mark.usefixtures("swap")
def test_rows_of_postgres(spark: SparkSession, tmp_path: Path) -> None:
    from postgres import test_cases
    from postgres.server import connected

    with connected(tmp_path) as connection:
        query = {"q": "SELECT id, x, y FROM t"}
        with pytest.raises(AssertionError, match="SELECT id, x, y FROM t"):
            test_cases._hold(Lake(tmp_path / "lake", spark=spark), connection, query, steps=1)
