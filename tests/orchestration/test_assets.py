"""Stream tables materialized by Dagster, on real Delta tables."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from dagster_streamtables import (
    StreamTablesResource,
    build_source_assets,
    build_stream_table_assets,
    stream_table_assets,
)
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable
from named_rows import rows_in_order
from orchestration.conftest import Write
from orchestration.place import last_event

PAID = StreamTable(
    "paid",
    "SELECT id, amount FROM orders WHERE amount > 10",
    schedule="5m",
    differential_max_change_ratio=0,
)
TOTALS = StreamTable("gold.totals", "SELECT count(*) AS n, sum(amount) AS amount FROM paid")
LOST = StreamTable("lost", "SELECT id FROM nowhere")
BELOW = StreamTable("below", "SELECT id FROM lost")
TABLES = [TOTALS, PAID, LOST, BELOW]
ORDERS, PAID_KEY, TOTALS_KEY = map(dg.AssetKey, (["orders"], ["paid"], ["gold", "totals"]))


class Runs:
    """Runs of stream tables, and what Dagster was told by them."""

    def __init__(self, instance: dg.DagsterInstance, resource: StreamTablesResource) -> None:
        self.instance, self.resource = instance, resource

    def of(
        self,
        *keys: dg.AssetKey,
        assets: list[dg.AssetsDefinition] | None = None,
        resource: StreamTablesResource | None = None,
        **run: object,
    ) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            assets or build_stream_table_assets(tables=TABLES),
            selection=dg.AssetSelection.assets(*keys),
            instance=self.instance,
            resources={"streamtables": resource or self.resource},
            raise_on_error=False,
            **run,  # type: ignore[arg-type]
        )

    def last(self, key: dg.AssetKey) -> dg.AssetMaterialization:
        return last_event(self.instance, key)

    def rows(self, name: str, columns: str) -> list[tuple[object, ...]]:
        return rows_in_order(self.resource.lake().read(name), columns)

    def failure(
        self, table: StreamTable, resource: StreamTablesResource | None = None
    ) -> tuple[str, dict[str, str]]:
        """What Dagster shows of the failed step: its error, and the metadata."""
        assets = build_stream_table_assets(tables=[table], retry_policy=None)
        [data] = failures(self.of(dg.AssetKey(table.name), assets=assets, resource=resource))
        found = data.user_failure_data.metadata
        return data.error.to_string(), {name: str(value.value) for name, value in found.items()}


@pytest.fixture
def runs(instance: dg.DagsterInstance, resource: StreamTablesResource, write: Write) -> Runs:
    write("orders", id=[1, 2, 3], amount=[10, 20, 30])
    return Runs(instance, resource)


def values(event: dg.AssetMaterialization) -> dict[str, object]:
    return {name: value.value for name, value in event.metadata.items()}


def failures(result: dg.ExecuteInProcessResult) -> list[Any]:
    return [event.step_failure_data for event in result.all_events if event.is_step_failure]


def made(result: dg.ExecuteInProcessResult) -> list[dg.AssetKey | None]:
    return [event.asset_key for event in result.get_asset_materialization_events()]


@pytest.mark.smoke("a run of Dagster")
def test_a_run_refreshes_each_table_after_those_it_reads_and_records_it(
    runs: Runs, write: Write
) -> None:
    assert runs.of(TOTALS_KEY, PAID_KEY).success
    assert runs.rows("gold.totals", "n, amount") == [(2, 50)]

    write("orders", id=[4], amount=[40])
    assert runs.of(TOTALS_KEY, PAID_KEY).success
    assert runs.rows("gold.totals", "n, amount") == [(3, 90)]

    event = runs.last(PAID_KEY)
    found = values(event)
    assert found[metadata.ACTION] == "DIFFERENTIAL"
    assert (found[metadata.ROWS_IN], found[metadata.INSERTED], found[metadata.DELETED]) == (1, 1, 0)
    assert found[metadata.ROW_COUNT] == 3
    files = Path(runs.resource.logs().location("paid")).glob("*.parquet")
    assert found[metadata.SIZE_BYTES] == sum(path.stat().st_size for path in files)
    assert (found[metadata.FILES], found[metadata.CHANGE_RATIO]) == (2, 0.25)
    assert metadata.CHANGED_ROWS not in found, "nobody allowed it"
    assert found[metadata.FRONTIER] == {"orders": 1}
    assert isinstance(found[metadata.SECONDS], float)
    phases = event.metadata[metadata.PHASES]
    assert isinstance(phases, dg.TableMetadataValue)
    assert {"phase", "seconds"} == phases.records[0].data.keys()
    assert list(event.metadata)[:2] == [metadata.ACTION, metadata.REASON]
    assert list(event.metadata)[-1] == metadata.SEEN
    assert isinstance(found[metadata.STALENESS], float)
    windows = event.metadata[metadata.WINDOWS]
    assert isinstance(windows, dg.TableMetadataValue)
    assert windows.records[0].data["source"] == "orders"
    assert (windows.records[0].data["before"], windows.records[0].data["after"]) == (0, 1)
    schema = event.metadata[metadata.COLUMN_SCHEMA]
    assert isinstance(schema, dg.TableSchemaMetadataValue)
    assert [column.name for column in schema.value.columns] == ["id", "amount"]
    lineage = event.metadata[metadata.COLUMN_LINEAGE]
    assert isinstance(lineage, dg.TableColumnLineageMetadataValue)
    assert lineage.value.deps_by_column["id"] == [dg.TableColumnDep(ORDERS, "id")]


def test_changed_rows_are_shown_where_the_resource_allows_it(runs: Runs, write: Write) -> None:
    runs.of(PAID_KEY)
    write("orders", id=[4], amount=[40])
    allowed = type(runs.resource)(root=runs.resource.root, preview_rows=5)
    runs.of(PAID_KEY, resource=allowed)
    shown = runs.last(PAID_KEY).metadata[metadata.CHANGED_ROWS]
    assert isinstance(shown, dg.TableMetadataValue)
    assert [record.data for record in shown.records] == [
        {"__change": "came", "__copies": 1, "id": 4, "amount": 40}
    ]


def test_no_data_is_a_materialization_with_an_unchanged_data_version(runs: Runs) -> None:
    runs.of(PAID_KEY, TOTALS_KEY)
    before = runs.last(PAID_KEY)
    result = runs.of(PAID_KEY, TOTALS_KEY)
    after = runs.last(PAID_KEY)
    assert values(after)[metadata.ACTION] == values(runs.last(TOTALS_KEY))[metadata.ACTION]
    assert values(after)[metadata.ACTION] == "NO_DATA"
    assert (after.tags or {})["dagster/data_version"] == (before.tags or {})["dagster/data_version"]
    assert len(result.get_asset_materialization_events()) == 2


def test_the_versions_that_were_consumed_are_recorded(runs: Runs, write: Write) -> None:
    """An observation that is older than what the refresh read must not make it look stale."""
    assets = [
        *build_stream_table_assets(tables=TABLES),
        *build_source_assets(tables=[PAID, TOTALS]),
    ]
    defs = dg.Definitions(assets, resources={"streamtables": runs.resource})
    graph = defs.resolve_asset_graph()

    def observe() -> None:
        tags = {"dagster/data_version": str(runs.resource.lake().version("orders"))}
        runs.instance.report_runless_asset_event(dg.AssetObservation(ORDERS, tags=tags))

    def stale(key: dg.AssetKey) -> str:
        context = LoadingContextForTest(runs.instance)
        resolver = CachingStaleStatusResolver(runs.instance, graph, context)
        return resolver.get_status(key).value

    runs.of(PAID_KEY, TOTALS_KEY, assets=assets)
    assert stale(PAID_KEY) == "FRESH", "the refresh itself has looked at its source"
    write("orders", id=[4], amount=[40])
    runs.of(PAID_KEY, TOTALS_KEY, assets=assets)
    assert (runs.last(PAID_KEY).tags or {})["dagster/input_data_version/orders"] == "1"
    observe()
    assert (stale(PAID_KEY), stale(TOTALS_KEY)) == ("FRESH", "FRESH")
    write("orders", id=[5], amount=[50])
    observe()
    assert stale(PAID_KEY) == "STALE"


def test_sources_are_observed_with_their_delta_version(runs: Runs, write: Write) -> None:
    from dagster._core.definitions.observe import observe

    write("orders", id=[4], amount=[40])
    sources = build_source_assets(tables=TABLES)
    assert observe(
        sources, instance=runs.instance, resources={"streamtables": runs.resource}
    ).success
    record = runs.instance.get_latest_data_version_record(ORDERS)
    assert record is not None and record.event_log_entry.asset_observation is not None
    assert record.event_log_entry.asset_observation.tags["dagster/data_version"] == "1"
    # A source that does not exist is left out.
    assert runs.instance.get_latest_data_version_record(dg.AssetKey("nowhere")) is None


@pytest.mark.smoke("a run with a failing table")
def test_a_failure_carries_the_message_is_not_retried_and_harms_nobody_else(runs: Runs) -> None:
    lost, below = dg.AssetKey("lost"), dg.AssetKey("below")
    result = runs.of(lost, below, PAID_KEY)
    assert not result.success
    [failed] = [event for event in result.all_events if event.is_step_failure]
    assert failed.step_key == "lost"
    told = failed.step_failure_data.user_failure_data.metadata
    assert 'there is no table "nowhere"' in str(told["streamtables/what"].value)
    assert "correct the query" in str(told["streamtables/fix"].value)
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
    assert made(result) == [PAID_KEY]


@pytest.mark.parametrize(
    ("tags", "errors"), [({}, 3), ({"dagster/from_ui": "true"}, 0)], ids=["by itself", "by hand"]
)
def test_runs_that_somebody_starts_do_not_suspend_a_table(
    runs: Runs, tags: dict[str, str], errors: int
) -> None:
    for _ in range(3):
        runs.of(dg.AssetKey("lost"), tags=tags)
    control = runs.resource.lake().controls.read("lost")
    assert (control.errors, control.failed) == (errors, 3)
    assert bool(control.suspension) is (errors == 3)


def test_a_full_refresh_can_be_asked_for(runs: Runs) -> None:
    runs.of(PAID_KEY)
    config = {"ops": {"paid": {"config": {"full": True}}}}
    assert runs.of(PAID_KEY, run_config=config).success
    assert values(runs.last(PAID_KEY))[metadata.ACTION] == "FULL"


def test_a_query_that_only_a_full_refresh_can_do_is_recorded_without_lineage(runs: Runs) -> None:
    dice = StreamTable("dice", "SELECT id, rand() AS r FROM orders", Mode.FULL)
    assets = build_stream_table_assets(tables=[dice])
    assert runs.of(dg.AssetKey("dice"), assets=assets).success
    event = runs.last(dg.AssetKey("dice"))
    schema = event.metadata[metadata.COLUMN_SCHEMA]
    assert isinstance(schema, dg.TableSchemaMetadataValue)
    assert [column.name for column in schema.value.columns] == ["id", "r"]
    assert metadata.COLUMN_LINEAGE not in event.metadata


def test_a_session_of_another_resource_can_be_used(runs: Runs) -> None:
    """As with the session of dagster-pyspark, which is a resource, too."""

    class Sessions(dg.ConfigurableResource):
        def spark_session(self) -> object:
            return runs.resource.session()

    class OnOtherSession(StreamTablesResource):
        sessions: dg.ResourceDependency[Sessions]

        def session(self) -> object:
            return self.sessions.spark_session()

    other = OnOtherSession(root=runs.resource.root, sessions=Sessions())
    assert runs.of(PAID_KEY, resource=other).success
    assert runs.rows("paid", "id, amount") == [(2, 20), (3, 30)]


def test_many_tables_in_one_op_are_refreshed_in_order_and_past_failures(runs: Runs) -> None:
    @stream_table_assets(tables=TABLES)
    def everything(context: dg.AssetExecutionContext, streamtables: StreamTablesResource):
        yield from streamtables.refresh(context)

    result = runs.of(PAID_KEY, TOTALS_KEY, assets=[everything])
    assert result.success
    assert runs.rows("gold.totals", "n, amount") == [(2, 50)]
    assert made(result) == [PAID_KEY, TOTALS_KEY]

    every = [PAID_KEY, TOTALS_KEY, dg.AssetKey("lost"), dg.AssetKey("below")]
    result = runs.of(*every, assets=[everything])
    assert not result.success
    assert made(result) == [PAID_KEY, TOTALS_KEY]
    [data] = failures(result)
    assert set(data.user_failure_data.metadata) == {"lost"}


def test_what_the_query_itself_fails_with_is_told_without_the_trace_of_spark(runs: Runs) -> None:
    words = StreamTable("words", "SELECT CAST(concat('a', id) AS INT) AS n FROM orders")
    shown, found = runs.failure(words)
    assert "the query fails on the rows of its sources" in found["streamtables/what"]
    assert "CAST_INVALID_INPUT" in found["streamtables/why"]
    assert "try_cast" in found["streamtables/fix"]
    assert "org.apache.spark" not in shown


def test_a_defect_is_told_in_a_line_and_not_tried_again(runs: Runs) -> None:
    class Broken(StreamTablesResource):
        def session(self) -> object:
            return ["not a session"]

    broken = Broken(root=runs.resource.root)
    shown, found = runs.failure(PAID, broken)
    assert found["streamtables/what"].startswith('stream table "paid": ')
    assert "AttributeError" in found["streamtables/what"]
    assert "'list' object has no attribute" in found["streamtables/why"]
    assert "caused by" not in shown

    result = runs.of(PAID_KEY, resource=broken)
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
