"""What `storage_options` hold is told to the object store, and to nobody else."""

from __future__ import annotations

import gc
import logging
import pickle
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, Mode, StreamTable, build_definitions
from dagster_streamtables.errors import StreamTablesError
from orchestration.conftest import Write, on_session

SECRET = "c0rrect-horse-battery"
OPTIONS = {"AWS_SECRET_ACCESS_KEY": SECRET}
TOTALS = StreamTable("totals", "SELECT k, SUM(v) AS total FROM orders GROUP BY k", schedule="1m")
ABOVE = StreamTable("above", "SELECT k, 1 / (total - 7) AS share FROM totals", schedule="1m")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, write: Write) -> Lake:
    write("orders", k=[1, 2], v=[3, 4])
    return Lake(tmp_path, spark=spark, storage_options=OPTIONS)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def ours() -> Iterator[object]:
    """Every living object of the package, whoever holds it.

    But for the compiler's, of which other tests leave thousands: it is given texts and columns, and
    knows no resource.
    """
    for each in gc.get_objects():
        module = str(type(each).__module__)
        if module.startswith("dagster_streamtables.") and ".compiler." not in module:
            yield each


def require_untold(*told: object) -> None:
    for each in told:
        # To show rows that it would read, Spark's client asks the server, where they may be gone.
        with suppress(PySparkException):
            assert SECRET not in str(each)
            assert SECRET not in repr(each)


def test_refreshes_checks_and_their_errors_do_not_tell_it(
    lake: Lake, write: Write, tmp_path: Path, lines: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = [lake.refresh(TOTALS), lake.refresh(ABOVE)]
    write("orders", k=[1], v=[4])
    told += [lake.refresh(TOTALS), lake.check(TOTALS), *lake.monitor.status([TOTALS, ABOVE])]
    for table in (ABOVE, StreamTable("lost", "SELECT nope FROM orders", mode=Mode.FULL)):
        with pytest.raises(StreamTablesError) as raised:
            lake.refresh(table)
        told += [raised.value, pickle.dumps(raised.value), raised.getrepr(style="long")]

    require_untold(*told, lines.text, *ours())
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_neither_do_dagster_s_events(
    spark: SparkSession,
    tmp_path: Path,
    write: Write,
    lines: pytest.LogCaptureFixture,
    instance: dg.DagsterInstance,
) -> None:
    write("orders", k=[1, 2], v=[7, 4])
    resource = on_session(spark, tmp_path, storage_options=OPTIONS)
    defs = build_definitions(resource=resource, tables=[TOTALS, ABOVE])
    run = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance, raise_on_error=False
    )

    assert not run.success
    require_untold(*run.all_events, *instance.all_logs(run.run_id), lines.text, *ours())
    require_untold(*(spec.metadata for spec in defs.resolve_all_asset_specs()))
