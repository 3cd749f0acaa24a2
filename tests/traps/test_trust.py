"""Traps of belief: feeds, names, files and rivals that are not what they say."""

from __future__ import annotations

import contextlib
import json
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import Action, ConflictingCommit, Lake, StreamTable
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.delta.delta_log import Logs, TableLog
from runtime.delta import on_spark, write
from runtime.orders import LARGE, TOTALS, orders, source
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed
from runtime.ways import feeds, no_feed, writers
from traps.test_commits import tables, then, two_at_once
from traps.test_schema import mapped

pytestmark = pytest.mark.long


@writers
def test_p02_of_two_first_refreshes_one_commits(
    driver_rows: int | None, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:

    ends = two_at_once(lake, LARGE, "full", monkeypatch)

    assert ends == ["ConflictingCommit", "Refresh"]
    commits = [each["operation"] for each in DeltaTable(lake.location(LARGE.name)).history()]
    # A table that Spark made is told the size of its files by a commit of its own.
    assert commits == ([] if driver_rows is None else ["SET TBLPROPERTIES"]) + ["WRITE"]
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
def test_p04_files_that_were_vacuumed_start_the_table_anew(lake: Lake) -> None:
    each_refreshed(lake, TOTALS, LARGE)
    source(lake).update(predicate="id < 4", updates={"amount": "9"})
    source(lake).delete("id = 10")
    source(lake).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
    )

    for table in (TOTALS, LARGE):
        done = refreshed(lake, table)
        assert done.action is Action.REINITIALIZE
        assert "orders" in done.reason


@writers
def test_p12_a_feed_without_preimages_is_not_believed(lake: Lake) -> None:
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


EXCHANGED = (
    "RENAME COLUMN id TO other",
    "RENAME COLUMN customer TO id",
    "RENAME COLUMN other TO customer",
)


@pytest.mark.parametrize("inserted", [False, True], ids=["alone", "and a row came"])
@pytest.mark.parametrize(
    "changes",
    [("DROP COLUMN customer", "ADD COLUMN customer BIGINT"), EXCHANGED],
    ids=["dropped and added", "exchanged"],
)
def test_p13_a_column_that_only_has_the_name_of_another_is_not_that_one(
    changes: tuple[str, ...], inserted: bool, spark: SparkSession, tmp_path: Path
) -> None:
    lake = mapped(spark, tmp_path)
    table = StreamTable("mart.ids", "SELECT id, customer FROM orders")
    refreshed(lake, table)
    for change in changes:
        on_spark(lake, f"ALTER TABLE {{orders}} {change}")
    if inserted:
        on_spark(lake, "INSERT INTO {orders} (id, customer) VALUES (1, 100)")

    assert refreshed(lake, table).action is Action.REINITIALIZE


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SELECT p.id, p.note FROM {} AS p WHERE p.amount > 3", id="alone"),
        pytest.param(
            "SELECT a.id, b.note FROM {} AS a LEFT JOIN {} AS b ON b.id = a.customer",
            id="joined with itself as it was before",
        ),
    ],
)
def test_p37_a_source_by_its_path(query: str, lake: Lake) -> None:
    place = f"delta.`{lake.location('orders')}`"
    table = maintained("mart.t", query.format(place, place))
    refreshed(lake, table)
    source(lake).update(predicate="id = 2", updates={"note": "'changed'"})
    each_followed(lake, table)
    source(lake).delete("id = 3")
    each_followed(lake, table)


def test_p37_one_table_by_two_names_is_read_at_one_version(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = maintained(
        "mart.t", "SELECT o.id, q.note FROM orders AS o LEFT JOIN public.orders AS q ON q.id = o.id"
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


@writers
@no_feed
def test_p09_a_vacuum_after_a_refresh_without_data_starts_the_table_anew(lake: Lake) -> None:
    """Not as a change that cannot be computed, which would be told as a fallback."""
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


@writers
@pytest.mark.parametrize("query", [PAIRS, SIZES], ids=["a join", "a first intermediate table"])
@no_feed
def test_p09_a_vacuum_of_what_a_change_needs_starts_the_table_anew(query: str, lake: Lake) -> None:
    """The first change makes an intermediate table as it would have been before."""
    table = maintained("needing", query)
    refreshed(lake, table)
    source(lake).delete("id = 4")
    source(lake).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    done = refreshed(lake, table)
    assert done.action is Action.REINITIALIZE
    assert done.reason == '"orders" no longer has all files of the window'
    source(lake).delete("id = 5")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


def test_p13_a_column_renamed_in_a_table_of_an_old_protocol(lake: Lake) -> None:
    """Writer version 5 has column mapping without listing it as a feature."""
    notes = maintained("mart.n", "SELECT id, remark FROM orders")
    on_spark(
        lake,
        "ALTER TABLE {orders} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
    )
    on_spark(lake, "ALTER TABLE {orders} RENAME COLUMN note TO remark")
    refreshed(lake, notes)
    on_spark(lake, "INSERT INTO {orders} VALUES (20, 2, 7, 'new')")
    each_followed(lake, notes)
