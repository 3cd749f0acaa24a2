"""What is seen of stream tables and done with them: status, history, events, drop, a graph."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.declare.schedule import Cron, Duration
from dagster_streamtables.errors import (
    FailedQuery,
    InvalidDefinition,
    RefusedOperation,
    SourceProblem,
)
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from dagster_streamtables.runtime.observe.monitor import EventKind
from dagster_streamtables.runtime.observe.table_status import Condition, Status, TableDeclaration
from runtime.delta import write
from runtime.orders import LARGE, NOWHERE, TOTALS, orders, source
from runtime.refreshes import each_refreshed, maintained

TOP = maintained("mart.top", "SELECT MAX(total) AS most FROM mart.totals")
KINDS = maintained(
    "mart.kinds",
    "SELECT COUNT(*) AS customers FROM (SELECT customer, SUM(amount) AS t FROM orders "
    "GROUP BY customer) WHERE t > 3",
)
HOUR = Duration("1h", 3600)


def status(
    lake: Lake, name: str, *tables: StreamTable | TableDeclaration, now: datetime | None
) -> Status:
    return {each.table: each for each in lake.monitor.status(tables or None, now=now)}[name]


def later(**time: float) -> datetime:
    return datetime.now(UTC) + timedelta(**time)


def test_a_table_is_new_then_active_then_stale_and_says_since_when(lake: Lake) -> None:
    declared = TableDeclaration(TOTALS.name, TOTALS, HOUR, "1h")
    new = status(lake, TOTALS.name, declared, now=None)
    assert (new.status, new.populated, new.schedule) == (Condition.NEW, False, "CALCULATED")
    assert (new.rows, new.staleness_seconds, new.stale, new.sources) == (None, None, None, ())

    write(lake, "orders", orders(40))
    lake.refresh(TOTALS)
    fresh = status(lake, TOTALS.name, declared, now=later(hours=9))
    assert (fresh.status, fresh.mode, fresh.resolved_schedule) == ("ACTIVE", "DIFFERENTIAL", "1h")
    assert (fresh.rows, fresh.files, fresh.version) == (3, 1, 0)
    assert fresh.bytes == sum(p.stat().st_size for p in parquet(lake, TOTALS.name))
    assert (fresh.staleness_seconds, fresh.stale, fresh.stale_since) == (0, False, None)
    assert fresh.data_timestamp == committed(lake, "orders", 1)
    assert fresh.refreshed_at == committed(lake, TOTALS.name, 0)

    assert source(lake).optimize.compact()["numFilesAdded"] == 1
    source(lake).alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})
    assert status(lake, TOTALS.name, declared, now=later(hours=9)).staleness_seconds == 0
    write(lake, "orders", orders(30))
    first = committed(lake, "orders", source(lake).version())
    write(lake, "orders", orders(31))
    old = status(lake, TOTALS.name, declared, now=first + timedelta(minutes=90))
    assert (old.staleness_seconds, old.stale, old.stale_since) == (5400, True, first)
    assert not status(lake, TOTALS.name, declared, now=first + timedelta(minutes=59)).stale
    assert old.sources[0].versions_behind == source(lake).version() - 1
    assert status(lake, TOTALS.name, TOTALS, now=later(hours=9)).stale is None


def parquet(lake: Lake, name: str) -> list[Path]:
    return sorted(Path(lake.location(name)).glob("*.parquet"))


def committed(lake: Lake, name: str, version: int) -> datetime:
    entry = json.loads(log_of(lake, name, version).read_text().splitlines()[0])
    return datetime.fromtimestamp(entry["commitInfo"]["timestamp"] / 1000, UTC)


def log_of(lake: Lake, name: str, version: int) -> Path:
    return Path(lake.location(name)) / "_delta_log" / f"{version:020d}.json"


def test_a_cron_table_is_late_when_the_tick_after_the_one_that_asked_has_passed(lake: Lake) -> None:
    lake.refresh(TOTALS)
    write(lake, "orders", orders(30))
    daily = TableDeclaration(TOTALS.name, TOTALS, Cron("@daily"), "@daily")
    since = committed(lake, "orders", 1)
    midnight = (since + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    for hours, stale in ((1, False), (23, False), (25, True)):
        found = status(lake, TOTALS.name, daily, now=midnight + timedelta(hours=hours))
        assert found.stale is stale, hours


def test_who_reads_a_stale_stream_table_is_stale_too(lake: Lake) -> None:
    each_refreshed(lake, TOTALS, TOP)
    write(lake, "orders", orders(30))
    found = status(lake, TOP.name, now=committed(lake, "orders", 1) + timedelta(seconds=7))
    assert (found.staleness_seconds, found.declared, found.mode) == (7, False, "DIFFERENTIAL")
    assert found.sources[0].versions_behind == 0
    lake.refresh(TOTALS)
    now = committed(lake, TOTALS.name, 1) + timedelta(seconds=5)
    assert status(lake, TOP.name, now=now).staleness_seconds == 5
    lake.refresh(TOP)
    assert status(lake, TOP.name, now=later(hours=1)).staleness_seconds == 0


def test_data_are_as_of_the_tables_at_the_bottom(lake: Lake) -> None:
    each_refreshed(lake, TOTALS, TOP)
    first = committed(lake, "orders", 0)
    found = {each.table: each.data_timestamp for each in lake.monitor.status()}
    assert found == {TOTALS.name: first, TOP.name: first}
    assert lake.monitor.history(TOP.name)[0].data_timestamp == first

    write(lake, "orders", orders(30))
    second = committed(lake, "orders", 1)
    assert lake.refresh(TOTALS).data_timestamp == second
    found = {each.table: each.data_timestamp for each in lake.monitor.status()}
    assert found == {TOTALS.name: second, TOP.name: first}, "what it does not reflect yet"
    assert lake.refresh(TOP).data_timestamp == second

    write(lake, "orders", orders(31, amount=-1))
    source(lake).delete("id = 31")
    assert lake.refresh(TOTALS).action is Action.NO_DATA, "which commits the frontier"
    third = committed(lake, "orders", source(lake).version())
    assert lake.refresh(TOP).action is Action.NO_DATA, "which commits nothing"
    found = {each.table: each.data_timestamp for each in lake.monitor.status()}
    assert found == {TOTALS.name: third, TOP.name: third}


def test_a_source_that_is_gone_is_an_error_until_it_is_there(lake: Lake) -> None:
    both = StreamTable("mart.both", "SELECT o.id FROM orders o JOIN items i ON i.id = o.id")
    write(lake, "items", orders(1, 2))
    each_refreshed(lake, TOTALS, both)
    aside = Path(lake.location("orders")).rename(Path(lake.root) / "aside")
    write(lake, "items", orders(3))
    for declared in ((), (TableDeclaration(TOTALS.name, TOTALS, HOUR, "1h"), both)):
        found = status(lake, TOTALS.name, *declared, now=later(hours=9))
        assert (found.status, found.why) == (Condition.ERROR, 'there is no table "orders"')
        assert (found.staleness_seconds, found.stale) == (None, None), "nobody knows"
        assert (found.sources[0].newest, found.sources[0].versions_behind) == (None, None)
        assert status(lake, both.name, *declared, now=later(hours=9)).staleness_seconds, "of items"
    told = {(each.table, each.kind): each.message for each in lake.monitor.events()}
    assert told[TOTALS.name, EventKind.BROKEN] == 'there is no table "orders"'
    assert (TOTALS.name, EventKind.REINITIALIZE_NEEDED) not in told, "it would fail"
    assert [each.source for each in lake.checks.behind(TOTALS)] == ["orders"]
    elsewhere = replace(TOTALS, query="SELECT id FROM items")
    assert status(lake, TOTALS.name, elsewhere, now=None).status is Condition.ACTIVE
    aside.rename(lake.location("orders"))
    assert status(lake, TOTALS.name, now=None).status is Condition.ACTIVE


def test_suspended_and_failing_tables_say_so_and_a_damaged_one_hides_no_other(lake: Lake) -> None:
    lake.refresh(TOTALS)
    lake.controls.suspend(TOTALS.name, "moving house")
    shares = StreamTable("mart.shares", "SELECT id FROM nowhere", max_consecutive_errors=2)
    for _ in range(2):
        with pytest.raises(SourceProblem):
            lake.refresh(shares)
    found = status(lake, TOTALS.name, now=None)
    assert (found.status, found.why, found.errors) == ("SUSPENDED", "moving house", 0)
    failing = status(lake, "mart.shares", shares, now=None)
    assert (failing.status, failing.errors) == (Condition.ERROR, 2)
    assert 'there is no table "nowhere"' in failing.error
    assert failing.error_at is not None
    assert status(lake, "mart.shares", replace(shares, query="SELECT 1 AS n"), now=None).errors == 0

    kinds = [each.kind for each in lake.monitor.events([TOTALS, shares])]
    assert sorted(kinds) == ["failed", "reinitialized", "suspended", "suspended"]
    log_of(lake, "orders", 0).write_text("{")
    broken = status(lake, TOTALS.name, shares, now=None)
    assert (broken.status, status(lake, "mart.shares", shares, now=None).errors) == ("ERROR", 2)


def test_the_log_tells_what_each_refresh_did(lake: Lake) -> None:
    done = [lake.refresh(LARGE)]
    write(lake, "orders", orders(*range(30, 34)))
    done.append(lake.refresh(LARGE))
    write(lake, "orders", orders(33))
    source(lake).delete("id < 2 OR id = 33")
    done.append(lake.refresh(LARGE))
    done.append(lake.refresh(LARGE, full=True))
    assert lake.refresh(LARGE).action is Action.NO_DATA, "which leaves nothing to tell"

    past = lake.monitor.history(LARGE.name)
    assert [each.version for each in past] == [each.version for each in reversed(done)]
    for told, refresh in zip(past, reversed(done), strict=True):
        assert (told.action, told.reason) == (refresh.action, refresh.reason)
        assert (told.rows_in, told.mode) == (refresh.rows_in, "DIFFERENTIAL")
        assert told.windows == refresh.windows
        assert (told.inserted, told.deleted) == (refresh.inserted, refresh.deleted)
        assert told.time == committed(lake, LARGE.name, told.version)
        assert told.seconds == pytest.approx(refresh.seconds, abs=0.5)
        assert {"log", "compute", "commit"} <= {*told.phases, *({"compute"} - {*refresh.phases})}
    assert past[0].frontier == {"orders": source(lake).version()}
    assert [each.version for each in lake.monitor.history(LARGE.name, 2)] == [3, 2]
    found = lake.monitor.statistics(LARGE.name)
    assert found.actions == {"FULL": 1, "DIFFERENTIAL": 2, "REINITIALIZE": 1}
    assert (found.refreshes, found.since) == (4, past[-1].time)
    assert found.inserted == sum(each.inserted for each in done)
    assert status(lake, LARGE.name, now=None).refreshes == found.actions


def test_copies_that_are_put_back_are_not_told_as_rows_that_came(lake: Lake) -> None:
    customers = StreamTable("mart.customers", "SELECT customer FROM orders")
    lake.refresh(customers)
    source(lake).delete("id = 1")
    done = lake.refresh(customers)
    told = lake.monitor.history(customers.name)[0]
    assert (told.inserted, told.deleted) == (done.inserted, done.deleted) == (0, 1)


@pytest.mark.long
def test_rows_that_spark_writes_are_told_too(lake: Lake, spark: SparkSession) -> None:
    lake = Lake(lake.root, spark=spark, driver_rows=1)
    lake.refresh(TOTALS)
    write(lake, "orders", orders(30, 31, 33))
    done = lake.refresh(TOTALS)
    assert done.writer == "spark"
    told, first = lake.monitor.history(TOTALS.name)
    assert (told.inserted, told.deleted) == (done.inserted, done.deleted) == (2, 2)
    assert first.inserted == 3


def test_events_are_what_happened_and_what_is_so(lake: Lake) -> None:
    declared = TableDeclaration(TOTALS.name, TOTALS, HOUR, "1h")
    lake.refresh(TOTALS)
    source(lake).delete("id = 1")
    week = {"delta.deletedFileRetentionDuration": "interval 5 hours"}
    source(lake).alter.set_table_properties(week)
    since = committed(lake, "orders", 1)
    found = lake.monitor.events([declared], now=since + timedelta(hours=3))
    assert [each.kind for each in found] == ["retention", "stale", "reinitialized"]
    assert found[1].time == since + timedelta(hours=1)
    assert "its schedule is 1h" in found[1].message
    assert "there is no table yet" in found[2].message
    assert lake.monitor.events([declared], warn_before=timedelta(0), now=since)[0].kind is (
        EventKind.REINITIALIZED
    )
    shutil.rmtree(lake.location("orders"))
    write(lake, "orders", orders(1))
    found = lake.monitor.events([declared])
    assert found[0].kind is EventKind.REINITIALIZE_NEEDED
    assert "created again" in found[0].message


def test_intermediate_tables_are_counted(lake: Lake) -> None:
    lake.refresh(KINDS)
    write(lake, "orders", orders(30))
    lake.refresh(KINDS)
    [kept] = status(lake, KINDS.name, now=None).intermediates
    assert (kept.rows, kept.files >= 1, kept.bytes > 0) == (3, True, True)


@pytest.mark.parametrize(
    "remote",
    [pytest.param(False, id="folder"), pytest.param(True, id="store", marks=pytest.mark.long)],
)
def test_a_dropped_table_leaves_nothing(remote: bool, lake: Lake, spark: SparkSession) -> None:
    root = f"file://{lake.root}" if remote else lake.root
    lake = Lake(root, spark=spark)
    each_refreshed(lake, TOTALS, TOP)
    lake.controls.resume(TOTALS.name)
    with pytest.raises(RefusedOperation) as raised:
        lake.drop(TOTALS.name)
    assert raised.value.what == '"mart.totals" is read by mart.top'
    assert lake.version(TOTALS.name) == 0
    with pytest.raises(RefusedOperation) as raised:
        lake.drop("orders")
    assert "not a stream table" in raised.value.what

    done = lake.drop(TOTALS.name, even_if_read=True)
    assert (done.rows, done.readers) == (3, ("mart.top",))
    assert done.bytes > 0
    assert lake.version(TOTALS.name) is None
    assert lake.retention.stream_tables() == ["mart.top"]
    root = Path(lake.root.removeprefix("file://"))
    left = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    assert not [path for path in left if "totals" in path or "dropped" in path]
    with pytest.raises(MissingSource):
        lake.drop(TOTALS.name)
    lake.drop(TOP.name)
    assert lake.refresh(TOTALS).reason == "there is no table yet"


def test_a_table_that_never_was_leaves_its_control(lake: Lake) -> None:
    lake.controls.suspend("mart.never", "")
    assert lake.drop("mart.never").rows is None
    assert not lake.controls.read("mart.never").suspension
    with pytest.raises(MissingSource):
        lake.drop("mart.never")


@pytest.mark.smoke("a graph with a failing table")
def test_a_graph_is_refreshed_in_order_and_a_failure_holds_up_who_reads_it(lake: Lake) -> None:
    fails = StreamTable("mart.fails", "SELECT id, 1 DIV (id - 3) AS part FROM orders")
    above = StreamTable("mart.above", "SELECT COUNT(*) AS n FROM mart.fails")
    higher = StreamTable("mart.higher", "SELECT n + 1 AS n FROM mart.above")
    told: list[str] = []
    found = lake.refresh_all(
        [higher, TOP, above, fails, TOTALS],
        max_concurrent=2,
        on_outcome=lambda outcome: told.append(outcome.table),
    )
    by = {each.table: each for each in found}
    assert told == [each.table for each in found]
    assert told.index("mart.totals") < told.index("mart.top")
    assert isinstance(by["mart.fails"].error, FailedQuery)
    assert by["mart.above"].held_by == ("mart.fails",)
    assert by["mart.higher"].held_by == ("mart.above",)
    assert {n for n, each in by.items() if each.refresh} == {"mart.totals", "mart.top"}

    write(lake, "orders", orders(30))
    again = lake.refresh_all([TOTALS, TOP])
    assert [each.refresh.action for each in again if each.refresh] == [Action.DIFFERENTIAL] * 2
    full = lake.refresh_all([TOTALS], full=True)
    assert [each.refresh.action for each in full if each.refresh] == [Action.FULL]
    assert DeltaTable(lake.location(TOP.name)).version() == 1


def test_a_circle_is_refused(lake: Lake) -> None:
    a, b = StreamTable("a", "SELECT * FROM b"), StreamTable("b", "SELECT * FROM a")
    with pytest.raises(InvalidDefinition) as raised:
        lake.refresh_all([a, b])
    assert "in a cycle" in raised.value.what


def test_explain_shows_what_serves_each_operator_or_where_the_query_cannot_be_kept(
    lake: Lake,
) -> None:
    lake = Lake(lake.root, spark=NOWHERE)
    found = lake.explain(KINDS)
    between, own = found.queries
    assert found.is_differential
    assert (between.law.split(":")[0], own.reads) == ("fold", (between.name,))
    laws = {line.law for query in found.queries for line in query.operators if line.law}
    assert "fold" in " ".join(laws) or laws
    assert all(line.cost for line in between.operators if line.law)
    assert found.change_sql in str(found.plan and found.plan.change_sql())

    query = "SELECT id,\n  rand() AS r\nFROM orders"
    refused = lake.explain(StreamTable("mart.r", query, mode=Mode.AUTO))
    assert (refused.is_differential, refused.queries) == (False, ())
    assert (refused.place and (refused.place.line, refused.place.column)) == (2, 3)
    assert "rand" in str(refused)


def test_two_processes_drop_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "lake"
    shutil.copytree(Path(__file__).parent / "older_lake", place)
    one, another = Lake(place, spark=NOWHERE), Lake(place, spark=NOWHERE)
    names = one.retention.stream_tables()
    move = Path.rename

    def rename(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", move)
        another.drop(names[1])
        another.drop(names[0])
        return move(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    assert one.drop(names[0]).rows is not None
    assert not set(names[:2]) & set(another.retention.stream_tables())
