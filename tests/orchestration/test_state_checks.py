"""The checks of state, columns and age, on tables that are right, wrong, late, and not there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import CheckSettings, StreamTablesResource, build_stream_table_assets
from dagster_streamtables.catalog import Catalog, build_catalog
from dagster_streamtables.errors import FailedQuery, SuspendedTable
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.checks import table_checks
from dagster_streamtables.orchestration.checks.check_kind import check_schedules
from dagster_streamtables.orchestration.checks.table_checks import build_table_checks
from dagster_streamtables.runtime.model.stream_table import StreamTable
from orchestration.conftest import Write

STATE, SCHEMA = table_checks.STATE.name, table_checks.COLUMNS.name
FRESHNESS, EQUALITY = table_checks.FRESHNESS.name, table_checks.EQUALITY.name
ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN
TOTALS = StreamTable(
    "totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer", schedule="10s"
)
DEMAND = StreamTable("demand", "SELECT * FROM orders")
NEVER = StreamTable("never", "SELECT customer FROM orders")
TABLES = [TOTALS, DEMAND, NEVER]
"""The second has a schedule from nobody."""


def schedules_of(catalog: Catalog, settings: CheckSettings) -> list[dg.ScheduleDefinition]:
    keys, of = [entry.key for entry in catalog.sound], "stream table"
    return [*check_schedules(table_checks.KINDS, keys, of, settings, None, "streamtables")]


class Checked:
    """The checks of the tables, run as a schedule runs them."""

    def __init__(self, resource: StreamTablesResource, settings: CheckSettings) -> None:
        self.resource = resource
        self.catalog = build_catalog(TABLES, min_schedule_seconds=1)
        self.checks = build_table_checks(tables=self.catalog, settings=settings)

    def run(self, check_name: str) -> dict[str, dg.AssetCheckEvaluation]:
        keys = [dg.AssetCheckKey(entry.key, check_name) for entry in self.catalog.sound]
        result = dg.materialize(
            [*build_stream_table_assets(tables=self.catalog), *self.checks],
            selection=dg.AssetSelection.checks(*keys),
            resources={"streamtables": self.resource},
        )
        found = result.get_asset_check_evaluations()
        assert {each.check_name for each in found} == {check_name}
        return {each.asset_key.to_user_string(): each for each in found}


def passed(found: Mapping[str, dg.AssetCheckEvaluation | dg.AssetCheckResult]) -> dict[str, bool]:
    return {name: each.passed for name, each in found.items()}


def rows(found: dg.AssetCheckEvaluation, key: str) -> list[dict[str, object]]:
    table = found.metadata[key]
    assert isinstance(table, dg.TableMetadataValue)
    return [dict(record.data) for record in table.records]


@pytest.fixture
def checked(resource: StreamTablesResource, write: Write) -> Checked:
    write("orders", customer=[1, 1, 2], amount=[10, 20, 30])
    for table in (TOTALS, DEMAND):
        resource.lake().refresh(table)
    return Checked(resource, CheckSettings(sample=0.5, grace=timedelta(seconds=5)))


def test_damage_fails_the_check_of_the_state_with_its_rows(checked: Checked) -> None:
    found = checked.run(STATE)
    assert passed(found) == {"totals": True, "demand": True, "never": False}
    assert found["totals"].description == "The stored state is consistent."
    assert "never been refreshed" in (found["never"].description or "")
    totals = DeltaTable(checked.resource.lake().location("totals"))
    totals.update(updates={"__st_n": "-1"}, predicate="customer = 2")
    damaged = checked.run(STATE)["totals"]
    assert (damaged.passed, damaged.severity) == (False, ERROR)
    assert "the number of its rows, is 1 or more (1 of them)" in (damaged.description or "")
    [row] = rows(damaged, metadata.SAMPLE)
    assert (row["customer"], row["__st_n"]) == (2, -1)
    assert damaged.metadata[metadata.VIOLATIONS].value == 3


def test_columns_that_came_and_changed_fail_the_check_of_the_columns(checked: Checked) -> None:
    assert passed(checked.run(SCHEMA)) == {"totals": True, "demand": True, "never": False}
    write_deltalake(
        checked.resource.lake().location("orders"),
        pa.table({"customer": [3], "amount": [1], "note": ["x"]}),
        mode="append",
        schema_mode="merge",
    )
    found = checked.run(SCHEMA)
    assert passed(found) == {"totals": True, "demand": False, "never": False}
    assert found["demand"].severity is WARN
    assert found["demand"].description == (
        "demand.note (string) is new. The next refresh reinitializes the table."
    )
    [row] = rows(found["demand"], metadata.DRIFT)
    assert (row["column"], row["is"], row["now"]) == ("note", "new", "string")

    write_deltalake(
        checked.resource.lake().location("orders"),
        pa.table({"customer": [3]}),
        mode="overwrite",
        schema_mode="overwrite",
    )
    found = checked.run(SCHEMA)["totals"]
    assert (found.passed, found.severity) == (False, ERROR)
    assert "amount" in (found.description or "")


def test_a_table_is_late_when_what_it_lacks_is_older_than_its_schedule(
    checked: Checked, write: Write
) -> None:
    def at(seconds: float) -> dict[str, dg.AssetCheckResult]:
        lake, settings = checked.resource.logs(), CheckSettings(grace=timedelta(seconds=5))
        now = came + timedelta(seconds=seconds)
        return {
            entry.name: table_checks.FRESHNESS.result(lake, entry, settings, now)
            for entry in checked.catalog.sound
        }

    came = datetime.now(UTC)
    # However old a table is, without news it is fresh.
    found = at(10_000)
    assert passed(found) == {"totals": True, "demand": True, "never": False}
    assert found["totals"].metadata[metadata.BEHIND].value == 0

    write("orders", customer=[7], amount=[1])
    came = datetime.now(UTC)
    # The schedule is 10 s, and the grace 5 s; beyond another 10 s it is an error.
    assert at(12)["totals"].passed
    found = at(18)
    assert passed(found) == {"totals": False, "demand": True, "never": False}
    assert found["totals"].severity is WARN
    assert "it reflects version 0 of orders, which is at 1" in (found["totals"].description or "")
    assert "only on demand" in (found["demand"].description or "")
    behind = found["totals"].metadata[metadata.BEHIND].value
    assert isinstance(behind, float) and 17 < behind < 20
    assert at(28)["totals"].severity is ERROR
    checked.resource.lake().refresh(TOTALS)
    assert at(28)["totals"].passed


@pytest.mark.spark
def test_a_refresh_that_failed_is_an_error_while_there_is_something_to_refresh(
    checked: Checked, write: Write
) -> None:
    def found(name: str) -> tuple[bool, object, str]:
        told = checked.run(FRESHNESS)[name]
        return told.passed, told.metadata[metadata.LATE].value, told.description or ""

    lake = checked.resource.lake()
    lake.controls.suspend("totals", "for a while")
    with pytest.raises(SuspendedTable):
        lake.refresh(TOTALS)
    assert found("totals") == (True, False, "The table reflects all changes of its sources.")
    lake.controls.resume("totals")

    def fail(table: StreamTable, error: str) -> None:
        with pytest.raises(FailedQuery), lake.controls.watching(table):
            raise FailedQuery("the query fails", why=error)

    fail(TOTALS, "an overflow")
    assert found("totals")[0], "nothing is to be refreshed"
    write("orders", customer=[7], amount=[1])
    passed, late, said = found("totals")
    assert (passed, late) == (False, False)
    assert said.startswith("The last refresh failed at 2") and said.endswith(": an overflow")
    assert checked.run(FRESHNESS)["totals"].severity is ERROR
    for _ in range(2):
        fail(TOTALS, "an overflow")
    assert "because it failed 3 times in a row" in found("totals")[2]
    lake.controls.resume("totals")
    lake.refresh(TOTALS)
    assert found("totals")[0]
    fail(NEVER, "a division by zero")
    assert found("never")[2].endswith("a division by zero")


@pytest.mark.long
def test_the_equality_check_says_which_part_it_compared(checked: Checked, write: Write) -> None:
    count = 5_000
    write("orders", customer=list(range(count)), amount=[1] * count)
    checked.resource.lake().refresh(TOTALS)
    found = checked.run(EQUALITY)["totals"]
    assert found.passed
    assert found.metadata[metadata.PART].value == 0.5
    seed = found.metadata[metadata.SEED].value
    assert f"a sample of 50% of the rows, by customer, seed {seed}" in (found.description or "")
    assert checked.run(EQUALITY)["totals"].metadata[metadata.SEED].value != seed


def test_each_kind_of_check_has_a_schedule_or_none() -> None:
    catalog = build_catalog(TABLES, min_schedule_seconds=1)
    settings = CheckSettings(
        equality=None, state="5 4 * * *", retention="0 * * * *", timezone="Europe/Berlin"
    )
    schedules = {s.name: s for s in schedules_of(catalog, settings)}
    assert sorted(schedules) == [
        f"streamtables_{kind}_schedule" for kind in ("columns", "retention", "state")
    ]
    state = schedules["streamtables_state_schedule"]
    assert (state.cron_schedule, state.execution_timezone) == ("5 4 * * *", "Europe/Berlin")
    assert state.default_status is dg.DefaultScheduleStatus.RUNNING
    empty = build_catalog([])
    assert schedules_of(empty, settings) == []
    assert build_table_checks(tables=empty, settings=settings) == []


def test_the_job_of_a_schedule_runs_its_checks_and_nothing_else(logs: StreamTablesResource) -> None:
    catalog = build_catalog(TABLES, min_schedule_seconds=1)
    settings = CheckSettings()
    defs = dg.Definitions(
        assets=build_stream_table_assets(tables=catalog),
        asset_checks=build_table_checks(tables=catalog, settings=settings),
        schedules=schedules_of(catalog, settings),
        resources={"streamtables": logs},
    )
    job = defs.resolve_job_def("streamtables_state_check")
    assert [node.name for node in job.graph.nodes] == ["streamtables_state"]
