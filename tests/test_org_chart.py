"""The example of the org chart: a row changes in PostgreSQL, and four stream tables follow."""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import FromPostgres, Lake, Replications
from dagster_streamtables.catalog import build_replication_catalog
from dagster_streamtables.scheduling import refresh_states
from dagster_streamtables.scheduling.dueness import Backoff
from dagster_streamtables.scheduling.refresh_states import RefreshProgress, replication_states
from example_defs.demo import FOUND, HIRE, RENAME
from example_defs.org_chart.postgres import Database, started
from example_defs.org_chart.replication import org_chart
from named_rows import rows_in_order

pytestmark = pytest.mark.process

REPORT = "division, headcount, payroll"
PAY = "division, pay_per_head"
ABOVE = ("org/department_tree", "org/department_stats", "org/department_report", "org/pay_per_head")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with started(tmp_path_factory.mktemp("org_chart") / "postgres") as running:
        yield running


@pytest.fixture
def defs(
    database: Database, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dg.Definitions:
    """The code location of the example, over a lake and a server of the test's own."""
    monkeypatch.setenv("STREAMTABLES_DEMO_ROOT", str(tmp_path))
    monkeypatch.setenv("STREAMTABLES_DEMO_POSTGRES", database.address)
    monkeypatch.delitem(sys.modules, "example_defs.org_chart.definitions", raising=False)
    return importlib.import_module("example_defs.org_chart.definitions").defs


def refreshed(defs: dg.Definitions, instance: dg.DagsterInstance) -> dict[str, dict[str, Any]]:
    """The metadata of each table, after a run such as the sensor asks for."""
    job = defs.resolve_job_def("org_chart_refresh_run")
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert result.success, [e.event_specific_data for e in result.get_step_failure_events()]
    return {
        event.asset_key.to_user_string(): {
            key.rpartition("/")[2]: value.value
            for key, value in event.materialization.metadata.items()
        }
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None
    }


def test_a_server_that_does_not_answer_does_not_stop_the_sensor(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    replication = replace(org_chart(database.address), slot="another")
    Replications(lake).refresh(replication)
    [entry] = build_replication_catalog([replication]).entries
    node = entry.node
    known = {node.name: RefreshProgress(last=datetime.now(UTC))}

    def moved() -> tuple[str, ...]:
        now = datetime.now(UTC)
        found = replication_states({node.name: node}, known, lake, now, Backoff())
        return found[node.name].work

    assert moved() == ()
    database.run("UPDATE employees SET salary = salary WHERE id = 1")
    assert moved() == ("its publisher has something new",)
    Replications(lake).refresh(replication)
    assert moved() == ()

    monkeypatch.setattr(refresh_states, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"host=127.0.0.1 port={silent.getsockname()[1]} dbname=org_chart"
        publisher = FromPostgres(address, tables=["public.departments", "public.employees"])
        Replications(lake).alter(replace(replication, publisher=publisher))
        assert moved() == ("its publisher has something new",)


@pytest.mark.long
def test_four_levels_follow_a_row_of_postgresql_and_one_that_fails_is_mended(
    defs: dg.Definitions, database: Database, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    with dg.DagsterInstance.ephemeral() as instance:
        first = refreshed(defs, instance)
        assert set(first) == {"hr/departments", "hr/employees", *ABOVE}
        assert first["hr/employees"]["copied"] == 7

        database.run(RENAME)
        second = refreshed(defs, instance)
        report = rows_in_order(lake.read("org.department_report"), REPORT)
        before = rows_in_order(lake.read("org.pay_per_head"), PAY)

        database.run(FOUND)
        job = defs.resolve_job_def("org_chart_refresh_run")
        failed = job.execute_in_process(instance=instance, raise_on_error=False)
        [step] = failed.get_step_failure_events()
        assert "pay_per_head" in str(step.step_key)
        assert rows_in_order(lake.read("org.pay_per_head"), PAY) == before
        database.run(HIRE)
        refreshed(defs, instance)
        mended = rows_in_order(lake.read("org.pay_per_head"), PAY)
        assert [row for row in mended if row not in before] == [("Legal", Decimal(105000))]
    assert (second["hr/departments"]["action"], second["hr/departments"]["updated"]) == (
        "CHANGES", 1,
    )  # fmt: skip
    assert second["hr/employees"]["action"] == "NO_DATA"
    assert [second[name]["action"] for name in ABOVE] == ["DIFFERENTIAL"] * 4
    # The department and the three below it have another path, the division another name.
    assert [second[name]["inserted"] for name in ABOVE] == [4, 4, 1, 1]
    assert report == [
        ("Operations", 1, Decimal("100000.00")),
        ("R&D", 4, Decimal("475000.00")),
        ("Sales", 2, Decimal("185000.00")),
    ]
