"""Tables that a catalog names: Spark's own, on a real server, and Unity Catalog by a server of the
answers that its documentation shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable, subscribe
from dagster_streamtables.declarations import find_problems
from dagster_streamtables.declare.analysis import analyze_tables
from dagster_streamtables.errors import (
    ConflictingCommit,
    EnvironmentProblem,
    InvalidDefinition,
    LostStore,
    RefusedOperation,
    SourceProblem,
)
from dagster_streamtables.runtime.catalogs import external_catalogs
from dagster_streamtables.runtime.catalogs.external_table import ExternalTable
from dagster_streamtables.runtime.catalogs.session_catalog import SessionCatalog
from dagster_streamtables.runtime.catalogs.unity_catalog import UnityCatalog
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from dagster_streamtables.runtime.storage.catalog_memory import CatalogMemory
from named_rows import NamedRows
from runtime.catalog_server import TOKEN, CatalogServer, catalog_server
from runtime.delta import FEED

SPARK = {"spark_catalog": "spark"}


@pytest.fixture
def schema(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A schema of Spark's catalog with a table of orders, which is elsewhere than the lake."""
    name = f"spark_catalog.shop_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE SCHEMA {name} LOCATION '{tmp_path}/warehouse of a shop'").collect()
    spark.sql(
        f"CREATE TABLE {name}.orders (id BIGINT, customer STRING, amount BIGINT) USING delta"
    ).collect()
    spark.sql(
        f"INSERT INTO {name}.orders VALUES (1, 'a', 10), (2, 'b', 20), (2, 'b', 20)"
    ).collect()
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE").collect()


@pytest.fixture
def opened(spark: SparkSession, tmp_path: Path) -> partial[Lake]:
    """`Lake`, of one root; what it needs more is up to the test."""
    return partial(Lake, tmp_path / "lake", spark=spark, catalogs=SPARK)


def rows_of(spark: SparkSession, query: str) -> NamedRows:
    """The rows of a query as plain Spark finds its tables."""
    rows = spark.sql(query)
    return NamedRows.of(rows.columns, [tuple(map(str, row)) for row in rows.collect()])


def rows_in(lake: Lake, name: str) -> NamedRows:
    rows = lake.read(name)
    return NamedRows.of(rows.columns, [tuple(map(str, row)) for row in rows.collect()])


@pytest.mark.parametrize("driver_rows", [None, 0])
@pytest.mark.parametrize("feed", [True, False])
def test_a_catalogs_table_is_maintained(
    spark: SparkSession, opened: partial[Lake], schema: str, driver_rows: int | None, feed: bool
) -> None:
    if feed:
        spark.sql(
            f"ALTER TABLE {schema}.orders SET TBLPROPERTIES (delta.enableChangeDataFeed = true)"
        ).collect()
    lake = opened(driver_rows=driver_rows)
    write_deltalake(lake.location("people"), pa.table({"name": ["a", "b", "c"], "age": [1, 2, 3]}))
    query = f"""
        SELECT o.customer, SUM(o.amount) AS total, COUNT(*) AS orders
        FROM {schema}.orders AS o JOIN people AS p ON p.name = o.customer GROUP BY o.customer
    """
    table = StreamTable("mart.totals", query)
    plain = query.replace("people", f"delta.`{lake.location('people')}`")
    for statement in (
        "",
        f"INSERT INTO {schema}.orders VALUES (3, 'c', 5), (4, 'a', NULL)",
        f"UPDATE {schema}.orders SET amount = amount + 1 WHERE id = 2",
        f"DELETE FROM {schema}.orders WHERE customer = 'b'",
    ):
        if statement:
            spark.sql(statement).collect()
        done = lake.refresh(table)
        assert done.action is (Action.DIFFERENTIAL if statement else Action.REINITIALIZE)
        assert rows_in(lake, table.name) == rows_of(spark, plain)
        assert lake.check(table).equal
    assert lake.refresh(table).action is Action.NO_DATA


def test_a_subscription_follows_a_catalogs_table(
    spark: SparkSession, opened: partial[Lake], schema: str
) -> None:
    lake = opened()
    with subscribe(lake, f"SELECT customer, amount FROM {schema}.orders") as changes:
        first = changes.fetch(None, timeout=0).to_pylist()
        spark.sql(f"INSERT INTO {schema}.orders VALUES (9, 'z', 90)").collect()
        later = changes.fetch(None, timeout=0).to_pylist()
    assert sorted(row["amount"] for row in first for _ in range(row["_diff"])) == [10, 20, 20]
    assert [(row["customer"], row["_diff"]) for row in later if row["customer"]] == [("z", 1)]


def test_a_table_is_known_without_spark_after_it_was_resolved(
    spark: SparkSession, opened: partial[Lake], schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, without = f"{schema}.orders", opened(ask_spark=False)
    table = StreamTable("mart.large", f"SELECT id, amount FROM {name} WHERE amount > 10")
    assert without.version(name) is None
    with pytest.raises(MissingSource, match="the catalog does not know the table"):
        without.plan(table)
    opened().refresh(table)
    spark.sql(f"INSERT INTO {name} VALUES (5, 'a', 50)").collect()

    def refuse(*args: object) -> None:
        raise AssertionError("Spark was asked")

    monkeypatch.setattr(SessionCatalog, "find", refuse)
    monkeypatch.setattr(external_catalogs, "_RECALLED", -1.0)
    for lake in (opened(ask_spark=False), opened()):
        assert lake.version(name) == 2
        head = lake.latest_versions().head(name)
        assert head is not None and head.version == 2
        assert lake.columns(name) == {"id": "bigint", "customer": "string", "amount": "bigint"}
        assert lake.plan(table).key is None


def test_a_table_that_moved_is_found_again(
    spark: SparkSession,
    opened: partial[Lake],
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, name = opened(), f"{schema}.orders"
    table = StreamTable("mart.ids", f"SELECT id FROM {name}")
    lake.refresh(table)
    spark.sql(f"DROP TABLE {name}").collect()
    write_deltalake(tmp_path / "moved", pa.table({"id": [7, 8]}), configuration=FEED)
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{tmp_path}/moved'").collect()
    monkeypatch.setattr(SessionCatalog, "lifetime", -1.0)
    assert lake.refresh(table).action is Action.REINITIALIZE
    assert rows_in(lake, table.name) == rows_of(spark, table.query)


def test_what_is_no_table_is_told(
    spark: SparkSession, opened: partial[Lake], schema: str, tmp_path: Path
) -> None:
    lake = opened()
    spark.sql(f"CREATE VIEW {schema}.seen AS SELECT * FROM {schema}.orders").collect()
    spark.sql(f"CREATE TABLE {schema}.files (id INT) USING parquet").collect()
    write_deltalake(f"{tmp_path}/lake/spark_catalog/twice/orders", pa.table({"id": [1]}))
    refused = {
        f"{schema}.seen": (SourceProblem, "is a view of the catalog"),
        f"{schema}.files": (SourceProblem, "is not a Delta table"),
        f"{schema}.nothing": (MissingSource, "the catalog does not know the table"),
        "spark_catalog.no_schema.t": (MissingSource, "the catalog does not know the table"),
    }
    for name, (kind, message) in refused.items():
        with pytest.raises(kind, match=message):
            lake.refresh(StreamTable("mart.t", f"SELECT id FROM {name}"))
    with pytest.raises(InvalidDefinition, match="belongs to a catalog"):
        lake.refresh(StreamTable(f"{schema}.mine", f"SELECT id FROM {schema}.orders"))
    assert not Path(lake.location("mart.t")).exists()


def test_a_name_of_two_tables_is_refused(
    spark: SparkSession, opened: partial[Lake], schema: str, tmp_path: Path
) -> None:
    name = f"{schema}.orders"
    write_deltalake(f"{tmp_path}/lake/{name.replace('.', '/')}", pa.table({"id": [1]}))
    with pytest.raises(InvalidDefinition, match="has two tables"):
        opened().refresh(StreamTable("mart.t", f"SELECT id FROM {name}"))


def test_a_stream_table_is_registered(
    spark: SparkSession, opened: partial[Lake], schema: str
) -> None:
    lake, mart = opened(register_in="spark_catalog"), f"mart_{uuid.uuid4().hex[:8]}"
    query = f"SELECT customer, SUM(amount) AS total FROM {schema}.orders GROUP BY customer"
    table = StreamTable(f"{mart}.totals", query, description="What people's orders cost \\ each")
    done = lake.refresh(table)
    assert done.reason.endswith("; registered in spark_catalog")
    try:
        assert rows_of(spark, f"SELECT customer, total FROM {mart}.totals") == rows_of(spark, query)
        [said] = spark.sql(f"DESCRIBE DETAIL {mart}.totals").collect()
        assert said["location"] == f"file:{lake.location(table.name)}"
        told = {
            r["col_name"]: r["data_type"]
            for r in spark.sql(f"DESC EXTENDED {mart}.totals").collect()
        }
        assert told["Comment"] == table.description
        lake.register(table, "spark_catalog")  # which changes nothing
        spark.sql(f"DROP TABLE {mart}.totals").collect()
        spark.sql(f"CREATE TABLE {mart}.totals (x INT) USING delta").collect()
        with pytest.raises(RefusedOperation, match="has another table"):
            lake.register(table, "spark_catalog")
        changed = StreamTable(table.name, query.replace("total", "all_of_it"))
        done = lake.refresh(changed)
        assert done.action is Action.REINITIALIZE
        assert (
            "; it could not be registered in spark_catalog: the catalog has another" in done.reason
        )
    finally:
        spark.sql(f"DROP SCHEMA {mart} CASCADE").collect()


# Unity Catalog.


@pytest.fixture
def unity() -> Iterator[CatalogServer]:
    with catalog_server() as server:
        yield server


@pytest.fixture
def of_unity(tmp_path: Path, unity: CatalogServer) -> partial[Lake]:
    write_deltalake(tmp_path / "orders", pa.table({"id": [1, 2]}))
    unity.add("main.shop.orders", f"file://{tmp_path}/orders")
    return partial(Lake, tmp_path / "lake", catalogs={"main": unity.address}, catalog_token=TOKEN)


def test_unity_catalog_is_asked_once_in_a_while(
    of_unity: partial[Lake],
    unity: CatalogServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, name = of_unity(), "main.shop.orders"
    for _ in range(3):
        assert lake.version(name) == 0
        assert lake.columns(name) == {"id": "bigint"}
        assert lake.location(name) == f"{tmp_path}/orders"
    assert unity.asked == [f"/api/2.1/unity-catalog/tables/{name}"]
    assert lake.plan(StreamTable("t", f"SELECT id FROM {name}")).sources == (name,)
    assert len(unity.asked) == 1
    monkeypatch.setattr(UnityCatalog, "lifetime", -1.0)
    write_deltalake(tmp_path / "elsewhere", pa.table({"other": [1]}))
    unity.add(name, f"file://{tmp_path}/elsewhere")
    assert lake.columns(name) == {"other": "bigint"}
    assert lake.version("main.shop.nothing") is None
    asked = len(unity.asked)
    assert lake.version("main.shop.nothing") is None
    assert len(unity.asked) == asked


def test_spark_reads_a_table_by_its_name(
    spark: SparkSession, unity: CatalogServer, schema: str, tmp_path: Path
) -> None:
    """A catalog may refuse the path; here the session has the same table by the same name."""
    name = f"{schema}.orders"
    [said] = spark.sql(f"DESCRIBE DETAIL {name}").collect()
    unity.add(name, said["location"].replace("file:", "file://"))
    lake = Lake(
        tmp_path / "lake",
        spark=spark,
        driver_rows=0,
        catalogs={"spark_catalog": unity.address},
        catalog_token=TOKEN,
    )
    table = StreamTable("t", f"SELECT customer, amount FROM {name} WHERE amount > 10")
    lake.refresh(table)
    spark.sql(f"INSERT INTO {name} VALUES (5, 'a', 50)").collect()
    assert lake.refresh(table).action is Action.DIFFERENTIAL
    assert rows_in(lake, "t") == rows_of(spark, table.query)
    # Another table by that name, elsewhere, of which the catalog will tell later: no rows of it.
    spark.sql(f"INSERT INTO {name} VALUES (6, 'a', 60)").collect()
    write_deltalake(tmp_path / "moved", pa.table({"customer": ["m"] * 3, "amount": [70, 71, 72]}))
    spark.sql(f"DROP TABLE {name}").collect()
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{tmp_path}/moved'").collect()
    before = rows_in(lake, "t")
    with pytest.raises((ConflictingCommit, SourceProblem)):
        lake.refresh(table)
    assert rows_in(lake, "t") == before


MANAGED = {"properties": {"delta.feature.catalogManaged": "supported"}}
PREVIEW = {"properties": {"delta.feature.catalogOwned-preview": "supported"}}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (MANAGED, "are managed by the catalog"),
        (PREVIEW, "are managed by the catalog"),
        ({"table_type": "VIEW"}, "is a view of the catalog"),
        ({"table_type": "MATERIALIZED_VIEW"}, "is a view of the catalog"),
        ({"data_source_format": "ICEBERG"}, "is not a Delta table"),
        ({"storage_location": "dbfs:/tables/orders"}, "a store that cannot be read"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(
    of_unity: partial[Lake], unity: CatalogServer, more: dict[str, object], message: str
) -> None:
    unity.tables["main.shop.orders"] |= more
    with pytest.raises(SourceProblem, match=message):
        of_unity().version("main.shop.orders")


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (401, EnvironmentProblem, "a catalog refuses a request"),
        (403, EnvironmentProblem, "a catalog refuses a request"),
        (429, LostStore, "a catalog does not answer"),
        (503, LostStore, "a catalog does not answer"),
    ],
)
def test_a_catalog_that_refuses_is_told(
    of_unity: partial[Lake],
    unity: CatalogServer,
    status: int,
    kind: type[Exception],
    message: str,
) -> None:
    unity.status = status
    with pytest.raises(kind, match=message) as refused:
        of_unity().refresh(StreamTable("t", "SELECT id FROM main.shop.orders"))
    assert TOKEN not in str(refused.value)


def test_wrong_addresses_and_tokens_are_told(of_unity: partial[Lake], unity: CatalogServer) -> None:
    with pytest.raises(EnvironmentProblem, match="a catalog refuses a request"):
        of_unity(catalog_token="wrong").version("main.shop.orders")
    silent = of_unity(catalogs={"main": "http://127.0.0.1:1"})
    with pytest.raises(LostStore, match="a catalog does not answer"):
        silent.version("main.shop.orders")
    for address in ("catalog.internal", "", "sparks"):
        with pytest.raises(InvalidDefinition, match='the address of the catalog "main"'):
            of_unity(catalogs={"main": address})


def test_the_longest_prefix_decides(tmp_path: Path, unity: CatalogServer) -> None:
    write_deltalake(tmp_path / "orders", pa.table({"id": [1, 2]}))
    unity.add("Main.Shop.orders", f"file://{tmp_path}/orders")
    write_deltalake(tmp_path / "lake/mains/orders", pa.table({"own": [1]}))
    lake = Lake(
        tmp_path / "lake",
        catalogs={"main": "http://127.0.0.1:1", "main.shop": unity.address},
        catalog_token=TOKEN,
    )
    assert lake.columns("Main.Shop.orders") == {"id": "bigint"}
    assert lake.columns("mains.orders") == {"own": "bigint"}
    assert lake.columns(f"delta.`{tmp_path}/orders`") == {"id": "bigint"}


def test_credentials_are_renewed_before_they_end(tmp_path: Path, unity: CatalogServer) -> None:
    unity.add("main.shop.orders", "s3://bucket/orders")
    catalog = UnityCatalog(unity.address, TOKEN)

    def vend(key: str, seconds: float) -> None:
        keys = {"access_key_id": key, "secret_access_key": "s", "session_token": "t"}
        ends = int((time.time() + seconds) * 1000)
        unity.credentials = {"aws_temp_credentials": keys, "expiration_time": ends}

    vend("first", 3600)
    first = catalog.find("main.shop.orders", None)
    assert first is not None
    assert first.storage_options == {
        "AWS_ACCESS_KEY_ID": "first",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "t",
    }
    assert "first" not in repr(first)
    vend("second", 60)
    assert catalog.find("main.shop.orders", first) is first
    unity.tables["main.shop.orders"]["table_id"] = "another"
    second = catalog.find("main.shop.orders", first)
    assert second is not None and second.storage_options["AWS_ACCESS_KEY_ID"] == "second"
    vend("third", 3600)
    third = catalog.find("main.shop.orders", second)  # the second ones end soon
    assert third is not None and third.storage_options["AWS_ACCESS_KEY_ID"] == "third"


def test_credentials_of_azure_and_gcs(unity: CatalogServer) -> None:
    unity.add("main.t", "abfss://c@a.dfs.core.windows.net/t")
    catalog = UnityCatalog(unity.address, TOKEN)
    unity.credentials = {"azure_user_delegation_sas": {"sas_token": "sig=x"}}
    found = catalog.find("main.t", None)
    assert found is not None and found.storage_options == {"AZURE_STORAGE_SAS_TOKEN": "sig=x"}
    assert found.expires is None
    unity.credentials = {"gcp_oauth_token": {"oauth_token": "x"}}
    with pytest.raises(EnvironmentProblem, match="OAuth token"):
        catalog.find("main.t", None)


def test_what_a_catalog_knows_is_asked_again_after_a_minute(
    of_unity: partial[Lake], unity: CatalogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = of_unity()
    assert lake.version("main.shop.later") is None
    unity.tables["main.shop.later"] = unity.tables["main.shop.orders"]
    assert lake.version("main.shop.later") is None
    monkeypatch.setattr(external_catalogs, "_ABSENT", -1.0)
    assert lake.version("main.shop.later") == 0


def test_a_catalog_that_fails_is_not_asked_for_each_table(
    of_unity: partial[Lake], unity: CatalogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, unity.status = of_unity(), 503
    for number in range(5):
        with pytest.raises(LostStore):
            lake.version(f"main.shop.t{number}")
    assert len(unity.asked) == 1
    monkeypatch.setattr(external_catalogs, "_FAILED", -1.0)
    with pytest.raises(LostStore):
        of_unity().version("main.shop.t")
    unity.status = 200
    monkeypatch.setattr(lake.access.catalog.names.catalogs, "_failures", {})
    assert lake.version("main.shop.orders") == 0


def test_lakes_without_spark_share_the_answers(
    of_unity: partial[Lake], unity: CatalogServer
) -> None:
    """A sensor opens one at each tick."""
    for _ in range(3):
        assert of_unity(ask_spark=False).version("main.shop.orders") == 0
    assert len(unity.asked) == 1


@pytest.mark.parametrize("token", ["se\ncret", "se\xe9cret", "se\u2603cret"])
def test_a_token_that_is_none_is_not_told(of_unity: partial[Lake], token: str) -> None:
    with pytest.raises(InvalidDefinition, match="is not a token") as refused:
        of_unity(catalog_token=token)
    assert token not in str(refused.value)


def test_white_space_around_a_token_is_no_part_of_it(of_unity: partial[Lake]) -> None:
    """As in a file of a secret."""
    assert of_unity(catalog_token=f" {TOKEN}\n").version("main.shop.orders") == 0


def test_a_catalog_that_fails_stops_no_other_work(
    of_unity: partial[Lake], unity: CatalogServer, tmp_path: Path
) -> None:
    """A code location loads, and the tables below the root are listed, dropped and vacuumed."""
    lake = of_unity(ask_spark=False)
    write_deltalake(tmp_path / "lake/main/own", pa.table({"id": [1]}))
    write_deltalake(tmp_path / "lake/public/people", pa.table({"id": [1]}))
    unity.status = 503
    reads = StreamTable("a", "SELECT id FROM main.shop.orders")
    [first, other] = analyze_tables([reads, StreamTable("b", "SELECT id FROM people")], lake)
    assert first.error is None and first.doubt is not None
    assert other.plan is not None
    assert lake.retention.stream_tables() == []
    assert lake.retention.readers("b") == ()
    assert lake.retention.needed_since("people") is None
    assert lake.access.catalog.own("main.own") is not None
    assert [each.fatal for each in find_problems([reads], lake)] == [False]


def test_one_table_that_is_refused_stops_no_other(
    of_unity: partial[Lake], unity: CatalogServer
) -> None:
    unity.add("main.shop.google", "gs://bucket/t")
    unity.credentials = {"gcp_oauth_token": {"oauth_token": "x"}}
    lake = of_unity()
    with pytest.raises(EnvironmentProblem, match="OAuth token"):
        lake.version("main.shop.google")
    assert lake.version("main.shop.orders") == 0


def test_a_reader_by_the_name_of_a_catalog_is_known_when_that_is_silent(
    spark: SparkSession, of_unity: partial[Lake], unity: CatalogServer
) -> None:
    """Otherwise its source could be dropped."""
    lake = of_unity(spark=spark)
    write_deltalake(lake.location("people"), pa.table({"id": [1]}))
    lake.refresh(StreamTable("mart.a", "SELECT id FROM people"))
    unity.add("main.mart.a", f"file://{lake.location('mart.a')}")
    lake.refresh(StreamTable("mart.b", "SELECT id FROM main.mart.a"))
    unity.status = 503
    again = of_unity(ask_spark=False)
    assert again.retention.readers("mart.a") == ("mart.b",)
    with pytest.raises(RefusedOperation, match="is read by"):
        again.drop("mart.a")


def test_a_table_below_the_root_is_dropped_whatever_its_name(
    spark: SparkSession, tmp_path: Path, unity: CatalogServer
) -> None:
    """It was there before the catalog."""
    before = Lake(tmp_path / "lake", spark=spark)
    write_deltalake(before.location("people"), pa.table({"id": [1]}))
    before.refresh(StreamTable("main.x.t", "SELECT id FROM people"))
    write_deltalake(tmp_path / "theirs", pa.table({"id": [1]}))
    unity.add("main.x.t", f"file://{tmp_path}/theirs")
    after = Lake(
        tmp_path / "lake", catalogs={"main": unity.address}, catalog_token=TOKEN, ask_spark=False
    )
    assert after.drop("main.x.t").rows == 1
    assert not Path(before.location("main.x.t")).exists()
    assert after.version("main.x.t") == 0  # the catalog's


def test_what_is_written_has_no_name_of_a_catalog(of_unity: partial[Lake]) -> None:
    table = StreamTable("main.shop.mine", "SELECT id FROM main.shop.orders")
    for refuse in (of_unity().plan, of_unity().refresh):
        with pytest.raises(InvalidDefinition, match="belongs to a catalog"):
            refuse(table)


def test_vended_credentials_take_the_place_of_the_lakes(unity: CatalogServer) -> None:
    catalogs = external_catalogs.ExternalCatalogs({"main": unity.address}, token=TOKEN, root="/l")
    unity.add("main.t", "s3://bucket/t")
    unity.add("main.own", "s3://bucket/own")
    keys = {"access_key_id": "v", "secret_access_key": "v", "session_token": "v"}
    unity.credentials = {"aws_temp_credentials": keys}
    catalogs.find("main.t")
    given = {
        "aws_access_key_id": "r", "SECRET_ACCESS_KEY": "r", "token": "r", "AWS_REGION": "x",
        "endpoint": "y", "azure_storage_account_key": "r", "account_name": "z",
        "AWS_SKIP_SIGNATURE": "true", "bearer_token": "r",
    }  # fmt: skip
    assert catalogs.storage_options("s3://bucket/t", given) == {
        "AWS_REGION": "x", "endpoint": "y", "account_name": "z",
        **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), "v"),
    }  # fmt: skip
    assert catalogs.storage_options("s3://bucket/other", given) is given


def test_a_table_of_the_lake_is_not_read_as_a_catalogs(unity: CatalogServer) -> None:
    """With credentials to read, the next refresh could not write it."""
    catalogs = external_catalogs.ExternalCatalogs(
        {"main": unity.address}, token=TOKEN, root="s3a://bucket/lake"
    )
    unity.add("main.mart.revenue", "s3://bucket/lake/mart/revenue")
    unity.credentials = {"aws_temp_credentials": dict.fromkeys(("access_key_id",), "v")}
    unity.credentials["aws_temp_credentials"] |= {"secret_access_key": "v", "session_token": "v"}
    assert catalogs.find("main.mart.revenue") is not None
    for place in ("s3://bucket/lake/mart/revenue", "s3a://bucket/lake/mart/revenue"):
        assert catalogs.storage_options(place, None) is None
        assert catalogs.name_in_spark(place) is None


def test_a_table_that_was_made_again_elsewhere_is_found(
    of_unity: partial[Lake],
    unity: CatalogServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, name = of_unity(), "main.shop.orders"
    assert lake.version(name) == 0
    shutil.rmtree(tmp_path / "orders")
    write_deltalake(tmp_path / "again", pa.table({"other": [1]}))
    unity.add(name, f"file://{tmp_path}/again")
    assert lake.version(name) is None  # it was asked a moment ago
    monkeypatch.setattr(external_catalogs, "_ABSENT", -1.0)
    assert lake.columns(name) == {"other": "bigint"}


def test_without_spark_a_table_that_is_gone_is_missing(tmp_path: Path) -> None:
    memory = CatalogMemory(str(tmp_path / "lake"))
    table = ExternalTable(f"{tmp_path}/gone", "an id")
    memory.keep("sales.orders", external_catalogs.Answer(table, time.time() - 7200))
    lake = Lake(tmp_path / "lake", catalogs={"sales": "spark"}, ask_spark=False)
    assert lake.version("sales.orders") is None
    latest = lake.latest_versions()
    assert latest.head("sales.orders") is None
    assert latest.is_unknown("sales.orders")  # so the sensor asks for a refresh, which asks Spark


def test_a_location_that_is_not_told_is_an_error(
    of_unity: partial[Lake], unity: CatalogServer
) -> None:
    unity.tables["main.shop.orders"]["storage_location"] = None
    with pytest.raises(SourceProblem, match="does not tell where"):
        of_unity().version("main.shop.orders")


def test_many_tries_for_a_table_that_is_not_there_suspend_nothing(
    of_unity: partial[Lake], tmp_path: Path
) -> None:
    lake, table = of_unity(), StreamTable("t", "SELECT id FROM main.shop.later")
    for _ in range(table.max_consecutive_errors + 1):
        with pytest.raises(MissingSource, match="the catalog does not know"):
            lake.refresh(table)


def test_files_are_only_read(of_unity: partial[Lake], tmp_path: Path) -> None:
    """Looking a table up writes nothing below the root."""
    of_unity().version("main.shop.orders")
    assert not (tmp_path / "lake").exists()


@pytest.mark.process
def test_a_table_of_hives_metastore_is_maintained(tmp_path: Path) -> None:
    script = Path(__file__).with_name("hive_catalog.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
