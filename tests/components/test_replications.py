"""`replications` in YAML: their assets, which join those of the other components."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta

import dagster as dg
import pytest

from components.conftest import TYPE, Load, Put, key, specs
from dagster_streamtables import FromLake, FromPostgres, Replication
from dagster_streamtables.components.replication_settings import ReplicationSettings
from dagster_streamtables.errors import InvalidDefinition

SHOP = f"""
type: {TYPE}
attributes:
  resource: {{root: ../../lake}}
  source_group_name: shop
  replications:
    - name: shop
      postgres: postgresql://reader@/shop?host=/nowhere
      password_env: PASSWORD_OF_SHOP
      tables: [public.orders, public.items]
      targets: {{public.items: raw.wares}}
      target_schema: raw
      on_conflict: apply
      slot: of_shop
      {{schedule}}
"""
MART = f"""
type: {TYPE}
attributes:
  resource: {{root: ../../lake}}
  tables:
    - {{name: mart.totals, query: SELECT COUNT(*) AS n FROM raw.orders, schedule: 2m}}
"""


def test_tables_of_another_component_read_replicated_tables(
    put: Put, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD_OF_SHOP", "s3cr3t-of-shop")
    put("shop/defs.yaml", SHOP.replace("{schedule}", "max_rows: 1000"))
    put("mart/defs.yaml", MART)
    defs = load()
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    found = specs(defs)
    assert set(found) == {key("raw/orders"), key("raw/wares"), key("mart/totals")}
    assert graph.get(key("mart/totals")).parent_keys == {key("raw/orders")}
    assert graph.get(key("raw/orders")).is_materializable
    orders = found[key("raw/orders")]
    assert orders.group_name == "shop"
    assert orders.metadata["streamtables/resolved_schedule"] == "2m, from mart.totals"
    assert {check.name for check in graph.asset_check_keys if check.asset_key == orders.key} == {
        "replica_equals_origin", "replication_lag",
    }  # fmt: skip
    assert {sensor.name for sensor in defs.get_repository_def().sensor_defs} == {
        "shop_refresh", "mart_refresh",
    }  # fmt: skip
    assert "s3cr3t-of-shop" not in repr(list(found.values()))


def test_a_replication_has_a_schedule_of_its_own(put: Put, load: Load) -> None:
    put("shop/defs.yaml", SHOP.replace("{schedule}", "schedule: 5m"))
    orders = specs(load())[key("raw/orders")]
    assert orders.metadata["streamtables/resolved_schedule"] == "5m"


def test_every_option_of_a_replication_is_a_setting() -> None:
    renamed = {"publisher", "schema", "copy", "address", "root"}
    # A lake is read with the credentials of the resource.
    elsewhere = renamed | {"storage_options"}
    known = {each.name for each in fields(ReplicationSettings)}
    for declared in (Replication, FromPostgres, FromLake):
        assert {each.name for each in fields(declared)} - elsewhere <= known


def test_settings_become_the_declaration() -> None:
    said = ReplicationSettings("other", lake="/other", publications=("p",), copy_data=False)
    made = said.declaration()
    assert (made.replication.publisher.place, made.replication.copy) == ("/other", False)
    week = replace(said, slot_deadline=timedelta(days=7)).declaration().replication.publisher
    assert isinstance(week, FromLake) and week.slot_deadline == timedelta(days=7)
    with pytest.raises(InvalidDefinition, match="from a server, and has slot_deadline"):
        ReplicationSettings(
            "other", postgres="host=db", publications=("p",), slot_deadline=timedelta(days=7)
        )
    with pytest.raises(InvalidDefinition, match="names nothing to read from"):
        ReplicationSettings("other").declaration()
    with pytest.raises(InvalidDefinition, match="names both a server and a lake"):
        ReplicationSettings("other", lake="/other", postgres="host=db").declaration()
    with pytest.raises(InvalidDefinition, match="reads from a lake, and has tables"):
        ReplicationSettings("other", lake="/other", tables=("public.orders",))
    with pytest.raises(InvalidDefinition, match="reads from a lake, and has capture"):
        ReplicationSettings("other", lake="/other", capture="auto")
