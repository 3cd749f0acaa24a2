"""Assets that receive what changed: what a run gets, when its slot moves, and what starts it."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from deltalake import DeltaTable

from dagster_streamtables import (
    Changes,
    Lake,
    SensorSettings,
    StreamTablesResource,
    StreamTablesTranslator,
    Upsert,
    View,
    build_change_sensor,
    build_definitions,
    change_asset,
)
from dagster_streamtables.checks import build_history_pinned_checks, build_slot_lag_checks
from dagster_streamtables.declarations import declare
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.changes.change_definitions import evaluate
from dagster_streamtables.orchestration.changes.feed_metadata import follows_of
from orchestration.conftest import Write

Given = list[tuple[int, int, str]]
"""What functions received: diff, key, value."""


class Index(dg.ConfigurableResource[Any]):
    name: str


class Options(dg.Config):
    limit: int = 3


class Items:
    """A lake with a table of two rows, and the runs of assets that follow it."""

    def __init__(
        self, write: Write, resource: StreamTablesResource, instance: dg.DagsterInstance
    ) -> None:
        self.write, self.resource, self.instance = write, resource, instance
        self.lake: Lake = resource.logs()
        self.add(id=[1, 2], v=["a", "b"])

    def add(self, **columns: list[Any]) -> None:
        self.write("items", **columns)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.lake.location("items"))

    def remove_history(self) -> None:
        """Delete rows, and what a slot before that needs, as a foreign VACUUM does."""
        table = self.table
        table.delete("id = 1")
        table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    def run(self, *assets: Any, **more: Any) -> dg.ExecuteInProcessResult:
        resources = {"streamtables": self.resource, **more.pop("resources", {})}
        return dg.materialize(
            assets, instance=self.instance, resources=resources, raise_on_error=False, **more
        )

    def told(self, asset: dg.AssetsDefinition) -> dict[str, Any]:
        """The metadata of the materialization of a run."""
        return metadata(self.run(asset))

    def tick(self, asset: dg.AssetsDefinition) -> list[dg.AssetKey] | str:
        """What a tick starts, or why it starts nothing."""
        found = self.ticked(asset)
        keys = [key for each in found.run_requests or () for key in each.asset_selection or ()]
        assert found.skip_reason is not None or keys
        return keys or str(getattr(found.skip_reason, "skip_message", ""))

    def ticked(self, asset: dg.AssetsDefinition, **more: Any) -> dg.SensorResult:
        now, settings = datetime.now(UTC), SensorSettings(name="streamtables_changes")
        follows = follows_of([asset])
        return evaluate(follows, self.instance, self.lake, settings, now=now, **more)

    def checks(self, asset: dg.AssetsDefinition, **lag: Any) -> dict[str, tuple[bool, str]]:
        checks = (
            build_history_pinned_checks(assets=[asset]),
            build_slot_lag_checks(assets=[asset], **lag),
        )
        result = self.run(*checks, selection=dg.AssetSelection.all_asset_checks())
        found = result.get_asset_check_evaluations()
        return {each.check_name: (each.passed, each.description or "") for each in found}


@pytest.fixture
def items(write: Write, logs: StreamTablesResource, instance: dg.DagsterInstance) -> Items:
    return Items(write, logs, instance)


def collecting(found: Given, **more: Any) -> dg.AssetsDefinition:
    """An asset that notes the changes of items."""

    @change_asset(relation="items", order_by="id", **more)
    def notes(changes: Changes) -> None:
        found.extend((r["_diff"], r["id"], r["v"]) for r in changes.rows.to_pylist())

    return notes


def metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [event] = result.get_asset_materialization_events()
    return {key: each.value for key, each in event.materialization.metadata.items()}


def test_a_run_receives_the_rows_and_later_ones_what_changed_since(items: Items) -> None:
    found: Given = []
    notes = collecting(found)

    first = items.told(notes)
    assert found == [(1, 1, "a"), (1, 2, "b")]
    assert first["streamtables/snapshot"] is True
    assert first["streamtables/inserted"] == 2

    found.clear()
    items.add(id=[3], v=["c"])
    items.table.update({"v": "'A'"}, predicate="id = 1")
    second = items.told(notes)

    assert found == [(1, 3, "c"), (1, 1, "A"), (-1, 1, "a")]
    assert (second["streamtables/from_timestamp"], second["streamtables/to_timestamp"]) == (0, 2)
    assert (second["streamtables/inserted"], second["streamtables/deleted"]) == (2, 1)
    assert second["streamtables/snapshot"] is False
    assert second["streamtables/versions_behind"] == 0
    assert second["streamtables/seconds_behind"] == 0
    assert not any("token" in key for key in second)


def test_a_failing_function_leaves_the_slot_where_it_is(items: Items) -> None:
    found: Given = []
    broken = True

    @change_asset(relation="items", order_by="id", retry_policy=None)
    def notes(context: dg.AssetExecutionContext, changes: Changes) -> None:
        found.extend((r["_diff"], r["id"], r["v"]) for r in changes.rows.to_pylist())
        if broken:
            raise RuntimeError("the index is down")

    assert not items.run(notes).success
    assert found == [(1, 1, "a"), (1, 2, "b")]

    broken = False
    found.clear()
    items.add(id=[3], v=["c"])
    assert items.run(notes).success
    assert found == [(1, 1, "a"), (1, 2, "b"), (1, 3, "c")]


def test_without_changes_the_function_is_not_called_and_the_data_version_stays(
    items: Items,
) -> None:
    calls: list[int] = []

    @change_asset(relation="items")
    def notes(changes: Changes) -> dict[str, Any]:
        calls.append(len(changes))
        return {"seen": len(changes)}

    first, second = items.run(notes), items.run(notes)
    events = [each.get_asset_materialization_events()[0] for each in (first, second)]
    versions = [(e.materialization.tags or {})["dagster/data_version"] for e in events]

    assert calls == [2]
    assert metadata(second)["streamtables/action"] == "NO_DATA"
    assert versions == ["0", "0"]

    items.table.optimize.compact()
    items.add(id=[3], v=["c"])
    assert items.told(notes)["seen"] == 1


def test_a_crash_between_the_sink_and_the_slot_gives_nothing_twice(
    items: Items, tmp_path: Path
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

    assert not items.run(sink).success
    crash = False
    assert items.told(sink)["streamtables/rows_in"] == 0

    crash = True
    items.add(id=[3], v=["c"])
    assert not items.run(sink).success
    crash = False
    items.add(id=[4], v=["d"])
    assert items.told(sink)["streamtables/from_timestamp"] == 1
    assert sorted(base.execute("SELECT id FROM log")) == [(1,), (2,), (3,), (4,)]


def test_a_sink_behind_its_slot_is_told_so(items: Items) -> None:
    tokens: list[str] = []

    @change_asset(relation="items", stored_token=lambda: tokens[0] if tokens else None)
    def sink(changes: Changes) -> None:
        tokens.append(changes.token)

    items.run(sink)
    items.add(id=[3], v=["x"])
    items.run(sink)
    result = items.run(sink)

    assert not result.success
    [failure] = result.get_step_failure_events()
    assert "the sink is behind its slot" in str(failure.event_specific_data)


def test_max_rows_bounds_a_run_and_splits_no_timestamp(items: Items) -> None:
    found: Given = []
    notes = collecting(found, max_rows=2)
    sizes = []
    for _ in range(4):
        found.clear()
        items.run(notes)
        items.add(id=[6, 7, 8], v=["d", "d", "d"])
        items.add(id=[9], v=["e"])
        sizes.append([each for _, each, _ in found])

    # The snapshot is one timestamp. Then come versions of three rows, one, and three.
    assert sizes == [[1, 2], [6, 7, 8], [9, 6, 7, 8], [9, 6, 7, 8]]


def test_an_envelope_gives_states(items: Items) -> None:
    rows: list[dict[str, Any]] = []

    @change_asset(relation="items", envelope=Upsert("id"), name="index", key_prefix="search")
    def anything(changes: Changes) -> None:
        rows.extend(changes.rows.to_pylist())

    items.run(anything)
    items.table.delete("id = 1")
    told = items.told(anything)

    assert rows[-1] == {"_timestamp": 1, "_state": "delete", "id": 1, "v": None}
    assert told["streamtables/rows/delete"] == 1
    assert items.lake.slots.names() == ["search__index"]
    assert anything.key == dg.AssetKey(["search", "index"])


def test_batches_can_be_read_again_and_one_at_a_time(items: Items) -> None:
    read: list[int] = []

    @change_asset(relation="items")
    def notes(changes: Changes) -> None:
        for _ in range(2):
            read.extend(batch.num_rows for batch in changes.batches())
        for one, other in zip(changes.batches(), changes.batches(), strict=True):
            assert one == other

    items.add(id=[3], v=["c"])
    assert items.run(notes).success
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


def test_a_function_may_have_resources_and_config(items: Items) -> None:
    told, root = list[Any](), items.resource.root

    @change_asset(relation="items")
    def sink(
        changes: Changes, index: Index, config: Options, streamtables: StreamTablesResource
    ) -> dg.MaterializeResult[Any]:
        told.append((index.name, config.limit, len(changes), streamtables.root == root))
        return dg.MaterializeResult(data_version=dg.DataVersion("mine"))

    result = items.run(sink, resources={"index": Index(name="people")})
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


def test_a_function_that_returns_rows_is_refused(items: Items) -> None:
    @change_asset(relation="items")
    def sink(changes: Changes) -> Any:
        return changes.rows

    result = items.run(sink)
    assert "returned a value of the type Table" in str(result.get_step_failure_events())


@pytest.mark.parametrize("choice", ["error", "resnapshot"])
def test_lost_history_fails_or_begins_again_by_choice(items: Items, choice: Any) -> None:
    found: Given = []
    notes = collecting(found, on_history_lost=choice)
    items.run(notes)
    found.clear()
    items.remove_history()
    result = items.run(notes)

    assert result.success == (choice == "resnapshot")
    assert found == ([(1, 2, "b")] if result.success else [])
    if result.success:
        assert metadata(result)["streamtables/snapshot"] is True


def test_the_sensor_starts_an_asset_when_rows_changed(items: Items) -> None:
    notes = collecting([])
    assert items.tick(notes) == [notes.key]
    items.run(notes)
    assert items.tick(notes) == "Nothing changed for notes."
    items.add(id=[3], v=["c"])
    assert items.tick(notes) == [notes.key]
    items.run(notes)
    assert items.table.optimize.compact()["numFilesRemoved"] == 2
    assert items.tick(notes) == "Nothing changed for notes."


def test_the_sensor_waits_for_a_table_a_run_and_a_failure(items: Items, write: Write) -> None:
    @change_asset(relation="later", retry_policy=None)
    def notes(changes: Changes) -> None:
        raise RuntimeError("the index is down")

    assert "later does not exist yet" in items.tick(notes)
    write("later", id=[1], v=["a"])
    assert items.tick(notes) == [notes.key]
    job = dg.Definitions(
        [notes], resources={"streamtables": items.resource}
    ).resolve_implicit_global_asset_job_def()
    waiting = items.instance.create_run_for_job(
        job, asset_selection=frozenset({notes.key}), status=dg.DagsterRunStatus.STARTED
    )
    assert f"run {waiting.run_id} is not finished" in items.tick(notes)
    items.instance.delete_run(waiting.run_id)

    tags = {"streamtables/refresh": "streamtables_changes"}
    items.run(notes, selection=[notes], tags=tags)
    told = items.tick(notes)
    # A run that dagster.materialize makes names no assets, so only the slot can tell.
    assert told == [notes.key] or "failed 1 times" in told


def test_the_sensor_waits_for_blocking_checks_and_runs_those_of_its_assets(items: Items) -> None:
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
        resources={"streamtables": items.resource},
    )
    graph = defs.resolve_asset_graph()

    def judged(passed: bool) -> None:
        found = dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey("items"), check_name="is_sound", passed=passed
        )
        items.instance.report_runless_asset_event(found)

    [request] = items.ticked(asset, graph=graph).run_requests or []
    assert request.asset_check_keys == [arrived.check_key]
    judged(False)
    assert not items.ticked(asset, graph=graph).run_requests
    assert "waits for a check: the blocking check is_sound of items failed" in str(
        items.ticked(asset, graph=graph).skip_reason
    )
    judged(True)
    assert items.ticked(asset, graph=graph).run_requests


def test_an_idle_slot_is_kept_by_the_sensor(items: Items) -> None:
    notes = collecting([], deadline=timedelta(seconds=0.001))
    items.run(notes)
    slots = items.lake.slots
    before = slots.read("notes").used_at
    items.tick(notes)
    assert slots.read("notes").used_at > before


def test_checks_say_whether_history_is_pinned_and_how_late_the_slot_is(items: Items) -> None:
    notes = collecting([])
    assert items.checks(notes)["slot_lag"] == (True, "The asset has never run.")
    items.run(notes)
    assert [passed for passed, _ in items.checks(notes).values()] == [True, True]

    items.remove_history()
    told = items.checks(notes, max_lag=timedelta(0))
    passed, why = told["slot_lag"]
    assert not passed and "changes of items have waited for" in why
    passed, why = told["history_pinned"]
    assert not passed and 'slot "notes" is lost' in why


def test_a_select_is_followed(items: Items, resource: StreamTablesResource) -> None:
    items.resource = resource
    rows: list[tuple[Any, ...]] = []

    @change_asset(relation="SELECT v, COUNT(*) AS n FROM items GROUP BY v", envelope=Upsert("v"))
    def totals(changes: Changes) -> None:
        rows.extend((r["_state"], r["v"], r["n"]) for r in changes.rows.to_pylist())

    items.run(totals)
    assert sorted(rows) == [("upsert", "a", 1), ("upsert", "b", 1)]
    rows.clear()
    items.add(id=[3], v=["b"])
    items.run(totals)
    assert rows == [("upsert", "b", 2)]


def test_a_view_is_followed_by_its_name(items: Items, resource: StreamTablesResource) -> None:
    items.resource = resource
    rows: list[tuple[Any, ...]] = []
    view = View("late", "SELECT id + 10 AS id FROM items WHERE v > 'a'")

    @change_asset(relation="late", views=[view])
    def notes(changes: Changes) -> None:
        rows.extend((r["_diff"], r["id"]) for r in changes.rows.to_pylist())

    assert notes.specs_by_key[dg.AssetKey("notes")].deps == [dg.AssetDep("items")]
    items.run(notes)
    items.add(id=[3, 4], v=["a", "c"])
    items.run(notes)
    assert rows == [(1, 12), (1, 14)]


def test_the_sensor_is_a_sensor_over_the_assets() -> None:
    sensor = build_change_sensor([collecting([])])
    assert sensor.name == "streamtables_changes"


def test_build_definitions_connects_change_assets(items: Items) -> None:
    class Prefixed(StreamTablesTranslator):
        def get_asset_spec(self, props: Any) -> dg.AssetSpec:
            spec = super().get_asset_spec(props)
            return spec.replace_attributes(key=spec.key.with_prefix("lake"))

    @change_asset(relation="SELECT n FROM mart.totals JOIN items ON n = id", clock="ms")
    def sink(changes: Changes) -> None: ...

    defs = build_definitions(
        resource=items.resource,
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


def test_a_run_by_way_of_build_definitions(items: Items) -> None:
    found: Given = []
    defs = build_definitions(resource=items.resource, change_assets=[collecting(found)])
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=items.instance, asset_selection=[dg.AssetKey("notes")])
    assert result.success
    assert len(found) == 2
