"""Replicated tables as assets: what is known without the publisher, what a refresh records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.definitions_load_context import (
    DefinitionsLoadContext,
    DefinitionsLoadType,
)
from dagster._core.definitions.repository_definition import RepositoryLoadData
from deltalake import DeltaTable

from dagster_streamtables import (
    FromLake,
    FromPostgres,
    Publications,
    Replication,
    Replications,
    ScheduledReplication,
    StreamTablesResource,
    StreamTablesTranslator,
    build_definitions,
    build_replication_assets,
)
from dagster_streamtables.declarations import declare
from dagster_streamtables.errors import InvalidDefinition
from orchestration.conftest import loading
from orchestration.replicated import ORDERS, TOTALS, Origin, materialized, said, version


def run(
    defs: dg.Definitions, instance: dg.DagsterInstance, *keys: dg.AssetKey
) -> dg.ExecuteInProcessResult:
    job = defs.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance, asset_selection=list(keys or [ORDERS]), raise_on_error=False
    )


def failure(result: dg.ExecuteInProcessResult) -> str:
    [event] = result.get_step_failure_events()
    return str(event.event_specific_data)


def test_replicated_tables_are_upstream_of_what_reads_them(lake: StreamTablesResource) -> None:
    from_server = FromPostgres("host=nowhere dbname=shop", tables=["public.orders", "public.items"])
    defs = build_definitions(
        resource=lake,
        tables=[TOTALS],
        replications=[Replication("shop", from_server, schema="raw")],
        source_group_name="sources",
    )
    graph = defs.resolve_asset_graph()
    assert graph.get(dg.AssetKey(["mart", "totals"])).parent_keys == {ORDERS}
    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    orders = specs[ORDERS]
    assert (orders.group_name, orders.kinds) == ("sources", {"deltalake", "postgres"})
    assert orders.metadata["streamtables/resolved_schedule"] == "2m, from mart.totals"
    assert orders.freshness_policy == specs[dg.AssetKey(["mart", "totals"])].freshness_policy
    assert "columns are shown after its first refresh" in (orders.description or "")
    checks = {key.name for key in graph.asset_check_keys if key.asset_key == ORDERS}
    assert checks == {"replica_equals_origin", "replication_lag"}
    assert not [key for key in graph.external_asset_keys if key == ORDERS]


def test_a_schedule_of_its_own_wins_over_those_of_readers(lake: StreamTablesResource) -> None:
    server = FromPostgres("host=nowhere dbname=shop", tables=["public.orders"])
    shop = ScheduledReplication(Replication("shop", server, schema="raw"), "1h", group_name="shop")
    defs = build_definitions(resource=lake, tables=[TOTALS], replications=[shop])
    [spec] = [spec for spec in defs.resolve_all_asset_specs() if spec.key == ORDERS]
    assert (spec.metadata["streamtables/resolved_schedule"], spec.group_name) == ("1h", "shop")
    with pytest.raises(InvalidDefinition, match="replication shop"):
        build_replication_assets(replications=[ScheduledReplication(shop.replication, "often")])


def test_a_refresh_records_what_it_did_as_numbers(
    origin: Origin, lake: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    defs = build_definitions(resource=lake, replications=[origin.replication()])
    copied = materialized(run(defs, instance))["raw/orders"]
    assert said(copied) | {"action": "COPY", "copied": 2, "inserted": 0, "row_count": 2} == said(
        copied
    )
    origin.add("sales.orders", id=[3], v=["c"])
    origin.update("B", "id = 2")
    DeltaTable(origin.lake.location("sales.orders")).delete("id = 1")
    changed = materialized(run(defs, instance))["raw/orders"]
    expected = {
        "action": "CHANGES", "rows_in": 3, "inserted": 1, "updated": 1, "deleted": 1,
        "conflicts": 0, "position": 3, "row_count": 2, "seconds_behind": 0.0,
        "versions_behind": 0,
    }  # fmt: skip
    assert said(changed) | expected == said(changed)
    assert changed.metadata["dagster/column_schema"].value.columns[0].name == "id"  # type: ignore[union-attr]
    nothing = materialized(run(defs, instance))["raw/orders"]
    assert said(nothing)["action"] == "NO_DATA"
    assert version(copied) != version(changed) == version(nothing)
    rows = DeltaTable(lake.logs().location("raw.orders")).to_pyarrow_table().sort_by("id")
    assert rows.to_pylist() == [{"id": 2, "v": "B"}, {"id": 3, "v": "c"}]


def test_tables_that_only_the_publisher_knows_become_assets_after_the_first_refresh(
    origin: Origin, lake: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    def location() -> dg.Definitions:
        replication = origin.replication(targets={}, schema="raw")
        return build_definitions(resource=lake, tables=[TOTALS], replications=[replication])

    stand_in = dg.AssetKey(["replications", "shop"])
    before = location()
    [spec] = [s for s in before.resolve_all_asset_specs() if s.key == stand_in]
    assert "They are not known yet" in (spec.description or "")
    made = materialized(run(before, instance, stand_in))
    assert said(made["replications/shop"])["tables"] == ["raw.orders"]
    assert said(made["raw/orders"])["copied"] == 2

    keys = {spec.key: spec for spec in location().resolve_all_asset_specs()}
    assert stand_in not in keys
    assert keys[ORDERS].metadata["dagster/column_schema"].columns[1].name == "v"
    assert said(materialized(run(location(), instance))["raw/orders"])["action"] == "NO_DATA"


def test_a_run_has_the_assets_that_were_there_when_its_code_location_was_loaded(
    origin: Origin, lake: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    def location() -> list[dg.AssetKey]:
        replication = origin.replication(targets={}, schema="raw")
        defs = build_definitions(resource=lake, replications=[replication])
        return sorted(spec.key for spec in defs.resolve_all_asset_specs())

    loaded = DefinitionsLoadContext(DefinitionsLoadType.INITIALIZATION)
    with loading(loaded):
        known = location()
    Replications(lake.lake()).refresh(origin.replication(targets={}, schema="raw"))
    data = RepositoryLoadData({}, loaded.get_pending_reconstruction_metadata())
    rerun = DefinitionsLoadContext(DefinitionsLoadType.RECONSTRUCTION, data)
    with loading(rerun):
        assert location() == known == [dg.AssetKey(["replications", "shop"])]
    assert location() == [ORDERS]


def test_a_table_that_is_published_later_is_told_and_then_an_asset(
    origin: Origin, lake: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    def location() -> dg.Definitions:
        return build_definitions(resource=lake, replications=[origin.replication()])

    run(location(), instance)
    origin.publish_customers()
    made = materialized(run(location(), instance))
    assert said(made["raw/customers"])["copied"] == 1
    keys = {spec.key for spec in location().resolve_all_asset_specs()}
    assert keys == {ORDERS, dg.AssetKey(["raw", "customers"])}
    Publications(origin.lake.root).remove("sales", "sales.customers")
    later = run(location(), instance, *keys)
    assert later.success
    assert set(materialized(later)) == {"raw/orders"}


def test_loading_asks_no_publisher(lake: StreamTablesResource) -> None:
    gone = Replication("gone", FromLake("s3://nowhere/lake", ["p"]), targets={"a.b": "raw.orders"})
    server = FromPostgres("host=192.0.2.1 dbname=x", schemas=["public"], password_env="UNSET")
    defs = build_definitions(
        resource=lake, replications=[gone, Replication("server", server)], tables=[TOTALS]
    )
    assert len(list(defs.resolve_all_asset_specs())) == 3


def test_a_publisher_that_cannot_be_reached_fails_the_run_without_secrets(
    lake: StreamTablesResource, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "s3cr3t-of-shop")
    server = FromPostgres(
        "host=/nowhere dbname=shop user=reader", tables=["public.orders"],
        password_env=dg.EnvVar("SHOP_PASSWORD"),
    )  # fmt: skip
    assets = build_replication_assets(
        replications=[Replication("shop", server, schema="raw")], retry_policy=None
    )
    assert "s3cr3t-of-shop" not in repr(list(assets[0].specs))
    result = dg.materialize(
        assets, instance=instance, resources={"streamtables": lake}, raise_on_error=False
    )
    assert "cannot be reached" in failure(result)
    assert not any("s3cr3t-of-shop" in str(event) for event in result.all_events)
    logged = instance.all_logs(result.run_id)
    assert not any("s3cr3t-of-shop" in str(entry) for entry in logged)


def test_names_that_would_be_one_asset_are_refused(
    origin: Origin, lake: StreamTablesResource
) -> None:
    shop = origin.replication()
    other = Replication("other", shop.publisher, targets={"x.y": "raw.orders"})
    with pytest.raises(InvalidDefinition, match='2 replications have the name "shop"'):
        build_definitions(resource=lake, replications=[shop, origin.replication()])
    with pytest.raises(InvalidDefinition, match=r'2 replications write the table "raw\.orders"'):
        build_definitions(resource=lake, replications=[shop, other])


def test_a_stream_table_with_the_name_of_a_replicated_table_is_left_out(
    origin: Origin, lake: StreamTablesResource, caplog: pytest.LogCaptureFixture
) -> None:
    same = declare("raw.orders", "SELECT 1 AS n")
    defs = build_definitions(resource=lake, tables=[same], replications=[origin.replication()])
    assert len(list(defs.resolve_all_asset_specs())) == 1
    assert "another asset of this code location has its key" in "".join(caplog.messages)


def test_a_translator_decides_the_asset_of_a_replicated_table(
    origin: Origin, lake: StreamTablesResource
) -> None:
    class Mine(StreamTablesTranslator):
        def get_replicated_spec(self, props: Any) -> dg.AssetSpec:
            spec = super().get_replicated_spec(props)
            assert (props.name, props.schema, props.published) == (
                "raw.orders", "raw", "sales.orders",
            )  # fmt: skip
            return spec.replace_attributes(key=["lake", *spec.key.path], owners=["team:shop"])

    defs = build_definitions(
        resource=lake, tables=[TOTALS], replications=[origin.replication()], translator=Mine()
    )
    graph = defs.resolve_asset_graph()
    key = dg.AssetKey(["lake", "raw", "orders"])
    assert graph.get(dg.AssetKey(["mart", "totals"])).parent_keys == {key}
    assert graph.get(key).owners == ["team:shop"]


def test_a_table_in_trouble_does_not_look_healthy_and_the_others_are_materialized(
    origin: Origin, lake: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    origin.publish_customers()
    customers = dg.AssetKey(["raw", "customers"])
    more = {"sales.orders": "raw.orders", "sales.customers": "raw.customers"}
    shop = origin.replication(targets=more)
    defs = build_definitions(tables=[TOTALS], replications=[shop], resource=lake)
    first = run(defs, instance, ORDERS, customers)
    assert first.success and {*materialized(first)} == {"raw/orders", "raw/customers"}

    place = Path(lake.logs().location("raw.orders"))
    place.rename(place.with_name("away"))
    origin.add("sales.customers", id=[8])
    result = run(defs, instance, ORDERS, customers)
    assert result.success and {*materialized(result)} == {"raw/customers"}
    troubles = {e.asset_key: e for e in result.get_asset_check_evaluations() if not e.passed}
    assert {*troubles} == {ORDERS}
    evaluation = troubles[ORDERS]
    assert evaluation.check_name == "replication_lag"
    assert evaluation.severity is dg.AssetCheckSeverity.ERROR
    assert "streamtables replications copy shop sales.orders" in (evaluation.description or "")

    place.with_name("away").rename(place)
    mended = run(defs, instance, ORDERS, customers)
    assert {*materialized(mended)} == {"raw/orders", "raw/customers"}
    found = {e.asset_key: e.passed for e in mended.get_asset_check_evaluations()}
    assert found[ORDERS]

    for name in ("raw.orders", "raw.customers"):
        Path(lake.logs().location(name)).rename(place.with_name(name))
    assert "is not the table that was written" in failure(run(defs, instance, ORDERS, customers))
