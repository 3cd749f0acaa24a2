"""What happens at night, when only a sensor, a worker or conditions decide whether to refresh.

Each of these left a table wrong for good, or started runs for ever, while Dagster said that all was
well. A driver settles: each table equals its query, Dagster's last event is the table's last
version, and no further run starts.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from dagster_streamtables import Mode, StreamTable, StreamTablesResource, stream_table_assets
from dagster_streamtables.orchestration.automation.sensor_events import has_no_event
from dagster_streamtables.orchestration.automation.tick import Cursor
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.instance.dagster_runs import read_history
from orchestration.conftest import Write
from orchestration.place import Deployment, hurry, reasons

PAID = StreamTable("paid", "SELECT id, amount FROM orders WHERE amount > 10", schedule="on change")
TOTALS = StreamTable(
    "totals", "SELECT count(*) AS n, sum(amount) AS total FROM paid", schedule="on change"
)
Settle = Callable[[Deployment], Any]
DRIVERS: dict[str, Settle] = {"sensor": Deployment.settle, "worker": Deployment.work}


@pytest.fixture(params=list(DRIVERS))
def settle(request: pytest.FixtureRequest) -> Settle:
    return DRIVERS[request.param]


@pytest.fixture
def place(resource: StreamTablesResource, instance: dg.DagsterInstance, write: Write) -> Deployment:
    write("orders", id=[1, 2, 3], amount=[5, 20, 30])
    files = {each.name: each for each in (PAID, TOTALS)}
    return Deployment(resource, instance, files)


def folder(place: Deployment, name: str = "orders") -> Path:
    return Path(place.lake.location(name))


def stored(place: Deployment, name: str = "orders") -> DeltaTable:
    return DeltaTable(folder(place, name))


def commit(place: Deployment, *rows: tuple[int, int], name: str = "orders") -> None:
    columns = {"id": [id for id, _ in rows], "amount": [amount for _, amount in rows]}
    write_deltalake(folder(place, name), pa.table(columns), mode="append")


def rows(place: Deployment, name: str) -> list[dict[str, Any]]:
    found = stored(place, name).to_pyarrow_table().to_pylist()
    return [{k: v for k, v in row.items() if not k.startswith("__st_")} for row in found]


def is_at_rest(place: Deployment) -> bool:
    """Whether all holds, and neither driver finds anything to do."""
    assert list(place.complaints()) == []
    told = {name: len(place.events(name)) for name in place.files}
    assert place.settle() == []
    place.work()
    assert {name: len(place.events(name)) for name in place.files} == told
    return True


# 1. Identities of commits.


def anew(place: Deployment) -> None:
    shutil.rmtree(folder(place))
    commit(place, (7, 70))


def anew_with_more_versions(place: Deployment) -> None:
    anew(place)
    commit(place, (8, 80))


def replaced(place: Deployment) -> None:
    shutil.rmtree(folder(place))
    place.resource.session().sql(
        f"CREATE OR REPLACE TABLE delta.`{folder(place)}` USING delta AS "
        "SELECT CAST(9 AS BIGINT) AS id, CAST(90 AS BIGINT) AS amount"
    )


def restored_from_a_copy(place: Deployment) -> None:
    """As many versions as before, of which the last is another one."""
    path, copy = folder(place), Path(place.resource.root) / "copy"
    shutil.copytree(path, copy)
    commit(place, (4, 40))
    assert place.settle()
    shutil.rmtree(path)
    shutil.copytree(copy, path)
    commit(place, (5, 50))


@pytest.mark.parametrize("change", [anew, anew_with_more_versions, replaced, restored_from_a_copy])
def test_a_source_of_the_same_number_is_another_one(
    change: Callable[[Deployment], None], place: Deployment, settle: Settle
) -> None:
    assert place.settle() == [{"paid", "totals"}]
    change(place)
    settle(place)
    assert is_at_rest(place)


def test_dagster_shows_a_source_of_the_same_number_as_another_one(place: Deployment) -> None:
    def observed() -> str:
        found = place.instance.get_latest_data_version_record(dg.AssetKey("orders"))
        assert found is not None
        event = found.event_log_entry.asset_observation
        assert event is not None
        return str((event.tags or {})["dagster/data_version"])

    place.settle()
    assert observed() == "0"
    anew(place)
    place.settle()
    assert observed().startswith("0 (")
    event = place.event("paid")
    assert event is not None
    assert (event.tags or {})["dagster/input_data_version/orders"] == observed()
    before = len(place.events("paid"))
    place.settle()
    assert len(place.events("paid")) == before


# 2. Definitions that the table stores.


def test_rows_of_another_definition_are_replaced(place: Deployment, settle: Settle) -> None:
    """A refresh from an old checkout, or a run from before the deployment that ends after it."""
    place.settle()
    old = replace(PAID, query="SELECT id, amount FROM orders WHERE amount > 25")
    place.resource.lake().refresh(old)
    settle(place)
    assert is_at_rest(place)


def test_two_deployments_do_not_rebuild_a_table_for_ever(place: Deployment) -> None:
    other = {**place.files, "paid": replace(PAID, query="SELECT id, amount FROM orders")}
    second = Deployment(place.resource, dg.DagsterInstance.ephemeral(), other)
    ran = [(len(place.settle()), len(second.settle())) for _ in range(6)]
    assert ran[-1] == (0, 0), ran
    told = reasons(place.tick()) + reasons(second.tick())
    assert "by another one again: stop the deployment" in told
    held = place if "by another one again" in reasons(place.tick()) else second
    held.reload()
    assert held.settle()
    assert not list(held.complaints())


def test_a_file_that_was_edited_since_the_location_was_loaded(place: Deployment) -> None:
    place.settle()
    place.files["paid"] = replace(PAID, query="SELECT id, amount FROM orders WHERE amount > 25")
    assert place.settle() == []
    commit(place, (4, 40))
    assert place.settle(), "the run loads the new file"
    assert "reload the code location" in reasons(place.tick())
    commit(place, (5, 50))
    assert place.settle() == [{"paid", "totals"}], "its runs go on"
    assert list(place.complaints()) == []
    place.reload()
    assert is_at_rest(place)


# 3. Commits without an event.


@pytest.mark.smoke("a commit without its event")
def test_a_run_that_is_killed_after_its_commit_is_reported(
    place: Deployment, settle: Settle
) -> None:
    place.settle()
    commit(place, (4, 40))
    done = place.kill("paid")
    before = len(place.events("paid"))
    settle(place)
    assert is_at_rest(place)
    told = place.events("paid")[: len(place.events("paid")) - before]
    assert [each.metadata[metadata.VERSION].value for each in told] == [done]
    said = told[0].metadata
    assert (said[metadata.ACTION].value, said[metadata.INSERTED].value) == ("DIFFERENTIAL", 1)
    assert said[metadata.REASON].value == '1 changed row in "orders"'


def test_a_commit_of_a_table_on_demand_is_reported_after_its_run(place: Deployment) -> None:
    place.files["free"] = StreamTable("free", "SELECT id FROM orders")
    place.reload()
    place.settle()
    done = place.kill("free")
    place.settle()
    assert [e.metadata[metadata.VERSION].value for e in place.events("free")] == [done]


def test_two_daemons_report_a_commit_once(place: Deployment) -> None:
    place.settle()
    commit(place, (4, 40))
    place.kill("paid")
    place.kill("totals")
    two = [place.ask(), place.ask()]
    told = [
        event.asset_key.to_user_string()
        for result in two
        for event in result.asset_events
        if isinstance(event, dg.AssetMaterialization)
    ]
    assert sorted(told) == ["paid", "totals"]


def test_an_event_log_that_was_wiped_is_filled_without_a_run(place: Deployment) -> None:
    place.settle()
    place.instance.wipe_assets([dg.AssetKey(name) for name in place.files])
    place.cursor = None
    assert place.settle() == []
    assert is_at_rest(place)
    for name in place.files:
        event = place.instance.get_latest_materialization_event(dg.AssetKey(name))
        assert event is not None and event.asset_materialization is not None
        shown = event.asset_materialization.metadata["streamtables/last_changed"].value
        [last] = stored(place, name).history(1)
        assert shown == pytest.approx(last["timestamp"] / 1000, abs=0.001)
        assert shown < event.timestamp


# 4. Blocking checks.


@pytest.fixture
def checked(place: Deployment) -> Deployment:
    place.verdicts["paid"] = True
    place.reload()
    place.settle()
    return place


def test_what_is_below_a_failed_blocking_check_waits(checked: Deployment, settle: Settle) -> None:
    assert not list(checked.complaints())
    before = rows(checked, "totals")
    checked.verdicts["paid"] = False
    commit(checked, (4, 40))
    checked.settle()
    settle(checked)
    assert rows(checked, "totals") == before
    assert len(rows(checked, "paid")) == 3
    said = reasons(checked.tick())
    assert (
        "totals is due, but not refreshed: waits for a check: the blocking check is_sound" in said
    )
    assert "until it passes" in said

    checked.verdicts["paid"] = True
    commit(checked, (5, 50))
    checked.settle()
    settle(checked)
    assert is_at_rest(checked)


def test_a_check_that_is_run_again_and_passes_ends_the_waiting(checked: Deployment) -> None:
    checked.verdicts["paid"] = False
    commit(checked, (4, 40))
    checked.settle()
    key = dg.AssetCheckKey(dg.AssetKey("paid"), "is_sound")
    checked.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(asset_key=key.asset_key, check_name=key.name, passed=True)
    )
    assert checked.settle() == [{"totals"}]
    assert is_at_rest(checked)


def test_only_blocking_checks_join_the_runs(checked: Deployment) -> None:
    commit(checked, (4, 40))
    [request] = checked.tick().run_requests or []
    assert [each.name for each in request.asset_check_keys or ()] == ["is_sound"]


# 5. Clocks.


def test_a_writer_whose_clock_is_ahead_is_read_at_once(place: Deployment) -> None:
    place.settle()
    commit(place, (4, 40))
    hurry(folder(place), stored(place).version())
    assert place.settle() == [{"paid", "totals"}]
    assert is_at_rest(place)


# 7. Cursors.


@pytest.mark.parametrize(
    "cursor", ["0", "[]", "yesterday", '{"later": 1}', '{"sources": 3}', "null"]
)
def test_a_cursor_that_cannot_be_read_is_an_empty_one(cursor: str, place: Deployment) -> None:
    assert Cursor.read(cursor) == Cursor()
    place.settle()
    place.cursor = cursor
    assert is_at_rest(place)


# 9. Forms.


FORMS = {
    "case of functions": "SELECT COUNT(*) AS n, SUM(amount) AS total FROM paid",
    "without AS": "SELECT count(*) n, sum(amount) total FROM paid",
    "quoted names": "SELECT count(*) AS `n`, sum(`amount`) AS total FROM `paid`",
    "a formatter": "select\n  count(*) as n,\n  -- all of it\n  sum(amount) as total\nfrom paid\n",
}


@pytest.mark.parametrize("form", list(FORMS))
def test_another_form_of_a_query_rebuilds_nothing(
    form: str, place: Deployment, settle: Settle
) -> None:
    place.settle()
    before = stored(place, "totals").version()
    place.files["totals"] = replace(TOTALS, query=FORMS[form])
    place.reload()
    settle(place)
    assert stored(place, "totals").version() == before
    assert is_at_rest(place)


@pytest.mark.parametrize("mode", [Mode.FULL, Mode.AUTO])
def test_a_mode_that_goes_there_and_back_rebuilds_nothing(
    mode: Mode, place: Deployment, settle: Settle
) -> None:
    place.settle()
    before = stored(place, "totals").version()
    for each in (mode, Mode.DIFFERENTIAL):
        place.files["totals"] = replace(TOTALS, mode=each)
        place.reload()
        settle(place)
        assert place.resource.lake().refresh(place.files["totals"]).action == "NO_DATA"
    assert stored(place, "totals").version() == before
    commit(place, (4, 40))
    settle(place)
    assert place.said("totals", metadata.ACTION) == "DIFFERENTIAL"
    assert is_at_rest(place)


def test_a_new_column_of_a_source_is_in_a_star_after_a_change_of_mode(place: Deployment) -> None:
    place.files["paid"] = replace(PAID, query="SELECT * FROM orders WHERE amount > 10")
    place.files["few"] = StreamTable("few", "SELECT id FROM orders", schedule="on change")
    place.reload()
    place.settle()
    stored(place).alter.add_columns([Field("note", PrimitiveType("string"))])
    before = stored(place, "few").version()
    for name in ("paid", "few"):
        place.files[name] = replace(place.files[name], mode=Mode.FULL)
    place.reload()
    place.settle()
    assert is_at_rest(place)
    assert "note" in rows(place, "paid")[0]
    assert stored(place, "few").version() == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS N, sum(amount) AS total FROM paid",
        "SELECT count(*) AS n, sum(amount) AS total FROM paid WHERE id <> 1",
        "SELECT count(*) AS n, sum(amount + 0.0) AS total FROM paid",
    ],
)
def test_another_query_rebuilds(query: str, place: Deployment, settle: Settle) -> None:
    place.settle()
    place.files["totals"] = replace(TOTALS, query=query)
    place.reload()
    settle(place)
    assert is_at_rest(place)
    assert place.said("totals", metadata.ACTION) == "REINITIALIZE"


def test_somebody_elses_rows_are_replaced(place: Deployment, settle: Settle) -> None:
    place.settle()
    commit(place, (99, 99), name="paid")
    settle(place)
    assert is_at_rest(place)


def test_a_rearranged_table_is_looked_at_once(place: Deployment, settle: Settle) -> None:
    commit(place, (4, 40))
    place.settle()
    for name in ("orders", "paid"):
        stored(place, name).optimize.compact()
    settle(place)
    assert is_at_rest(place)
    key, hour, now = dg.AssetKey("paid"), timedelta(hours=1), datetime.now(UTC)
    past = read_history(place.instance, [key], requested={}, stuck_after=hour, now=now)
    assert not has_no_event(place.stored("paid"), past[key])


# Several tables in one op.


def test_in_one_op_what_is_below_a_blocking_check_waits_for_it(place: Deployment) -> None:
    @stream_table_assets(tables=[PAID, TOTALS], min_schedule_seconds=0)
    def both(context, streamtables: StreamTablesResource):  # Dagster reads the annotations
        yield from streamtables.refresh(context)

    place.verdicts["paid"] = False
    is_sound = place.check("paid")
    resources = {"streamtables": place.resource}
    defs = dg.Definitions(assets=[both], asset_checks=[is_sound], resources=resources)
    job = defs.resolve_implicit_global_asset_job_def()

    def made(*names: str, checks: bool = True) -> set[str]:
        keys = {dg.AssetKey(name) for name in names}
        chosen = {is_sound.check_key} if checks else set[dg.AssetCheckKey]()
        subset = job.get_subset(asset_selection=keys, asset_check_selection=chosen)
        done = subset.execute_in_process(instance=place.instance, raise_on_error=False)
        return {e.asset_key.to_user_string() for e in done.get_asset_materialization_events()}

    assert made("paid", "totals") == {"paid"}
    assert made("paid", "totals", checks=False) == {"paid", "totals"}
    place.verdicts["paid"] = True
    assert made("paid", "totals") == {"paid"}, "the check is evaluated after the op"
    assert made("totals") == {"totals"}
