"""A table that only a person can mend stops by itself, and goes on when it is resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from dagster_streamtables import (
    Action,
    ConflictingCommit,
    DamagedTable,
    FailedQuery,
    Lake,
    SourceProblem,
    StreamTable,
    SuspendedTable,
)
from dagster_streamtables.cli import app
from dagster_streamtables.runtime import compute
from runtime.delta import refreshed, run_on_delta, write
from runtime.orders import NOWHERE, TOTALS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARES = StreamTable("mart.shares", "SELECT id, 10 DIV share AS part FROM customers")


def test_a_table_whose_source_is_missing_stops_after_three_errors(tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark="sc://127.0.0.1:1")
    for errors in (1, 2, 3):
        with pytest.raises(SourceProblem):
            lake.refresh(SHARES)
        assert lake.controls.read(SHARES.name).errors == errors

    with pytest.raises(SuspendedTable) as raised:
        lake.refresh(SHARES)

    assert raised.value.what.startswith('stream table "mart.shares": suspended since 20')
    assert "3 times in a row" in raised.value.why
    assert 'there is no table "customers"' in raised.value.why
    with pytest.raises(SourceProblem):
        lake.refresh(replace(SHARES, query="SELECT id FROM nowhere"))
    assert lake.controls.read(SHARES.name).errors == 1


def test_zero_means_never(tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark="sc://127.0.0.1:1")
    patient = replace(SHARES, max_consecutive_errors=0)
    for _ in range(5):
        with pytest.raises(SourceProblem):
            lake.refresh(patient)


@pytest.mark.spark
def test_a_refresh_that_succeeds_forgets_the_errors_and_conflicts_are_none(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "customers", pa.table({"id": [1, 2, 3], "share": [1, 2, 0]}))
    for _ in range(2):
        with pytest.raises(FailedQuery):
            lake.refresh(SHARES)
    run_on_delta(spark, lake, "DELETE FROM customers WHERE share = 0")
    refreshed(lake, SHARES)
    assert lake.controls.read(SHARES.name).errors == 0

    def lost(*_: object) -> None:
        raise ConflictingCommit("another refresh committed first")

    with monkeypatch.context() as patch:
        patch.setattr(compute, "full", lost)
        for _ in range(4):
            with pytest.raises(ConflictingCommit):
                lake.refresh(SHARES, full=True)
    assert lake.refresh(SHARES).action is Action.NO_DATA


def test_a_person_suspends_and_resumes_by_the_command_line(tmp_path: Path) -> None:
    lake, run = Lake(tmp_path, spark="sc://127.0.0.1:1"), CliRunner().invoke

    done = run(app, ["suspend", SHARES.name, "--root", str(tmp_path), "--why", "moving house"])
    assert done.exit_code == 0
    for table in (SHARES, replace(SHARES, query="SELECT id FROM elsewhere")):
        with pytest.raises(SuspendedTable) as raised:
            lake.refresh(table)
        assert raised.value.why == "moving house"

    assert "is resumed" in run(app, ["resume", SHARES.name, "--root", str(tmp_path)]).output
    assert "was not" in run(app, ["resume", SHARES.name, "--root", str(tmp_path)]).output
    with pytest.raises(SourceProblem):
        lake.refresh(SHARES)


def test_a_control_in_an_object_store_is_written_read_and_forgotten(tmp_path: Path) -> None:
    controls = Lake(f"file://{tmp_path}", spark=NOWHERE).controls
    controls.suspend("mart.totals", "moving house" * 10_000)
    assert controls.read("mart.totals").suspended.startswith("moving house")
    assert controls.forget("mart.totals")
    assert not controls.forget("mart.totals")
    assert not controls.read("mart.totals").suspended


def test_a_control_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=NOWHERE)
    lake.controls.suspend("mart.totals", "")
    file = tmp_path / "_streamtables" / "mart.totals.json"
    file.write_text(file.read_text()[:-9])
    with pytest.raises(DamagedTable) as raised:
        lake.refresh(TOTALS)
    assert raised.value.where == str(file)
    file.unlink()
    assert not lake.controls.read("mart.totals").suspended
