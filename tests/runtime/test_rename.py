"""A renamed stream table keeps its rows: its next refreshes are differential, and exact."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, Mode, StreamTable, View
from dagster_streamtables.changes.subscription_slots import new_slot
from dagster_streamtables.compiler import read
from dagster_streamtables.errors import ConflictingCommit, InvalidDefinition, RefusedOperation
from dagster_streamtables.runtime import rename as module
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from dagster_streamtables.runtime.observe.controls import Controls
from dagster_streamtables.runtime.observe.lease import Heartbeat, Heartbeats, WorkerLease
from dagster_streamtables.runtime.rename import Renaming
from dagster_streamtables.runtime.storage import writer
from named_rows import NamedRows
from runtime.delta import write
from runtime.orders import TOTALS, orders, source
from runtime.refreshes import each_refreshed, maintained, refreshed

OLD, NEW = "mart.totals", "mart.sums"
SUMS = replace(TOTALS, name=NEW)
TOP = maintained("mart.top", f"SELECT SUM(total) AS most FROM {NEW}")
"""A reader, as it is declared after the rename."""


def before(table: StreamTable) -> StreamTable:
    """The declaration of a reader as it was before the rename."""
    return replace(table, query=table.query.replace(NEW, OLD).replace("sums", "totals"))


def actions(lake: Lake, *tables: StreamTable) -> list[Action]:
    return [each.action for each in each_refreshed(lake, *tables)]


NOTHING, CHANGED, AGAIN = Action.NO_DATA, Action.DIFFERENTIAL, Action.REINITIALIZE


@pytest.fixture
def stored(lake: Lake) -> Lake:
    """A lake with two refreshes of the table and of its reader, under the old name."""
    for ids in ((40,), (41, 42)):
        write(lake, "orders", orders(*ids))
        for table in (TOTALS, before(TOP)):
            lake.refresh(table)
    return lake


def test_a_renamed_table_goes_on(stored: Lake, spark: SparkSession) -> None:
    rows = NamedRows.of(("customer", "total"), stored.read(OLD).collect())
    done = stored.rename(OLD, NEW, [SUMS, TOP])
    assert (done.table, done.former, done.rows) == (NEW, OLD, 3)
    assert (done.readers, done.rebuilt) == (("mart.top",), ())
    assert not Path(stored.location(OLD)).exists()
    assert NamedRows.of(("customer", "total"), stored.read(NEW).collect()) == rows

    assert actions(stored, SUMS, TOP) == [NOTHING, NOTHING]
    write(stored, "orders", orders(50, amount=900))
    assert actions(stored, SUMS, TOP) == [CHANGED, CHANGED]
    source(stored).delete("id < 5")
    source(stored).update({"amount": "amount + 1"}, predicate="id = 41")
    assert actions(stored, SUMS, TOP) == [CHANGED, CHANGED]
    query = read(SUMS.query).over(lambda name: f"delta.`{stored.location(name)}`").sql
    plain = NamedRows.of(("customer", "total"), spark.sql(query).collect())
    assert NamedRows.of(("customer", "total"), stored.read(NEW).collect()) == plain

    past = stored.monitor.history(NEW)
    assert [each.action for each in past][-2:] == ["DIFFERENTIAL", "REINITIALIZE"]
    assert f'renamed from "{OLD}"' in [each.reason for each in past]
    [status] = [each for each in stored.monitor.status([SUMS, TOP]) if each.table == NEW]
    assert (status.status, status.refreshes) == ("ACTIVE", {"REINITIALIZE": 1, "DIFFERENTIAL": 3})


def test_it_may_be_renamed_back(stored: Lake) -> None:
    stored.rename(OLD, NEW, [SUMS, TOP])
    write(stored, "orders", orders(50))
    assert actions(stored, SUMS, TOP) == [CHANGED, CHANGED]
    stored.rename(NEW, OLD, [TOTALS, before(TOP)])
    write(stored, "orders", orders(51))
    assert actions(stored, TOTALS, before(TOP)) == [CHANGED, CHANGED]
    stored.rename(OLD, NEW, [SUMS, TOP])
    assert actions(stored, SUMS, TOP) == [NOTHING, NOTHING]


@pytest.mark.parametrize(
    ("query", "action"),
    [
        pytest.param(f"SELECT s.total FROM {NEW} AS s", CHANGED, id="alias"),
        pytest.param(f"SELECT * FROM {NEW} WHERE total > 3", CHANGED, id="star"),
        pytest.param(
            f"SELECT SUM(total) AS n FROM (SELECT total, COUNT(*) AS m FROM {NEW} GROUP BY total) "
            "WHERE m > 0",
            CHANGED,
            id="intermediate",
        ),
        pytest.param(f"SELECT sums.total FROM {NEW}", AGAIN, id="qualified by the name"),
        pytest.param(
            f"SELECT a.total FROM {NEW} AS a JOIN {NEW} AS b ON a.customer = b.customer",
            CHANGED,
            id="twice",
        ),
    ],
)
def test_a_reader_goes_on_if_only_the_name_changed(query: str, action: Action, lake: Lake) -> None:
    reader = maintained("mart.reader", query)
    lake.refresh(TOTALS)
    lake.refresh(before(reader))
    write(lake, "orders", orders(30))
    lake.refresh(TOTALS)
    lake.refresh(before(reader))  # which makes the intermediate table
    done = lake.rename(OLD, NEW, [SUMS, reader])
    assert (done.rebuilt == ("mart.reader",)) == (action is AGAIN)
    write(lake, "orders", orders(31))
    assert actions(lake, SUMS, reader) == [CHANGED, action]


def test_a_reader_through_a_view_goes_on(lake: Lake) -> None:
    def over(name: str) -> tuple[Lake, StreamTable]:
        view = View("mart.big", f"SELECT customer, total FROM {name} WHERE total > 1")
        reader = maintained("mart.reader", "SELECT total FROM mart.big")
        return Lake(lake.root, spark=lake.access.spark, views=[view]), reader

    first, reader = over(OLD)
    first.refresh(TOTALS)
    first.refresh(reader)
    second, reader = over(NEW)
    assert second.rename(OLD, NEW, [SUMS, reader]).rebuilt == ()
    write(lake, "orders", orders(30))
    assert actions(second, SUMS, reader) == [CHANGED, CHANGED]


def test_a_reader_with_another_query_is_rebuilt(stored: Lake) -> None:
    changed = replace(TOP, query=f"SELECT MIN(total) AS most FROM {NEW}")
    assert stored.rename(OLD, NEW, [SUMS, changed]).rebuilt == ("mart.top",)
    assert actions(stored, SUMS, changed) == [NOTHING, AGAIN]


def waits(lake: Lake, table: StreamTable) -> bool:
    done = lake.refresh(table)
    return "waiting for" in done.reason and done.action in (Action.SKIP, Action.NO_DATA)


@pytest.mark.parametrize("how", ["as before", "renamed", "killed"])
def test_what_waited_for_a_reader_waits_after_a_rename(how: str, stored: Lake) -> None:
    """A table that reads the source and a stream table above the renamed one needs both at versions
    that agree, also if a state has the former name."""
    both = StreamTable(
        "mart.both",
        "SELECT COUNT(*) AS n, MAX(t.most) AS most FROM orders AS o CROSS JOIN mart.top AS t",
    )
    sums, top = (TOTALS, before(TOP)) if how == "as before" else (SUMS, TOP)
    stored.refresh(both)
    if how == "killed":
        rename_killed_before("the commit in the reader", stored, SUMS, TOP)
    elif how == "renamed":
        stored.rename(OLD, NEW, [SUMS, TOP])
    write(stored, "orders", orders(60, amount=500))
    assert waits(stored, both)
    assert stored.refresh(sums).action is CHANGED
    assert "waiting for" in stored.refresh(both).reason
    stored.refresh(top)
    assert stored.refresh(both).action in (CHANGED, Action.FULL)
    assert stored.check(both).equal


@pytest.mark.parametrize("killed", [False, True])
def test_readers_that_reflect_other_versions_are_not_combined(killed: bool, stored: Lake) -> None:
    """One reader has not been refreshed since the rename, and another one has."""
    low = replace(TOP, name="mart.low", query=f"SELECT MIN(total) AS least FROM {NEW}")
    stored.refresh(before(low))
    both = StreamTable(
        "mart.both", "SELECT l.least, t.most FROM mart.low AS l CROSS JOIN mart.top AS t"
    )
    stored.refresh(both)
    if killed:
        rename_killed_before("the commit in the reader", stored, SUMS, TOP, low)
    else:
        stored.rename(OLD, NEW, [SUMS, TOP, low])
    for amount in (-500, 700):
        write(stored, "orders", orders(60, amount=amount))
        stored.refresh(SUMS)
        stored.refresh(TOP)
        assert waits(stored, both)
    stored.refresh(low)
    assert stored.refresh(both).action in (CHANGED, Action.FULL)
    assert stored.check(both).equal


def test_a_whole_schema_is_renamed_upstream_tables_first(stored: Lake) -> None:
    best = replace(TOP, name="shop.best")
    stored.rename(OLD, NEW, [SUMS, best])
    assert stored.rename("mart.top", "shop.best", [SUMS, best]).rebuilt == ()
    write(stored, "orders", orders(50))
    assert actions(stored, SUMS, best) == [CHANGED, CHANGED]
    assert stored.retention.stream_tables() == [NEW, "shop.best"]


@pytest.mark.parametrize("mode", [Mode.FULL, Mode.AUTO])
def test_the_mode_plays_no_part(mode: Mode, lake: Lake) -> None:
    lake.refresh(replace(TOTALS, mode=mode))
    sums = replace(SUMS, mode=mode)
    lake.rename(OLD, NEW, [sums])
    assert actions(lake, sums) == [NOTHING]


def test_a_table_that_only_spark_writes_is_renamed(lake: Lake) -> None:
    pairs = replace(TOTALS, query="SELECT id, array(amount, customer) AS pair FROM orders")
    lake.refresh(pairs)
    named = replace(pairs, name=NEW)
    lake.rename(OLD, NEW, [named])
    write(lake, "orders", orders(30))
    assert actions(lake, named) == [CHANGED]


def test_intermediate_tables_move_with_it(lake: Lake) -> None:
    query = (
        "SELECT SUM(t) AS amount FROM (SELECT customer, SUM(amount) AS t FROM orders "
        "GROUP BY customer) WHERE t > 3"
    )
    lake.refresh(replace(TOTALS, query=query))
    write(lake, "orders", orders(30))
    lake.refresh(replace(TOTALS, query=query))
    named = replace(SUMS, query=query)
    lake.rename(OLD, NEW, [named])
    write(lake, "orders", orders(31))
    done = refreshed(lake, named, CHANGED)
    assert [each.action for each in done.intermediates.values()] == [CHANGED]


def test_rows_of_somebody_else_are_found_afterwards(stored: Lake) -> None:
    DeltaTable(stored.location(OLD)).update({"total": "total + 1"}, predicate="customer = 1")
    stored.rename(OLD, NEW, [SUMS, TOP])
    refreshed(stored, SUMS, AGAIN, because="somebody else changed rows")


def test_a_refresh_that_commits_meanwhile_loses_nothing(
    stored: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(stored, "orders", orders(50, amount=300))
    advance = writer.advance

    def after_a_refresh(*arguments: Any) -> Any:
        monkeypatch.setattr(module.writer, "advance", advance)
        assert Lake(stored.root, spark=stored.access.spark).refresh(TOTALS).action is CHANGED
        return advance(*arguments)

    monkeypatch.setattr(module.writer, "advance", after_a_refresh)
    with pytest.raises(ConflictingCommit) as raised:
        stored.rename(OLD, NEW, [SUMS, TOP])
    assert "rename again" in raised.value.fix
    stored.rename(OLD, NEW, [SUMS, TOP])
    assert actions(stored, SUMS, TOP) == [NOTHING, CHANGED]
    write(stored, "orders", orders(51))
    assert actions(stored, SUMS, TOP) == [CHANGED, CHANGED]


def test_the_control_moves_with_it(stored: Lake) -> None:
    stored.controls.suspend(OLD, "moving house")
    stored.rename(OLD, NEW, [SUMS, TOP])
    assert stored.controls.read(OLD).held == ""
    assert stored.controls.read(NEW).held == "moving house"
    assert stored.controls.resume(NEW)
    stored.controls.suspend(OLD, "wait for the rename")
    stored.rename(NEW, OLD, [TOTALS, before(TOP)])
    assert stored.controls.read(OLD).held == "wait for the rename"


class Killed(BaseException):
    """The process ends here."""


STEPS: dict[str, tuple[Any, str, int]] = {
    "the commit": (Renaming, "_commit", 1),
    "the copy of the control": (Controls, "copy", 1),
    "the move": (Path, "rename", 1),
    "the commit in the reader": (Renaming, "_commit", 2),
    "the end of the control": (Controls, "forget", 1),
}
"""The call of a method in whose place a process is killed: the first, or a later one."""


def rename_killed_before(step: str, lake: Lake, *tables: StreamTable) -> None:
    owner, name, nth = STEPS[step]
    real, calls = getattr(owner, name), itertools.count(1)

    def call(*arguments: Any, **named: Any) -> Any:
        if next(calls) == nth:
            raise Killed
        return real(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(owner, name, call)
        lake.rename(OLD, NEW, tables)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("between", [False, True], ids=["at once", "after a change"])
def test_a_killed_rename_leaves_one_table_and_is_finished_by_the_next(
    step: str, between: bool, stored: Lake
) -> None:
    stored.controls.suspend(OLD, "moving house")
    rename_killed_before(step, stored, SUMS, TOP)
    lake = Lake(stored.root, spark=stored.access.spark)  # another process
    there = [each for each in lake.retention.stream_tables() if each != "mart.top"]
    assert there in ([OLD], [NEW])
    moved = there == [NEW]
    assert lake.controls.read(there[0]).held == "moving house"
    if between:
        lake.controls.resume(there[0])
        write(lake, "orders", orders(50))
        assert actions(lake, SUMS if moved else TOTALS) == [CHANGED]
        lake.controls.suspend(there[0], "moving house")

    lake.rename(OLD, NEW, [SUMS, TOP])
    assert lake.retention.stream_tables() == [NEW, "mart.top"]
    assert (lake.controls.read(OLD).held, lake.controls.resume(NEW)) == ("", True)
    assert actions(lake, SUMS, TOP) == [NOTHING, CHANGED if between else NOTHING]
    write(lake, "orders", orders(51))
    assert actions(lake, SUMS, TOP) == [CHANGED, CHANGED]
    lake.rename(OLD, NEW, [SUMS, TOP])
    assert actions(lake, SUMS, TOP) == [NOTHING, NOTHING], "a third call does no harm"


def test_a_reader_that_is_refreshed_after_a_kill_is_rebuilt_and_exact(stored: Lake) -> None:
    rename_killed_before("the commit in the reader", stored, SUMS, TOP)
    assert actions(stored, SUMS, TOP) == [NOTHING, AGAIN]
    stored.rename(OLD, NEW, [SUMS, TOP])
    assert actions(stored, SUMS, TOP) == [NOTHING, NOTHING]


def refused(lake: Lake, *tables: StreamTable, old: str = OLD, new: str = NEW) -> str:
    """What a refused rename says; the table stays as it is."""
    version = lake.version(OLD)
    with pytest.raises(RefusedOperation) as raised:
        lake.rename(old, new, tables)
    error = raised.value
    assert error.why
    assert error.fix
    assert lake.version(OLD) == version
    return error.what


def test_what_would_lose_something_is_refused(stored: Lake) -> None:
    other = replace(SUMS, query=SUMS.query.replace("SUM", "MAX"))
    assert "declared with another query" in refused(stored, other, TOP)
    assert f'"{NEW}" is not declared' in refused(stored, TOP)
    assert f'"{OLD}" is still declared' in refused(stored, SUMS, TOTALS)
    assert f'"mart.top" still reads "{OLD}"' in refused(stored, SUMS, before(TOP))
    write(stored, "costs", pa.table({"n": [1]}))
    assert '"costs" is not a stream table' in refused(stored, SUMS, old="costs")
    with pytest.raises(MissingSource, match=r"mart\.none"):
        stored.rename("mart.none", NEW, [SUMS])
    with pytest.raises(InvalidDefinition, match="note2"):
        stored.rename(OLD, NEW, [replace(SUMS, query="SELECT note2 FROM orders")])
    inside = replace(SUMS, name=f"{OLD}.x")
    assert "cannot be the name of a table" in refused(stored, inside, new=inside.name)
    write(stored, f"{NEW}.other", pa.table({"n": [1]}))
    assert "cannot be the name of a table" in refused(stored, SUMS)


def test_a_name_that_is_stored_already_is_refused(stored: Lake) -> None:
    stored.refresh(SUMS)
    assert f'"{NEW}" is stored already' in refused(stored, SUMS, TOP)
    stored.drop(NEW)
    stored.rename(OLD, NEW, [SUMS, TOP])
    assert actions(stored, SUMS, TOP) == [NOTHING, NOTHING]


def test_a_table_that_a_slot_follows_is_refused(stored: Lake) -> None:
    from dagster_streamtables.changes.position import SubscriptionRequest

    begin = SubscriptionRequest(stored, OLD).start_new(snapshot=True)
    new_slot(stored.slots, "search", begin, None, deadline=None)
    assert "is followed by slots: search" in refused(stored, SUMS, TOP)
    assert stored.drop(OLD, even_if_read=True, dry=True).slots == ("search",)
    stored.slots.drop("search")
    stored.rename(OLD, NEW, [SUMS, TOP])


def test_a_table_of_a_living_worker_is_refused(stored: Lake) -> None:
    worker = WorkerLease(Heartbeats(stored.root), Heartbeat.of_this_process(60))
    assert worker.renew(tables=(OLD,))
    assert "the worker" in refused(stored, SUMS, TOP)
    worker.end()
    stored.rename(OLD, NEW, [SUMS, TOP])


def test_a_table_in_an_object_store_is_refused(stored: Lake, spark: SparkSession) -> None:
    assert "in an object store" in refused(Lake(f"file://{stored.root}", spark=spark), SUMS, TOP)


def test_orphans_are_stored_and_not_declared(stored: Lake) -> None:
    from dagster_streamtables.runtime.observe.monitor import orphans

    assert orphans(stored.monitor, [TOTALS, TOP]) == []
    now = datetime.now(UTC)
    [found] = orphans(stored.monitor, [SUMS, TOP], now=now)
    assert (found.table, found.rows, found.readers) == (OLD, 3, ("mart.top",))
    assert found.bytes
    assert found.refreshed_at
    assert found.age_seconds == (now - found.refreshed_at).total_seconds()
    assert (found.renamed, found.slots, found.problem) == ((NEW,), (), "")
    stored.refresh(SUMS)
    [found] = orphans(stored.monitor, [SUMS, TOP])
    assert found.renamed == (), "the name is stored already"
    log = Path(stored.location(OLD), "_delta_log")
    for commit in log.iterdir():
        commit.write_text("{")
    [found] = orphans(Lake(stored.root).monitor, [SUMS, TOP])
    assert (found.table, found.rows, bool(found.problem)) == (OLD, None, True)
