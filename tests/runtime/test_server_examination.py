"""What is wrong with a server is found before the first refresh, and told with what to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from dagster_streamtables.cli import app
from dagster_streamtables.runtime.doctor import server_examination
from dagster_streamtables.runtime.doctor.server_examination import ServerFinding, examine_server
from dagster_streamtables.runtime.spark.session import open_session
from dagster_streamtables.runtime.spark.settings import settings_for_now
from qa.object_store.store import BUCKET, AuditedStore, audited_store

MATERIALIZES = "spark.databricks.delta.merge.materializeSource"
LOGS = "spark.databricks.delta.delta.log.cacheSize"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    session = open_session()
    with settings_for_now(session, {name: session.conf.get(name) for name in (MATERIALIZES, LOGS)}):
        yield session


def wrong(
    session: SparkSession, root: str, options: dict[str, str] | None = None, tables: int = 3
) -> dict[str, ServerFinding]:
    found = examine_server(session, root, options, tables)
    return {each.subject: each for each in found if not each.fits}


def test_the_local_server_fits_and_nothing_stays_below_the_root(
    session: SparkSession, tmp_path: Path
) -> None:
    assert wrong(session, str(tmp_path)) == {}
    assert not [*tmp_path.iterdir()]


def test_a_setting_that_differs(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set(MATERIALIZES, "none")
    assert wrong(session, str(tmp_path)) == {
        MATERIALIZES: ServerFinding(
            MATERIALIZES, "is none", f"start the server with {MATERIALIZES}=all"
        )
    }


def test_more_logs_than_memory(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set(LOGS, "10000")
    [found] = wrong(session, str(tmp_path), tables=20_000).values()
    assert found.subject == "memory"
    assert "40000 MB of the driver" in found.found
    assert found.fix.startswith("give the driver 161g, or set spark.databricks.delta")


def test_another_version(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_examination, "spark_version", lambda: "3.5")
    server = ".".join(session.version.split(".")[:2])
    [found] = wrong(session, str(tmp_path)).values()
    assert found.fix == f"install pyspark {server}, or start a server of 3.5"


@pytest.mark.parametrize("ahead", [-60, 60])
def test_clocks_apart(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    clock = SimpleNamespace(time=lambda: time.time() + ahead)
    monkeypatch.setattr(server_examination, "time", clock)
    [found] = wrong(session, str(tmp_path)).values()
    assert (found.subject, found.found) == ("clock", "60 seconds apart")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AuditedStore]:
    with audited_store(tmp_path) as store:
        store.make(BUCKET)
        yield store


def test_a_root_that_only_delta_rs_reads(session: SparkSession, store: AuditedStore) -> None:
    found = wrong(session, store.root("lake"), dict(store.options))
    assert found["root: Spark reads"].found.startswith("Spark has no connector")
    assert not store.client.list_objects_v2(Bucket=BUCKET).get("Contents")


def test_a_root_that_delta_rs_does_not_write(session: SparkSession, store: AuditedStore) -> None:
    found = wrong(session, "s3a://missing/lake", dict(store.options))
    assert "NoSuchBucket" in found["root: delta-rs writes"].found


def test_the_command(spark: SparkSession, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["spark", "doctor", "--root", str(tmp_path)])
    assert done.exit_code == 0
    assert done.output.splitlines()[-1].split("\t") == ["root", "both sides read and write it", ""]


def test_nobody_at_the_address(tmp_path: Path) -> None:
    address = "sc://127.0.0.1:9"
    done = CliRunner().invoke(app, ["spark", "doctor", address, "--root", str(tmp_path)])
    assert done.exit_code == 1
    assert f"no Spark Connect server answers at {address}" in done.output
