"""A table that only a person can mend stops by itself, and goes on when it is resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from dagster_streamtables import Action, Lake, StreamTable, View
from dagster_streamtables.cli import app
from dagster_streamtables.errors import (
    ConflictingCommit,
    FailedQuery,
    InvalidDefinition,
    SourceProblem,
    SuspendedTable,
)
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.errors.error_translation import may_pass
from runtime.delta import run_on_delta, write
from runtime.orders import NOWHERE
from runtime.refreshes import refreshed

SHARES = StreamTable("mart.shares", "SELECT id, 10 DIV share AS part FROM customers")


@pytest.fixture
def empty(tmp_path: Path) -> Lake:
    """A lake without tables and without Spark."""
    return Lake(tmp_path, spark=NOWHERE)


def test_a_table_whose_source_is_missing_stops_after_three_errors(empty: Lake) -> None:
    for errors in (1, 2, 3):
        with pytest.raises(SourceProblem):
            empty.refresh(SHARES)
        assert empty.controls.read(SHARES.name).errors == errors

    with pytest.raises(SuspendedTable) as raised:
        empty.refresh(SHARES)

    assert raised.value.what.startswith('stream table "mart.shares": suspended since 20')
    assert "3 times in a row" in raised.value.why
    assert 'there is no table "customers"' in raised.value.why
    with pytest.raises(SourceProblem):
        empty.refresh(replace(SHARES, query="SELECT id FROM nowhere"))
    assert empty.controls.read(SHARES.name).errors == 1


def test_attempts_by_hand_do_not_count(empty: Lake) -> None:
    for _ in range(4):
        with pytest.raises(SourceProblem):
            empty.refresh(SHARES, by_hand=True)
        assert empty.refresh_all([SHARES], by_hand=True)[0].error is not None
    control = empty.controls.read(SHARES.name)
    assert (control.errors, control.failed, control.suspension) == (0, 8, "")
    assert "there is no table" in control.error


def test_zero_means_never(empty: Lake) -> None:
    patient = replace(SHARES, max_consecutive_errors=0)
    for _ in range(5):
        with pytest.raises(SourceProblem):
            empty.refresh(patient)


def test_a_refresh_that_succeeds_forgets_the_errors_and_conflicts_are_none(
    monkeypatch: pytest.MonkeyPatch, lake: Lake
) -> None:
    write(lake, "customers", pa.table({"id": [1, 2, 3], "share": [1, 2, 0]}))
    for _ in range(2):
        with pytest.raises(FailedQuery):
            lake.refresh(SHARES)
    run_on_delta(lake, "DELETE FROM customers WHERE share = 0")
    refreshed(lake, SHARES)
    assert lake.controls.read(SHARES.name).errors == 0

    def lost(*_: object) -> None:
        raise ConflictingCommit("another refresh committed first")

    with monkeypatch.context() as patch:
        patch.setattr(differential, "full", lost)
        for _ in range(4):
            with pytest.raises(ConflictingCommit):
                lake.refresh(SHARES, full=True)
    assert lake.refresh(SHARES).action is Action.NO_DATA


def test_a_person_suspends_and_resumes_by_the_command_line(tmp_path: Path) -> None:
    lake, run = Lake(tmp_path, spark=NOWHERE), CliRunner().invoke

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


def test_what_a_person_said_stands_until_a_person_resumes(empty: Lake) -> None:
    controls = empty.controls
    controls.suspend(SHARES.name, "moving house")
    first = controls.read(SHARES.name).suspended_at
    controls.suspend(SHARES.name, "")
    assert controls.read(SHARES.name).suspension == "moving house"
    controls.suspend(SHARES.name, "moving again")
    assert controls.read(SHARES.name).suspension == "moving again"
    assert controls.read(SHARES.name).suspended_at == first
    controls.resume(SHARES.name)

    with controls.watching(SHARES):
        controls.suspend(SHARES.name, "in the middle of a refresh")
    assert controls.read(SHARES.name).suspension == "in the middle of a refresh"
    controls.resume(SHARES.name)
    with pytest.raises(FailedQuery), controls.watching(SHARES):
        controls.suspend(SHARES.name, "in the middle of a refresh")
        raise FailedQuery("the query fails")
    kept = controls.read(SHARES.name)
    assert (kept.suspension, kept.errors) == ("in the middle of a refresh", 1)
    assert controls.of(replace(SHARES, query="SELECT 1 AS n")).suspension == kept.suspension


def test_an_attempt_that_goes_well_forgets_the_errors_of_every_definition(empty: Lake) -> None:
    """Whoever looks without declarations knows no definition to tell them apart by."""
    controls = empty.controls
    for _ in range(3):
        with pytest.raises(FailedQuery), controls.watching(SHARES):
            raise FailedQuery("the query fails")
    with controls.watching(replace(SHARES, query="SELECT id FROM customers")):
        pass
    known = controls.read(SHARES.name)
    assert (known.errors, known.error, known.suspension) == (0, "", "")
    assert [each.error for each in known.failures] == ["the query fails"] * 3


def test_an_attempt_that_may_pass_is_told_and_not_counted(empty: Lake) -> None:
    for error in (ConflictingCommit("another refresh committed first"), OSError("odd\ntrace")):
        with pytest.raises(type(error)), empty.controls.watching(SHARES):
            raise error
    known = empty.controls.read(SHARES.name)
    assert (known.errors, known.error, known.failed) == (0, "OSError: odd", 2)
    assert [each.lasting for each in known.failures] == [False, False]
    [status] = empty.monitor.status()
    assert (status.table, status.status, status.error) == (SHARES.name, "NEW", "OSError: odd")


@pytest.mark.parametrize("defect", [TypeError, AssertionError, KeyError, ValueError])
def test_a_defect_of_our_own_counts(defect: type[Exception], empty: Lake) -> None:
    for _ in range(3):
        with pytest.raises(defect), empty.controls.watching(SHARES):
            raise defect("odd")
    with pytest.raises(SuspendedTable), empty.controls.watching(SHARES):
        pass


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT no_such_function(id) AS x FROM customers", "[UNRESOLVED_ROUTINE]"),
        ("SELECT id.part AS x FROM customers", "[INVALID_EXTRACT_BASE_FIELD_TYPE]"),
        ("SELECT id + array(1) AS x FROM customers", "[DATATYPE_MISMATCH"),
        ("SELECT try_variant_get(id, '$', 'no type') AS x FROM customers", "["),
    ],
)
@pytest.mark.parametrize("mode", ["FULL", "AUTO"])
def test_what_spark_does_not_run_counts_and_is_not_tried_again(
    mode: str, query: str, said: str, lake: Lake
) -> None:
    write(lake, "customers", pa.table({"id": [1, 2, 3], "share": [1, 2, 0]}))
    table = StreamTable("mart.wrong", query, mode)
    for _ in range(3):
        with pytest.raises(InvalidDefinition) as raised:
            lake.refresh(table)
        assert not may_pass(raised.value)
    assert said in raised.value.why
    with pytest.raises(SuspendedTable):
        lake.refresh(table)


def test_views_of_the_lake_are_no_other_definition(tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=NOWHERE, views=[View("customers", "SELECT * FROM nowhere")])
    with pytest.raises(SourceProblem):
        lake.refresh(SHARES)
    assert lake.monitor.status([SHARES])[0].errors == 1


def test_a_control_in_an_object_store_is_written_read_and_forgotten(tmp_path: Path) -> None:
    controls = Lake(f"file://{tmp_path}", spark=NOWHERE).controls
    controls.suspend("mart.totals", "moving house" * 10_000)
    assert controls.read("mart.totals").suspension.startswith("moving house")
    assert controls.names() == ["mart.totals"]
    assert controls.forget("mart.totals")
    assert not controls.forget("mart.totals")
    assert not controls.read("mart.totals").suspension
