"""Traps of belief: feeds, names, files and rivals that are not what they say."""

from __future__ import annotations

import contextlib
import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Action, ConflictingCommit, Lake, StreamTable
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.delta.delta_log import Logs, TableLog
from runtime.delta import refreshed, write
from runtime.orders import LARGE, TOTALS, orders, source
from traps.test_commits import tables, then, two_at_once, writers
from traps.test_history import feeds
from traps.test_schema import mapped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long


@writers
def test_p02_of_two_first_refreshes_one_commits(
    driver_rows: int, lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(lake.root, spark=spark, driver_rows=driver_rows)

    ends = two_at_once(lake, LARGE, "full", monkeypatch)

    assert ends == ["ConflictingCommit", "Refresh"]
    commits = [each["operation"] for each in DeltaTable(lake.location(LARGE.name)).history()]
    # A table that Spark made is told the size of its files by a commit of its own.
    assert commits == ([] if driver_rows else ["SET TBLPROPERTIES"]) + ["WRITE"]
    assert refreshed(lake, LARGE).action is Action.NO_DATA


@tables
def test_p29_rows_that_others_write_during_a_refresh_do_not_stay(
    table: StreamTable, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed(lake, table)
    write(lake, "orders", orders(20))
    columns = pa.schema(DeltaTable(lake.location(table.name)).schema().to_arrow())
    alien = pa.table([pa.array([99], field.type) for field in columns], schema=columns)

    def meanwhile() -> None:
        write_deltalake(lake.location(table.name), alien, mode="append")

    with monkeypatch.context() as patch:
        patch.setattr(differential, "change", then(differential.change, meanwhile))
        with contextlib.suppress(ConflictingCommit):
            lake.refresh(table)

    done = refreshed(lake, table)

    assert done.action is Action.REINITIALIZE


@feeds
def test_p04_files_that_were_vacuumed_start_the_table_anew(
    feed: bool, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "orders", orders(*range(20)), feed=feed)
    for table in (TOTALS, LARGE):
        refreshed(lake, table)
    source(lake).update(predicate="id < 4", updates={"amount": "9"})
    source(lake).delete("id = 10")
    source(lake).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
    )

    for table in (TOTALS, LARGE):
        done = refreshed(lake, table)
        assert done.action is Action.REINITIALIZE
        assert "orders" in done.reason


@pytest.mark.parametrize("driver_rows", [100_000, 0], ids=["read here", "read by Spark"])
def test_p12_a_feed_without_preimages_is_not_believed(
    driver_rows: int, lake: Lake, spark: SparkSession
) -> None:
    lake = Lake(lake.root, spark=spark, driver_rows=driver_rows)
    refreshed(lake, LARGE)
    refreshed(lake, TOTALS)
    _update_without_preimages(lake)

    for table in (LARGE, TOTALS):
        done = refreshed(lake, table)
        assert done.windows["orders"].capture in ("snapshots", "all")


def _update_without_preimages(lake: Lake) -> None:
    """Another writer sets the amount of order 7 to 50 and tells only the new row."""
    folder = Path(lake.location("orders"))
    [old] = source(lake).file_uris()
    rows = pq.read_table(old)
    seven = pa.compute.equal(rows.column("id"), 7)
    amounts = pa.compute.if_else(seven, pa.scalar(50, pa.int32()), rows.column("amount"))
    after = rows.set_column(rows.column_names.index("amount"), "amount", amounts)
    image = after.filter(seven).append_column("_change_type", pa.array(["update_postimage"]))
    new, told = f"part-{uuid.uuid4()}.parquet", f"_change_data/cdc-{uuid.uuid4()}.parquet"
    (folder / "_change_data").mkdir(exist_ok=True)
    pq.write_table(after, folder / new)
    pq.write_table(image, folder / told)
    size, told_size = (folder / new).stat().st_size, (folder / told).stat().st_size
    common = {"partitionValues": {}, "dataChange": True}
    stats = json.dumps({"numRecords": rows.num_rows})
    actions = [
        {"commitInfo": {"timestamp": 1, "operation": "MERGE", "engineInfo": "another writer"}},
        {"remove": {"path": Path(old).name, "deletionTimestamp": 1, **common}},
        {"add": {"path": new, "size": size, "modificationTime": 1, "stats": stats, **common}},
        {"cdc": {"path": told, "size": told_size, **common, "dataChange": False}},
    ]
    log = folder / f"_delta_log/{source(lake).version() + 1:020d}.json"
    log.write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize("how", ["dropped and added", "exchanged"])
def test_p13_a_column_that_only_has_the_name_of_another_is_not_that_one(
    how: str, spark: SparkSession, tmp_path: Path
) -> None:
    lake, place = mapped(spark, tmp_path)
    table = StreamTable("mart.ids", "SELECT id, customer FROM orders")
    refreshed(lake, table)
    if how == "exchanged":
        for old, new in (("id", "other"), ("customer", "id"), ("other", "customer")):
            spark.sql(f"ALTER TABLE {place} RENAME COLUMN {old} TO {new}")
    else:
        spark.sql(f"ALTER TABLE {place} DROP COLUMN customer")
        spark.sql(f"ALTER TABLE {place} ADD COLUMN customer BIGINT")

    assert refreshed(lake, table).action is Action.REINITIALIZE


@pytest.mark.parametrize("feed", [True, False], ids=["feed", "no feed"])
def test_p38_odd_values_a_row_moves_from_one_partition_to_another(
    feed: bool, spark: SparkSession, tmp_path: Path
) -> None:
    """The values of the partitions are those that a path has to encode."""
    lake = Lake(tmp_path, spark=spark)
    odd = ["a b", "50%", "x=y/z", "ü", None]
    rows = pa.table({"id": range(10), "part": odd * 2, "n": [1] * 10})
    write(lake, "parts", rows, feed=feed, partition_by=["part"])
    table = StreamTable(
        "mart.parts",
        "SELECT part, SUM(n) AS n, COUNT(*) AS rows FROM parts GROUP BY part",
        differential_max_change_ratio=0,
    )
    refreshed(lake, table)
    spark.sql(f"UPDATE delta.`{lake.location('parts')}` SET part = '50%' WHERE id = 2")
    moved = refreshed(lake, table)
    write(lake, "parts", pa.table({"id": [10, 11], "part": ["x=y/z", None], "n": [5, 5]}))
    added = refreshed(lake, table)

    assert (moved.action, moved.inserted, moved.deleted) == (Action.DIFFERENTIAL, 2, 2)
    assert added.windows["parts"].capture == "appended"
    held = {row["part"]: row["n"] for row in lake.read(table.name).collect()}
    assert held == {"a b": 2, "50%": 3, "x=y/z": 6, "ü": 2, None: 7}


def test_p37_a_source_by_its_path(lake: Lake) -> None:
    by_path = StreamTable(
        "mart.t",
        f"SELECT p.id, p.amount FROM delta.`{lake.location('orders')}` AS p",
        differential_max_change_ratio=0,
    )
    refreshed(lake, by_path)
    source(lake).delete("id = 3")
    assert refreshed(lake, by_path).action is Action.DIFFERENTIAL


def test_p37_a_join_by_path_reads_the_rows_of_before(lake: Lake) -> None:
    place = f"delta.`{lake.location('orders')}`"
    table = StreamTable(
        "mart.t",
        f"SELECT a.id, b.note FROM {place} AS a LEFT JOIN {place} AS b ON b.id = a.customer",
        differential_max_change_ratio=0,
    )
    refreshed(lake, table)
    source(lake).update(predicate="id = 2", updates={"note": "'changed'"})
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


def test_p37_one_table_by_two_names_is_read_at_one_version(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = StreamTable(
        "mart.t",
        "SELECT o.id, q.note FROM orders AS o LEFT JOIN public.orders AS q ON q.id = o.id",
        differential_max_change_ratio=0,
    )
    refreshed(lake, both)
    place, newest, more = lake.location("orders"), Logs.newest, iter((20, 21))

    def and_another_commit(logs: Logs, location: str) -> TableLog | None:
        log = newest(logs, location)
        if location == place and (new := next(more, None)) is not None:
            write(lake, "orders", orders(new))
        return log

    source(lake).delete("id = 3")
    with monkeypatch.context() as patch:
        patch.setattr(Logs, "newest", and_another_commit)
        lake.refresh(both)

    assert lake.check(both).equal
    assert len(set((lake.frontier(both) or {}).values())) == 1, lake.frontier(both)


@pytest.mark.parametrize("driver_rows", [None, 0], ids=["here", "spark"])
def test_p09_a_vacuum_after_a_refresh_without_data_starts_the_table_anew(
    driver_rows: int | None, spark: SparkSession, tmp_path: Path
) -> None:
    """Not as a change that cannot be computed, which would be told as a fallback."""
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    write(lake, "orders", orders(*range(20)), feed=False)
    write(lake, "orders", orders(20, 21), feed=False)
    refreshed(lake, LARGE)
    source(lake).optimize.compact()
    assert lake.refresh(LARGE).action is Action.NO_DATA
    source(lake).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    source(lake).delete("id = 4")
    done = refreshed(lake, LARGE)
    assert done.action is Action.REINITIALIZE
    assert done.reason == '"orders" no longer has all files of the window'
    assert not done.fallback


PAIRS = "SELECT a.id, b.id AS other FROM orders AS a JOIN orders AS b ON a.id < b.amount"
SIZES = (
    "SELECT n, COUNT(*) AS groups FROM (SELECT customer, COUNT(*) AS n FROM orders "
    "GROUP BY customer) AS g GROUP BY n"
)


@pytest.mark.parametrize("driver_rows", [None, 0], ids=["here", "spark"])
@pytest.mark.parametrize("query", [PAIRS, SIZES], ids=["a join", "a first intermediate table"])
def test_p09_a_vacuum_of_what_a_change_needs_starts_the_table_anew(
    query: str, driver_rows: int | None, spark: SparkSession, tmp_path: Path
) -> None:
    """The first change makes an intermediate table as it would have been before."""
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    write(lake, "orders", orders(*range(20)), feed=False)
    table = StreamTable("needing", query, differential_max_change_ratio=0)
    refreshed(lake, table)
    source(lake).delete("id = 4")
    source(lake).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    done = refreshed(lake, table)
    assert done.action is Action.REINITIALIZE
    assert done.reason == '"orders" no longer has all files of the window'
    source(lake).delete("id = 5")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


def test_p13_a_column_renamed_in_a_table_of_an_old_protocol(
    lake: Lake, spark: SparkSession
) -> None:
    """Writer version 5 has column mapping without listing it as a feature."""
    notes = StreamTable("mart.n", "SELECT id, remark FROM orders", differential_max_change_ratio=0)
    place = f"delta.`{lake.location('orders')}`"
    spark.sql(
        f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    spark.sql(f"ALTER TABLE {place} RENAME COLUMN note TO remark")
    refreshed(lake, notes)
    spark.sql(f"INSERT INTO {place} VALUES (20, 2, 7, 'new')")
    assert refreshed(lake, notes).action is Action.DIFFERENTIAL


def test_p13_rows_after_two_columns_exchanged_their_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, place = mapped(spark, tmp_path)
    ids = StreamTable("mart.ids", "SELECT id, customer FROM orders")
    refreshed(lake, ids)
    for old, new in (("id", "other"), ("customer", "id"), ("other", "customer")):
        spark.sql(f"ALTER TABLE {place} RENAME COLUMN {old} TO {new}")
    spark.sql(f"INSERT INTO {place} VALUES (1, 100, 7, 'new')")
    refreshed(lake, ids)
