"""The equality check, on tables that are right, wrong, and not there."""

from __future__ import annotations

import dagster as dg
import pytest
from deltalake import DeltaTable

from dagster_streamtables import CheckSettings, StreamTablesResource, build_stream_table_assets
from dagster_streamtables.checks import build_check_schedule, build_table_checks
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.checks.table_checks import EQUALITY
from dagster_streamtables.runtime.model.stream_table import StreamTable
from orchestration.conftest import Write

TABLES = [
    StreamTable("paid", "SELECT id, amount FROM orders WHERE amount > 10"),
    StreamTable("never", "SELECT id FROM orders"),
]
WHOLE = CheckSettings(sample=None)
PAID, NEVER = dg.AssetKey("paid"), dg.AssetKey("never")


def run(
    resource: StreamTablesResource, kind: str, selection: dg.AssetSelection | None = None
) -> dict[dg.AssetKey, dg.AssetCheckEvaluation]:
    """A run over the tables and their checks of a kind, or over all of these."""
    checks = build_table_checks(tables=TABLES, kinds=[kind], settings=WHOLE)
    result = dg.materialize(
        [*build_stream_table_assets(tables=TABLES), *checks],
        selection=selection or dg.AssetSelection.all_asset_checks(),
        resources={"streamtables": resource},
    )
    return {e.asset_key: e for e in result.get_asset_check_evaluations()}


@pytest.mark.smoke("the check of equality")
def test_a_difference_fails_the_check_with_its_rows(
    resource: StreamTablesResource, write: Write
) -> None:
    write("orders", id=[1, 2, 3], amount=[10, 20, 30])
    only_paid = dg.AssetSelection.assets(PAID).without_checks()
    assert run(resource, "equality", only_paid) == {}
    found = run(resource, "equality")
    assert (found[PAID].passed, found[NEVER].passed) == (True, False)
    assert found[PAID].check_name == EQUALITY.name
    assert "never been refreshed" in (found[NEVER].description or "")
    assert found[PAID].metadata[metadata.FRONTIER].value == {"orders": 0}

    DeltaTable(resource.lake().location("paid")).delete("id = 2")
    of_paid = dg.AssetSelection.checks(dg.AssetCheckKey(PAID, EQUALITY.name))
    found = run(resource, "equality", of_paid)
    assert set(found) == {PAID}
    assert not found[PAID].passed
    assert found[PAID].severity is dg.AssetCheckSeverity.ERROR
    assert found[PAID].metadata[metadata.MISSING].value == 1
    sample = found[PAID].metadata[metadata.SAMPLE]
    assert isinstance(sample, dg.TableMetadataValue)
    assert sample.schema.columns[0].name == "__difference"
    [record] = sample.records
    assert (record.data["__difference"], record.data["id"]) == ("missing", 2)


def test_the_checks_have_a_schedule_of_their_own() -> None:
    schedule = build_check_schedule(
        EQUALITY.name, "0 4 * * *", tables=TABLES, timezone="Europe/Berlin"
    )
    defs = dg.Definitions(
        assets=build_stream_table_assets(tables=TABLES),
        asset_checks=build_table_checks(tables=TABLES, kinds=["equality"]),
        schedules=[schedule],
        resources={"streamtables": StreamTablesResource(root="lake")},
    )
    job = defs.resolve_job_def(schedule.job_name)
    assert [node.name for node in job.graph.nodes] == ["streamtables_equality"]
    assert schedule.execution_timezone == "Europe/Berlin"


def test_history_that_a_source_need_not_keep_fails_the_check(
    resource: StreamTablesResource, write: Write
) -> None:
    write("orders", id=[1, 2, 3], amount=[10, 20, 30])
    resource.lake().refresh(TABLES[0])

    assert all(found.passed for found in run(resource, "retention").values())
    orders = DeltaTable(resource.lake().location("orders"))
    orders.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 30 hours"})
    orders.delete("id = 2")
    found = run(resource, "retention")
    assert found[NEVER].passed
    assert not found[PAID].passed
    assert found[PAID].severity is dg.AssetCheckSeverity.WARN
    assert "need not keep version 0 for more than 1 d" in (found[PAID].description or "")
    history = found[PAID].metadata[metadata.HISTORY]
    assert isinstance(history, dg.TableMetadataValue)
    assert history.records[0].data["hours left"] == "30.0"
