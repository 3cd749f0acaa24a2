"""Stream tables over tables of Spark's catalog, as Dagster runs them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import StreamTable, StreamTablesResource, build_definitions
from dagster_streamtables.runtime.catalogs import external_catalogs
from orchestration.place import ticked


@pytest.fixture(autouse=True)
def recall_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process found out."""
    monkeypatch.setattr(external_catalogs, "_RECALLED", -1.0)


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of Spark's catalog."""
    schema = f"shop_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path}/warehouse'").collect()
    spark.sql(f"CREATE TABLE {schema}.orders (id BIGINT, amount BIGINT) USING delta").collect()
    spark.sql(f"INSERT INTO {schema}.orders VALUES (1, 10), (2, 20)").collect()
    yield f"{schema}.orders"
    spark.sql(f"DROP SCHEMA {schema} CASCADE").collect()


def test_a_code_location_follows_a_table_of_a_catalog(
    spark: SparkSession, orders: str, tmp_path: Path
) -> None:
    schema = orders.partition(".")[0]
    resource = StreamTablesResource(root=str(tmp_path / "lake"), catalogs={schema: "spark"})
    query = f"SELECT id, amount FROM {orders} WHERE amount > 10"
    table = StreamTable("mart.large", query, schedule="1s")

    def definitions() -> dg.Definitions:
        return build_definitions(
            tables=[table],
            resource=resource,
            min_schedule_seconds=0,
        )

    instance = dg.DagsterInstance.ephemeral()
    graph = definitions().resolve_asset_graph()
    assert graph.get(dg.AssetKey(["mart", "large"])).parent_keys == {
        dg.AssetKey([schema, "orders"])
    }
    assert ticked(definitions(), instance).run_requests  # the first refresh, which asks Spark
    defs = definitions()
    done = dg.materialize([*(defs.assets or [])], resources=defs.resources, instance=instance)
    assert done.success
    spark.sql(f"INSERT INTO {orders} VALUES (3, 30)").collect()
    columns = build_definitions(
        tables=[table], resource=resource, min_schedule_seconds=0, compile_at_load=True
    )
    spec = columns.resolve_asset_graph().get(dg.AssetKey(["mart", "large"])).metadata
    assert [each.name for each in spec["dagster/column_schema"].columns] == ["id", "amount"]
    [request] = ticked(defs, instance).run_requests or []
    assert request.asset_selection == [dg.AssetKey(["mart", "large"])]
    done = dg.materialize([*(defs.assets or [])], resources=defs.resources, instance=instance)
    assert done.success
    rows = sorted(tuple(row) for row in resource.lake().read("mart.large").collect())
    assert rows == sorted(map(tuple, spark.sql(query).collect()))
    assert len(rows) == 2


def test_a_table_that_no_catalog_has_is_waited_for(
    spark: SparkSession, orders: str, tmp_path: Path
) -> None:
    """One run asks Spark; after that the sensor knows that there is nothing to read."""
    resource = StreamTablesResource(
        root=str(tmp_path / "lake"), catalogs={orders.partition(".")[0]: "spark"}
    )
    table = StreamTable("mart.t", f"SELECT id FROM {orders}_later", schedule="52w")
    defs = build_definitions(tables=[table], resource=resource)
    instance = dg.DagsterInstance.ephemeral()
    assert ticked(defs, instance).run_requests
    with pytest.raises(dg.Failure, match="the catalog does not know the table"):
        dg.materialize([*(defs.assets or [])], resources=defs.resources, instance=instance)
    told = ticked(build_definitions(tables=[table], resource=resource), instance)
    assert not told.run_requests
    assert "which does not exist" in (told.skip_message or "")
