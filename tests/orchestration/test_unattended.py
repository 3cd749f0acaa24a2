"""What happens at night, when only a sensor, a worker or conditions decide whether to refresh.

Each of these left a table wrong for good, or started runs for ever, while Dagster said that all was
well. A driver settles: each table equals its query, Dagster's last event is the table's last
version, and no further run starts.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from dagster_streamtables import (
    Mode,
    StreamTable,
    StreamTablesResource,
    stream_table_assets,
)
from dagster_streamtables.orchestration.automation.missing_events import is_unreported
from dagster_streamtables.orchestration.automation.tick import Cursor
from dagster_streamtables.orchestration.catalog import metadata
from orchestration.place import Deployment, hurry, reasons

PAID = StreamTable("paid", "SELECT id, amount FROM orders WHERE amount > 10", schedule="on change")
TOTALS = StreamTable(
    "totals", "SELECT count(*) AS n, sum(amount) AS total FROM paid", schedule="on change"
)
DRIVERS: dict[str, Callable[[Deployment], Any]] = {
    "sensor": Deployment.settle,
    "worker": Deployment.work,
}


@pytest.fixture(params=list(DRIVERS))
def settle(request: pytest.FixtureRequest) -> Callable[[Deployment], Any]:
    return DRIVERS[request.param]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def place(resource: StreamTablesResource, root: Path) -> Deployment:
    write(root, [(1, 5), (2, 20), (3, 30)])
    files = {each.name: each for each in (PAID, TOTALS)}
    return Deployment(resource, dg.DagsterInstance.ephemeral(), files)


def write(
    root: Path, rows: list[tuple[int, int]], name: str = "orders", mode: Any = "append"
) -> None:
    columns = {"id": [id for id, _ in rows], "amount": [amount for _, amount in rows]}
    write_deltalake(root / "public" / name, pa.table(columns), mode=mode)


def version(root: Path, name: str = "orders") -> int:
    return DeltaTable(root / "public" / name).version()


def rows(root: Path, name: str) -> list[dict[str, Any]]:
    found = DeltaTable(root / "public" / name).to_pyarrow_table().to_pylist()
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


def anew(root: Path, _: Deployment) -> None:
    shutil.rmtree(root / "public" / "orders")
    write(root, [(7, 70)])


def anew_with_more_versions(root: Path, place: Deployment) -> None:
    anew(root, place)
    write(root, [(8, 80)])


def replaced(root: Path, place: Deployment) -> None:
    spark = place.resource.session()
    path = root / "public" / "orders"
    shutil.rmtree(path)
    spark.sql(
        f"CREATE OR REPLACE TABLE delta.`{path}` USING delta AS "
        "SELECT CAST(9 AS BIGINT) AS id, CAST(90 AS BIGINT) AS amount"
    )


def restored_from_a_copy(root: Path, place: Deployment) -> None:
    """As many versions as before, of which the last is another one."""
    path, copy = root / "public" / "orders", root / "copy"
    shutil.copytree(path, copy)
    write(root, [(4, 40)])
    assert place.settle()
    shutil.rmtree(path)
    shutil.copytree(copy, path)
    write(root, [(5, 50)])


@pytest.mark.parametrize("change", [anew, anew_with_more_versions, replaced, restored_from_a_copy])
def test_a_source_of_the_same_number_is_another_one(
    change: Callable[[Path, Deployment], None],
    place: Deployment,
    root: Path,
    settle: Callable[[Deployment], Any],
) -> None:
    assert place.settle() == [{"paid", "totals"}]
    change(root, place)
    settle(place)
    assert is_at_rest(place)


def test_dagster_shows_a_source_of_the_same_number_as_another_one(
    place: Deployment, root: Path
) -> None:
    def observed() -> str:
        found = place.instance.get_latest_data_version_record(dg.AssetKey("orders"))
        assert found is not None
        event = found.event_log_entry.asset_observation
        assert event is not None
        return str((event.tags or {})["dagster/data_version"])

    place.settle()
    assert observed() == "0"
    anew(root, place)
    place.settle()
    assert observed().startswith("0 (")
    event = place.event("paid")
    assert event is not None
    assert (event.tags or {})["dagster/input_data_version/orders"] == observed()
    before = len(place.events("paid"))
    place.settle()
    assert len(place.events("paid")) == before


# 2. Definitions that the table stores.


def test_rows_of_another_definition_are_replaced(
    place: Deployment, settle: Callable[[Deployment], Any]
) -> None:
    """A refresh from an old checkout, or a run from before the deployment that ends after it."""
    place.settle()
    old = replace(PAID, query="SELECT id, amount FROM orders WHERE amount > 25")
    place.resource.lake().refresh(old)
    settle(place)
    assert is_at_rest(place)


def test_two_deployments_do_not_rebuild_a_table_for_ever(
    place: Deployment, resource: StreamTablesResource
) -> None:
    other = {**place.files, "paid": replace(PAID, query="SELECT id, amount FROM orders")}
    second = Deployment(resource, dg.DagsterInstance.ephemeral(), other)
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
    write(Path(place.resource.root), [(4, 40)])
    assert place.settle(), "the run loads the new file"
    assert "reload the code location" in reasons(place.tick())
    write(Path(place.resource.root), [(5, 50)])
    assert place.settle() == [{"paid", "totals"}], "its runs go on"
    assert list(place.complaints()) == []
    place.reload()
    assert is_at_rest(place)


# 3. Commits without an event.


@pytest.mark.smoke("a commit without its event")
def test_a_run_that_is_killed_after_its_commit_is_reported(
    place: Deployment, root: Path, settle: Callable[[Deployment], Any]
) -> None:
    place.settle()
    write(root, [(4, 40)])
    done = place.kill("paid")
    before = len(place.events("paid"))
    settle(place)
    assert is_at_rest(place)
    told = place.events("paid")[: len(place.events("paid")) - before]
    assert [each.metadata[metadata.VERSION].value for each in told] == [done]
    said = told[0].metadata
    assert (said[metadata.ACTION].value, said[metadata.INSERTED].value) == ("DIFFERENTIAL", 1)
    assert said[metadata.REASON].value == '1 changed row in "orders"'


def test_a_commit_of_a_table_on_demand_is_reported_after_its_run(
    place: Deployment, root: Path
) -> None:
    place.files["free"] = StreamTable("free", "SELECT id FROM orders")
    place.reload()
    place.settle()
    done = place.kill("free")
    place.settle()
    assert [e.metadata[metadata.VERSION].value for e in place.events("free")] == [done]


def test_two_daemons_report_a_commit_once(place: Deployment, root: Path) -> None:
    place.settle()
    write(root, [(4, 40)])
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


def test_an_event_log_that_was_wiped_is_filled_without_a_run(place: Deployment, root: Path) -> None:
    place.settle()
    place.instance.wipe_assets([dg.AssetKey(name) for name in place.files])
    place.cursor = None
    assert place.settle() == []
    assert is_at_rest(place)
    for name in place.files:
        event = place.instance.get_latest_materialization_event(dg.AssetKey(name))
        assert event is not None and event.asset_materialization is not None
        shown = event.asset_materialization.metadata["streamtables/last_changed"].value
        [last] = DeltaTable(str(root / "public" / name)).history(1)
        assert shown == pytest.approx(last["timestamp"] / 1000, abs=0.001)
        assert shown < event.timestamp


# 4. Blocking checks.


@pytest.fixture
def checked(place: Deployment) -> Deployment:
    place.verdicts["paid"] = True
    place.reload()
    place.settle()
    return place


def test_what_is_below_a_failed_blocking_check_waits(
    checked: Deployment, root: Path, settle: Callable[[Deployment], Any]
) -> None:
    assert not list(checked.complaints())
    before = rows(root, "totals")
    checked.verdicts["paid"] = False
    write(root, [(4, 40)])
    checked.settle()
    settle(checked)
    assert rows(root, "totals") == before
    assert len(rows(root, "paid")) == 3
    said = reasons(checked.tick())
    assert (
        "totals is due, but not refreshed: waits for a check: the blocking check is_sound" in said
    )
    assert "until it passes" in said

    checked.verdicts["paid"] = True
    write(root, [(5, 50)])
    checked.settle()
    settle(checked)
    assert is_at_rest(checked)


def test_a_check_that_is_run_again_and_passes_ends_the_waiting(
    checked: Deployment, root: Path
) -> None:
    checked.verdicts["paid"] = False
    write(root, [(4, 40)])
    checked.settle()
    key = dg.AssetCheckKey(dg.AssetKey("paid"), "is_sound")
    checked.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(asset_key=key.asset_key, check_name=key.name, passed=True)
    )
    assert checked.settle() == [{"totals"}]
    assert is_at_rest(checked)


def test_only_blocking_checks_join_the_runs(checked: Deployment, root: Path) -> None:
    write(root, [(4, 40)])
    [request] = checked.tick().run_requests or []
    assert [each.name for each in request.asset_check_keys or ()] == ["is_sound"]


# 5. Clocks.


def test_a_writer_whose_clock_is_ahead_is_read_at_once(place: Deployment, root: Path) -> None:
    place.settle()
    write(root, [(4, 40)])
    hurry(root / "public" / "orders", version(root))
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
    form: str, place: Deployment, settle: Callable[[Deployment], Any]
) -> None:
    place.settle()
    before = version(Path(place.resource.root), "totals")
    place.files["totals"] = replace(TOTALS, query=FORMS[form])
    place.reload()
    settle(place)
    assert version(Path(place.resource.root), "totals") == before
    assert is_at_rest(place)


@pytest.mark.parametrize("mode", [Mode.FULL, Mode.AUTO])
def test_a_mode_that_goes_there_and_back_rebuilds_nothing(
    mode: Mode, place: Deployment, root: Path, settle: Callable[[Deployment], Any]
) -> None:
    place.settle()
    before = version(root, "totals")
    for each in (mode, Mode.DIFFERENTIAL):
        place.files["totals"] = replace(TOTALS, mode=each)
        place.reload()
        settle(place)
        assert place.resource.lake().refresh(place.files["totals"]).action == "NO_DATA"
    assert version(root, "totals") == before
    write(root, [(4, 40)])
    settle(place)
    told = place.event("totals")
    assert told is not None
    assert told.metadata[metadata.ACTION].value == "DIFFERENTIAL"
    assert is_at_rest(place)


def test_a_new_column_of_a_source_is_in_a_star_after_a_change_of_mode(
    place: Deployment, root: Path
) -> None:
    place.files["paid"] = replace(PAID, query="SELECT * FROM orders WHERE amount > 10")
    place.files["few"] = StreamTable("few", "SELECT id FROM orders", schedule="on change")
    place.reload()
    place.settle()
    DeltaTable(root / "public" / "orders").alter.add_columns(
        [Field("note", PrimitiveType("string"))]
    )
    before = version(root, "few")
    for name in ("paid", "few"):
        place.files[name] = replace(place.files[name], mode=Mode.FULL)
    place.reload()
    place.settle()
    assert is_at_rest(place)
    assert "note" in rows(root, "paid")[0]
    assert version(root, "few") == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS N, sum(amount) AS total FROM paid",
        "SELECT count(*) AS n, sum(amount) AS total FROM paid WHERE id <> 1",
        "SELECT count(*) AS n, sum(amount + 0.0) AS total FROM paid",
    ],
)
def test_another_query_rebuilds(
    query: str, place: Deployment, settle: Callable[[Deployment], Any]
) -> None:
    place.settle()
    place.files["totals"] = replace(TOTALS, query=query)
    place.reload()
    settle(place)
    assert is_at_rest(place)
    told = place.event("totals")
    assert told is not None
    assert told.metadata[metadata.ACTION].value == "REINITIALIZE"


def test_somebody_elses_rows_are_replaced(
    place: Deployment, root: Path, settle: Callable[[Deployment], Any]
) -> None:
    place.settle()
    write(root, [(99, 99)], "paid")
    settle(place)
    assert is_at_rest(place)


def test_a_rearranged_table_is_looked_at_once(
    place: Deployment, root: Path, settle: Callable[[Deployment], Any]
) -> None:
    write(root, [(4, 40)])
    place.settle()
    for name in ("orders", "paid"):
        DeltaTable(root / "public" / name).optimize.compact()
    settle(place)
    assert is_at_rest(place)
    assert not is_unreported(place.stored("paid"), _history(place, "paid"))


def _history(place: Deployment, name: str) -> Any:
    from datetime import UTC, datetime, timedelta

    from dagster_streamtables.orchestration.instance.last_runs import read_history

    key = dg.AssetKey(name)
    hour = timedelta(hours=1)
    now = datetime.now(UTC)
    return read_history(place.instance, [key], requested={}, stuck_after=hour, now=now)[key]


# Several tables in one op.


def test_in_one_op_what_is_below_a_blocking_check_waits_for_it(
    resource: StreamTablesResource, root: Path
) -> None:
    write(root, [(2, 20)])

    @stream_table_assets(tables=[PAID, TOTALS], min_schedule_seconds=0)
    def both(context, streamtables: StreamTablesResource):  # Dagster reads the annotations
        yield from streamtables.refresh(context)

    verdict = {"passes": False}

    @dg.asset_check(asset=dg.AssetKey("paid"), blocking=True)
    def is_sound() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=verdict["passes"])

    resources = {"streamtables": resource}
    defs = dg.Definitions(assets=[both], asset_checks=[is_sound], resources=resources)
    job, instance = defs.resolve_implicit_global_asset_job_def(), dg.DagsterInstance.ephemeral()

    def made(*names: str, checks: bool = True) -> set[str]:
        keys = {dg.AssetKey(name) for name in names}
        chosen = {is_sound.check_key} if checks else set[dg.AssetCheckKey]()
        subset = job.get_subset(asset_selection=keys, asset_check_selection=chosen)
        done = subset.execute_in_process(instance=instance, raise_on_error=False)
        return {e.asset_key.to_user_string() for e in done.get_asset_materialization_events()}

    assert made("paid", "totals") == {"paid"}
    assert made("paid", "totals", checks=False) == {"paid", "totals"}
    verdict["passes"] = True
    assert made("paid", "totals") == {"paid"}, "the check is evaluated after the op"
    assert made("totals") == {"totals"}
