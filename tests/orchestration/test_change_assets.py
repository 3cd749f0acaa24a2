"""Assets that receive what changed: what a run gets, when its slot moves, and what starts it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from deltalake import DeltaTable

from dagster_streamtables import (
    Changes,
    InvalidDefinition,
    Lake,
    SensorSettings,
    StreamTablesResource,
    StreamTablesTranslator,
    Upsert,
    View,
    build_change_sensor,
    build_definitions,
    build_history_pinned_checks,
    build_slot_lag_checks,
    change_asset,
    declare,
)
from dagster_streamtables.orchestration.changes.change_sensor import evaluate
from dagster_streamtables.orchestration.changes.feed_metadata import follows_of

Write = Callable[..., None]
Given = list[tuple[int, int, str]]
"""What functions received: diff, key, value."""


class Index(dg.ConfigurableResource[Any]):
    name: str


class Options(dg.Config):
    limit: int = 3


@pytest.fixture
def items(write: Write) -> Write:
    """Adds rows to a table that has two at first."""
    write("items", id=[1, 2], v=["a", "b"])
    return lambda **columns: write("items", **columns)


@pytest.fixture
def instance() -> Any:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def collecting(found: Given, **more: Any) -> dg.AssetsDefinition:
    """An asset that notes the changes of items."""

    @change_asset(relation="items", order_by="id", **more)
    def notes(changes: Changes) -> None:
        found.extend((r["_diff"], r["id"], r["v"]) for r in changes.rows.to_pylist())

    return notes


def run(
    asset: dg.AssetsDefinition,
    logs: StreamTablesResource,
    instance: dg.DagsterInstance,
    **more: Any,
) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [asset], instance=instance, resources={"streamtables": logs}, raise_on_error=False, **more
    )


def metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [event] = result.get_asset_materialization_events()
    return {key: each.value for key, each in event.materialization.metadata.items()}


def lake_of(logs: StreamTablesResource) -> Lake:
    return logs.logs()


def test_a_run_receives_the_rows_and_later_ones_what_changed_since(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    found: Given = []
    notes = collecting(found)

    first = metadata(run(notes, logs, instance))
    assert found == [(1, 1, "a"), (1, 2, "b")]
    assert first["streamtables/snapshot"] is True
    assert first["streamtables/inserted"] == 2

    found.clear()
    items(id=[3], v=["c"])
    DeltaTable(lake_of(logs).location("items")).update({"v": "'A'"}, predicate="id = 1")
    second = metadata(run(notes, logs, instance))

    assert found == [(1, 3, "c"), (1, 1, "A"), (-1, 1, "a")]
    assert (second["streamtables/from_timestamp"], second["streamtables/to_timestamp"]) == (0, 2)
    assert (second["streamtables/inserted"], second["streamtables/deleted"]) == (2, 1)
    assert second["streamtables/snapshot"] is False
    assert second["streamtables/versions_behind"] == 0
    assert second["streamtables/seconds_behind"] == 0
    assert not any("token" in key for key in second)


def test_a_failing_function_leaves_the_slot_where_it_is(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    found: Given = []
    broken = True

    @change_asset(relation="items", order_by="id", retry_policy=None)
    def notes(context: dg.AssetExecutionContext, changes: Changes) -> None:
        found.extend((r["_diff"], r["id"], r["v"]) for r in changes.rows.to_pylist())
        if broken:
            raise RuntimeError("the index is down")

    assert not run(notes, logs, instance).success
    assert found == [(1, 1, "a"), (1, 2, "b")]

    broken = False
    found.clear()
    items(id=[3], v=["c"])
    assert run(notes, logs, instance).success
    assert found == [(1, 1, "a"), (1, 2, "b"), (1, 3, "c")]


def test_without_changes_the_function_is_not_called_and_the_data_version_stays(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    calls: list[int] = []

    @change_asset(relation="items")
    def notes(changes: Changes) -> dict[str, Any]:
        calls.append(len(changes))
        return {"seen": len(changes)}

    first, second = run(notes, logs, instance), run(notes, logs, instance)
    events = [each.get_asset_materialization_events()[0] for each in (first, second)]
    versions = [(e.materialization.tags or {})["dagster/data_version"] for e in events]

    assert calls == [2]
    assert metadata(second)["streamtables/action"] == "NO_DATA"
    assert versions == ["0", "0"]

    DeltaTable(lake_of(logs).location("items")).optimize.compact()
    items(id=[3], v=["c"])
    assert metadata(run(notes, logs, instance))["seen"] == 1


def test_a_crash_between_the_sink_and_the_slot_gives_nothing_twice(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    base = sqlite3.connect(tmp_path / "sink.db")
    base.executescript("CREATE TABLE log (id, v); CREATE TABLE position (token)")
    crash = True

    def stored_token() -> str | None:
        row = base.execute("SELECT token FROM position").fetchone()
        return None if row is None else row[0]

    @change_asset(relation="items", stored_token=stored_token, retry_policy=None)
    def sink(changes: Changes) -> None:
        with base:
            for row in changes.rows.to_pylist():
                base.execute("INSERT INTO log VALUES (?, ?)", (row["id"], row["v"]))
            base.execute("DELETE FROM position")
            base.execute("INSERT INTO position VALUES (?)", (changes.token,))
        if crash:
            raise SystemError("the process was killed")

    assert not run(sink, logs, instance).success
    crash = False
    assert metadata(run(sink, logs, instance))["streamtables/rows_in"] == 0

    crash = True
    items(id=[3], v=["c"])
    assert not run(sink, logs, instance).success
    crash = False
    items(id=[4], v=["d"])
    assert metadata(run(sink, logs, instance))["streamtables/from_timestamp"] == 1
    assert sorted(base.execute("SELECT id FROM log")) == [(1,), (2,), (3,), (4,)]


def test_a_sink_behind_its_slot_is_told_so(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    tokens: list[str] = []

    @change_asset(relation="items", stored_token=lambda: tokens[0] if tokens else None)
    def sink(changes: Changes) -> None:
        tokens.append(changes.token)

    run(sink, logs, instance)
    items(id=[3], v=["x"])
    run(sink, logs, instance)
    result = run(sink, logs, instance)

    assert not result.success
    [failure] = result.get_step_failure_events()
    assert "the sink is behind its slot" in str(failure.event_specific_data)


def test_max_rows_bounds_a_run_and_splits_no_timestamp(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    found: Given = []
    notes = collecting(found, max_rows=2)
    sizes = []
    for _ in range(4):
        found.clear()
        run(notes, logs, instance)
        items(id=[6, 7, 8], v=["d", "d", "d"])
        items(id=[9], v=["e"])
        sizes.append([each for _, each, _ in found])

    # The snapshot is one timestamp. Then come versions of three rows, one, and three.
    assert sizes == [[1, 2], [6, 7, 8], [9, 6, 7, 8], [9, 6, 7, 8]]


def test_an_envelope_gives_states(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    rows: list[dict[str, Any]] = []

    @change_asset(relation="items", envelope=Upsert("id"), name="index", key_prefix="search")
    def anything(changes: Changes) -> None:
        rows.extend(changes.rows.to_pylist())

    run(anything, logs, instance)
    DeltaTable(lake_of(logs).location("items")).delete("id = 1")
    told = metadata(run(anything, logs, instance))

    assert rows[-1] == {"_timestamp": 1, "_state": "delete", "id": 1, "v": None}
    assert told["streamtables/rows/delete"] == 1
    assert lake_of(logs).slots.names() == ["search__index"]
    assert anything.key == dg.AssetKey(["search", "index"])


def test_batches_can_be_read_again_and_one_at_a_time(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    read: list[int] = []

    @change_asset(relation="items")
    def notes(changes: Changes) -> None:
        for _ in range(2):
            read.extend(batch.num_rows for batch in changes.batches())
        for one, other in zip(changes.batches(), changes.batches(), strict=True):
            assert one == other

    items(id=[3], v=["c"])
    assert run(notes, logs, instance).success
    assert sum(read) == 2 * 3


def test_the_asset_depends_on_the_tables_that_its_query_reads() -> None:
    @change_asset(
        relation="SELECT o.id FROM sales.orders o JOIN sales.customers c ON o.customer = c.id",
        source_keys={"sales.customers": dg.AssetKey("people")},
    )
    def both(changes: Changes) -> None: ...

    assert set(both.asset_deps[both.key]) == {
        dg.AssetKey(["sales", "orders"]),
        dg.AssetKey("people"),
    }


def test_a_function_may_have_resources_and_config(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    told: list[Any] = []

    @change_asset(relation="items")
    def sink(
        changes: Changes, index: Index, config: Options, streamtables: StreamTablesResource
    ) -> dg.MaterializeResult[Any]:
        told.append((index.name, config.limit, len(changes), streamtables.root == logs.root))
        return dg.MaterializeResult(data_version=dg.DataVersion("mine"))

    resources = {"streamtables": logs, "index": Index(name="people")}
    result = dg.materialize([sink], instance=instance, resources=resources)
    [event] = result.get_asset_materialization_events()
    assert told == [("people", 3, 2, True)]
    assert (event.materialization.tags or {})["dagster/data_version"] == "mine"


def test_an_unknown_type_of_a_parameter_is_named() -> None:
    with pytest.raises(InvalidDefinition, match='parameter "index" is not known: Nowhere'):

        @change_asset(relation="items")
        def sink(changes: Changes, index: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def test_a_function_without_changes_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match='asset "sink" takes no changes'):

        @change_asset(relation="items")
        def sink(context: dg.AssetExecutionContext) -> None: ...


def test_a_function_that_returns_rows_is_refused(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    @change_asset(relation="items")
    def sink(changes: Changes) -> Any:
        return changes.rows

    result = run(sink, logs, instance)
    assert "returned a value of the type Table" in str(result.get_step_failure_events())


def remove_history(logs: StreamTablesResource) -> None:
    """Delete rows, and what a slot before that needs, as a foreign VACUUM does."""
    table = DeltaTable(lake_of(logs).location("items"))
    table.delete("id = 1")
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


@pytest.mark.parametrize("choice", ["error", "resnapshot"])
def test_lost_history_fails_or_begins_again_by_choice(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance, choice: Any
) -> None:
    found: Given = []
    notes = collecting(found, on_history_lost=choice)
    run(notes, logs, instance)
    found.clear()
    remove_history(logs)
    result = run(notes, logs, instance)

    assert result.success == (choice == "resnapshot")
    assert found == ([(1, 2, "b")] if result.success else [])
    if result.success:
        assert metadata(result)["streamtables/snapshot"] is True


def tick(
    asset: dg.AssetsDefinition,
    logs: StreamTablesResource,
    instance: dg.DagsterInstance,
    now: datetime | None = None,
) -> list[dg.AssetKey] | str:
    """What a tick starts, or why it starts nothing."""
    found = evaluate(
        follows_of([asset]),
        instance,
        lake_of(logs),
        SensorSettings(name="streamtables_changes"),
        now=now or datetime.now(UTC),
    )
    keys = [key for each in found.run_requests or () for key in each.asset_selection or ()]
    assert found.skip_reason is not None or keys
    return keys or str(getattr(found.skip_reason, "skip_message", ""))


def test_the_sensor_starts_an_asset_when_rows_changed(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    notes = collecting([])
    table = DeltaTable(lake_of(logs).location("items"))

    assert tick(notes, logs, instance) == [notes.key]
    run(notes, logs, instance)
    assert tick(notes, logs, instance) == "Nothing changed for notes."
    items(id=[3], v=["c"])
    assert tick(notes, logs, instance) == [notes.key]
    run(notes, logs, instance)
    table.update_incremental()
    assert table.optimize.compact()["numFilesRemoved"] == 2
    assert tick(notes, logs, instance) == "Nothing changed for notes."


def test_the_sensor_waits_for_a_table_a_run_and_a_failure(
    write: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    @change_asset(relation="items", retry_policy=None)
    def notes(changes: Changes) -> None:
        raise RuntimeError("the index is down")

    assert "items does not exist yet" in tick(notes, logs, instance)
    write("items", id=[1], v=["a"])
    assert tick(notes, logs, instance) == [notes.key]
    job = dg.Definitions(
        [notes], resources={"streamtables": logs}
    ).resolve_implicit_global_asset_job_def()
    waiting = instance.create_run_for_job(
        job, asset_selection=frozenset({notes.key}), status=dg.DagsterRunStatus.STARTED
    )
    assert f"run {waiting.run_id} is not finished" in tick(notes, logs, instance)
    instance.delete_run(waiting.run_id)

    run(
        notes,
        logs,
        instance,
        selection=[notes],
        tags={"streamtables/refresh": "streamtables_changes"},
    )
    told = tick(notes, logs, instance)
    # A run that dagster.materialize makes names no assets, so only the slot can tell.
    assert told == [notes.key] or "failed 1 times" in told


def test_the_sensor_waits_for_blocking_checks_and_runs_those_of_its_assets(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    asset = collecting([])

    @dg.asset_check(asset="items", blocking=True)
    def is_sound() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    @dg.asset_check(asset=asset, blocking=True)
    def arrived() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    defs = dg.Definitions(
        [asset, dg.AssetSpec("items")],
        asset_checks=[is_sound, arrived],
        resources={"streamtables": logs},
    )
    graph = defs.resolve_asset_graph()

    def ticked() -> dg.SensorResult:
        now, settings = datetime.now(UTC), SensorSettings(name="changes")
        return evaluate(follows_of([asset]), instance, logs.logs(), settings, now=now, graph=graph)

    def judged(passed: bool) -> None:
        found = dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey("items"), check_name="is_sound", passed=passed
        )
        instance.report_runless_asset_event(found)

    [request] = ticked().run_requests or []
    assert request.asset_check_keys == [arrived.check_key]
    judged(False)
    assert not ticked().run_requests
    assert "waits for a check: the blocking check is_sound of items failed" in str(
        ticked().skip_reason
    )
    judged(True)
    assert ticked().run_requests


def test_an_idle_slot_is_kept_by_the_sensor(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    notes = collecting([], deadline=timedelta(seconds=0.001))
    run(notes, logs, instance)
    slots = lake_of(logs).slots
    before = slots.read("notes").used_at
    tick(notes, logs, instance)
    assert slots.read("notes").used_at > before


def checks(
    asset: dg.AssetsDefinition, logs: StreamTablesResource, instance: dg.DagsterInstance, **lag: Any
) -> dict[str, tuple[bool, str]]:
    both = [
        build_history_pinned_checks(assets=[asset]),
        build_slot_lag_checks(assets=[asset], **lag),
    ]
    result = dg.materialize(
        both,
        instance=instance,
        resources={"streamtables": logs},
        selection=dg.AssetSelection.all_asset_checks(),
    )
    return {
        e.check_name: (e.passed, e.description or "") for e in result.get_asset_check_evaluations()
    }


def test_checks_say_whether_history_is_pinned_and_how_late_the_slot_is(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    notes = collecting([])
    assert checks(notes, logs, instance)["slot_lag"] == (True, "The asset has never run.")
    run(notes, logs, instance)
    assert [passed for passed, _ in checks(notes, logs, instance).values()] == [True, True]

    remove_history(logs)
    told = checks(notes, logs, instance, max_lag=timedelta(0))
    passed, why = told["slot_lag"]
    assert not passed and "changes of items have waited for" in why
    passed, why = told["history_pinned"]
    assert not passed and 'slot "notes" is lost' in why


def test_a_select_is_followed(
    items: Write, resource: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    rows: list[tuple[Any, ...]] = []

    @change_asset(relation="SELECT v, COUNT(*) AS n FROM items GROUP BY v", envelope=Upsert("v"))
    def totals(changes: Changes) -> None:
        rows.extend((r["_state"], r["v"], r["n"]) for r in changes.rows.to_pylist())

    run(totals, resource, instance)
    assert sorted(rows) == [("upsert", "a", 1), ("upsert", "b", 1)]
    rows.clear()
    items(id=[3], v=["b"])
    run(totals, resource, instance)
    assert rows == [("upsert", "b", 2)]


def test_a_view_is_followed_by_its_name(
    items: Write, resource: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    rows: list[tuple[Any, ...]] = []
    view = View("late", "SELECT id + 10 AS id FROM items WHERE v > 'a'")

    @change_asset(relation="late", views=[view])
    def notes(changes: Changes) -> None:
        rows.extend((r["_diff"], r["id"]) for r in changes.rows.to_pylist())

    assert notes.specs_by_key[dg.AssetKey("notes")].deps == [dg.AssetDep("items")]
    run(notes, resource, instance)
    items(id=[3, 4], v=["a", "c"])
    run(notes, resource, instance)
    assert rows == [(1, 12), (1, 14)]


def test_the_sensor_is_a_sensor_over_the_assets() -> None:
    sensor = build_change_sensor([collecting([])])
    assert sensor.name == "streamtables_changes"


def test_build_definitions_connects_change_assets(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    class Prefixed(StreamTablesTranslator):
        def get_asset_spec(self, props: Any) -> dg.AssetSpec:
            spec = super().get_asset_spec(props)
            return spec.replace_attributes(key=spec.key.with_prefix("lake"))

    @change_asset(relation="SELECT n FROM mart.totals JOIN items ON n = id", clock="ms")
    def sink(changes: Changes) -> None: ...

    defs = build_definitions(
        resource=logs,
        tables=[declare("mart.totals", "SELECT COUNT(*) AS n FROM items", schedule="1m")],
        translator=Prefixed(),
        source_keys={"items": dg.AssetKey("wares")},
        change_assets=[sink],
    )
    graph = defs.resolve_asset_graph()

    assert graph.get(sink.key).parent_keys == {
        dg.AssetKey(["lake", "mart", "totals"]),
        dg.AssetKey("wares"),
    }
    assert {key.name for key in graph.asset_check_keys if key.asset_key == sink.key} == {
        "history_pinned",
        "slot_lag",
    }
    assert defs.get_sensor_def("streamtables_changes")
    assert defs.get_schedule_def("streamtables_lag_schedule")


def test_a_run_by_way_of_build_definitions(
    items: Write, logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    found: Given = []
    defs = build_definitions(resource=logs, change_assets=[collecting(found)])
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, asset_selection=[dg.AssetKey("notes")])
    assert result.success
    assert len(found) == 2
