"""The life of a replication: created, altered, disabled, dropped; its tables come and go."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from dagster_streamtables import FromPostgres, Replication
from dagster_streamtables.errors import (
    InvalidDefinition,
    LostPublisher,
    PublisherProblem,
    RefusedOperation,
    ReplicationConflict,
    TargetProblem,
)
from dagster_streamtables.replication import TableState
from dagster_streamtables.replication.lifecycle.replication_errors import (
    DisabledReplication,
    MissingReplication,
    ReplicationInUse,
)
from dagster_streamtables.runtime.errors.slot_errors import LostSlot
from dagster_streamtables.runtime.observe.monitor import EventKind
from dagster_streamtables.runtime.storage.documents import Ledger
from replication.lifecycle.origins import (
    AnyOrigin,
    LakeOrigin,
    Origin,
    PostgresOrigin,
    Subscriber,
    published,
)
from replication.postgres.database import Database

T = "public.t"


def declared(origin: Origin, **settings: Any) -> Replication:
    return Replication("r", origin.declared("p"), **settings)


def begun(origin: AnyOrigin, here: Subscriber, **settings: Any) -> AnyOrigin:
    """Published and copied."""
    here.refresh(declared(published(origin), **settings))
    return origin


def states(here: Subscriber) -> dict[str, TableState]:
    return {each.name: each.state for each in here.read("r").tables}


def test_from_creation_to_the_end(origin: Origin, here: Subscriber) -> None:
    published(origin)
    made = here.create(declared(origin, targets={T: "raw.shop"}))
    assert [each.target for each in made.tables] == ["raw.shop"]
    assert (made.tables[0].state, made.slot, made.error) == ("new", "r", None)
    first = here.refresh("r")
    assert (first.action, first.tables["raw.shop"].copied, first.complete) == ("COPY", 2, True)
    assert here.refresh("r").action == "NO_DATA"

    origin.insert("t", (3, "c"))
    lag = here.lag("r")
    assert lag.bytes and lag.seconds >= 0
    origin.update("t", "k = 1", v="'A'")
    origin.delete("t", "k = 2")
    done = here.refresh("r")
    table = done.tables["raw.shop"]
    assert (done.action, table.inserted, table.updated, table.deleted) == ("CHANGES", 1, 1, 1)
    assert here.rows("raw.shop") == Counter([(1, "A"), (3, "c")])
    status = here.read("r")
    assert (status.tables[0].position, status.tables[0].rows) == (table.position, 2)
    assert status.refreshed_at is not None and [s.name for s in here.list()] == ["r"]
    assert here.lag("r").bytes == 0

    here.drop("r")
    assert here.list() == [] and origin.slots() == []
    assert here.rows("raw.shop") == Counter([(1, "A"), (3, "c")])
    with pytest.raises(MissingReplication, match='there is no replication "r"'):
        here.read("r")


def test_tables_come_and_go(origin: Origin, here: Subscriber) -> None:
    begun(origin, here)
    origin.create("u")
    origin.insert("u", (7, "u"))
    origin.add("p", "u")
    origin.insert("t", (3, "c"))
    done = here.refresh("r")
    assert (done.tables["public.u"].copied, done.tables[T].inserted) == (1, 1)
    origin.insert("u", (8, "u"))
    origin.remove("p", "t")
    origin.insert("t", (4, "d"))
    here.refresh("r")
    assert states(here) == {T: "removed", "public.u": "ready"}
    assert here.rows("u") == Counter([(7, "u"), (8, "u")])
    assert sum(here.rows("t").values()) == 3

    # A table that comes back is copied like a new one, and meets the rows that stayed.
    origin.add("p", "t")
    origin.insert("u", (9, "u"))
    with pytest.raises(ReplicationConflict, match="a row that the target already has"):
        here.refresh("r")
    assert sum(here.rows("u").values()) == 3, "others go on"
    here.copy("r", T)
    assert sum(here.rows("t").values()) == 4
    assert here.check("r").equal


def test_without_a_copy_only_changes_are_applied(slotted: Origin, here: Subscriber) -> None:
    published(slotted)
    here.refresh(Replication("other", slotted.declared("p")))
    here.drop("other")
    slotted.insert("t", (3, "while nobody listened"))
    here.create(declared(slotted, copy=False))
    assert slotted.slots() == ["r"]
    slotted.insert("t", (4, "d"))
    done = here.refresh("r")
    assert (done.action, done.tables[T].inserted) == ("CHANGES", 1)
    check = here.check("r")
    assert (check.tables[T].missing, check.tables[T].unexpected) == (1, 0)
    row = {"k": 3, "v": "while nobody listened"}
    assert check.tables[T].sample == [{**row, "__difference": "missing", "__copies": 1}]
    assert check.equal and "were not copied" in check.tables[T].note


def test_a_definition_alone_asks_nothing_of_the_publisher(here: Subscriber) -> None:
    nobody = FromPostgres("postgresql://nobody.invalid/shop", ["p"])
    made = here.create(Replication("r", nobody, enabled=False))
    assert (made.enabled, made.tables) == (False, ())
    with pytest.raises(DisabledReplication, match='replication "r" is disabled'):
        here.refresh("r")
    here.drop("r")


def test_a_conflict_stops_until_it_is_mended_or_skipped(origin: Origin, here: Subscriber) -> None:
    begun(origin, here)
    mine = here.target("t").to_pyarrow_table().slice(0, 1).set_column(0, "k", [[3]])
    write_deltalake(here.lake.location("t"), mine, mode="append")
    origin.insert("t", (3, "c"))
    for errors in (1, 2):
        with pytest.raises(ReplicationConflict, match="conflicts with a row") as told:
            here.refresh("r")
        status = here.read("r")
        assert (status.errors, status.enabled) == (errors, True)
        assert status.error is not None and "conflicts with a row" in status.error
    position = int(str(told.value.where).rpartition("position ")[2])
    with pytest.raises(RefusedOperation, match="is applied already"):
        here.skip("r", 0, T)
    here.skip("r", position, T)
    assert here.read("r").skips == (f"{T}@{position}",)
    origin.insert("t", (4, "d"))
    assert here.refresh("r").skipped == (f"{T}@{position}",)
    assert (here.read("r").skips, here.read("r").errors) == ((), 0)
    assert here.rows("t", ["k"]) == Counter([(1,), (2,), (3,), (4,)])
    assert not here.check("r").equal

    origin.delete("t", "k = 3")
    assert here.refresh("r").conflicts == {}
    origin.insert("t", (5, "e"))
    here.alter(declared(origin, on_conflict="skip"))
    here.refresh("r")
    here.target("t").delete("k = 5")
    origin.delete("t", "k = 5")
    assert here.refresh("r").conflicts == {"delete_missing": 1}
    assert here.read("r").conflicts == {"delete_missing": 1}


def test_the_first_error_that_lasts_disables(origin: Origin, here: Subscriber) -> None:
    begun(origin, here, disable_on_error=True)
    shutil.rmtree(here.lake.location("t"))
    with pytest.raises(TargetProblem, match="is not the table that was written"):
        here.refresh("r")
    assert not here.read("r").enabled
    with pytest.raises(DisabledReplication, match="is disabled") as told:
        here.refresh("r")
    assert "is not the table that was written" in told.value.why
    here.enable("r")
    here.copy("r")
    assert sum(here.rows("t").values()) == 2


@pytest.mark.parametrize("on_slot_lost", ["error", "copy"])
def test_a_lost_slot(slotted: Origin, here: Subscriber, on_slot_lost: Any) -> None:
    begun(slotted, here, on_slot_lost=on_slot_lost)
    for attempt in range(4):
        _lose(slotted)
        slotted.insert("t", (10 + attempt, "lost"))
        if on_slot_lost == "copy" and attempt < 3:
            assert here.refresh("r").tables[T].copied == 3 + attempt
            assert here.check("r").equal
            continue
        with pytest.raises(LostSlot) as told:
            here.refresh("r")
        assert ("more than 3 times" in told.value.why) == (on_slot_lost == "copy")
    assert here.copy("r").tables[T].copied == 6
    assert here.check("r").equal and here.read("r").errors == 0


def test_a_lake_lets_a_slot_go_at_its_deadline_and_tells(
    shop: LakeOrigin, here: Subscriber
) -> None:
    week = replace(published(shop).declared("p"), slot_deadline=timedelta(days=7))
    given = Replication("r", week)
    assert Replication.from_json(json.loads(json.dumps(given.to_json()))) == given
    here.refresh(given)
    shop.insert("t", (3, "c"))
    there, now = shop.lake, datetime.now(UTC)
    assert there.monitor.events(now=now + timedelta(days=4)) == []
    [event] = there.monitor.events(now=now + timedelta(days=6))
    assert (event.table, event.kind) == ("r", EventKind.SLOT_EXPIRES)

    here.refresh(replace(given, publisher=shop.declared("p")))
    assert there.monitor.events(now=now + timedelta(days=6)) == []
    here.refresh(given)
    assert [slot.name for slot in there.slots.expire(now + timedelta(days=8))] == ["r"]
    [event] = there.monitor.events()
    assert (event.table, event.kind) == ("r", EventKind.SLOT_LOST)
    for act in (here.refresh, here.check):
        with pytest.raises(LostSlot, match="was released by the publisher"):
            act("r")
    assert here.copy("r").tables[T].copied == 3
    for wrong in (timedelta(seconds=59), 7):
        with pytest.raises(InvalidDefinition, match="slot_deadline"):
            replace(week, slot_deadline=wrong)


def test_a_deadline_that_a_refresh_may_miss_is_warned_of(
    shop: LakeOrigin, here: Subscriber, caplog: pytest.LogCaptureFixture
) -> None:
    published(shop)
    given = Replication("r", replace(shop.declared("p"), slot_deadline=timedelta(minutes=2)))
    here.refresh(given)
    assert here.read("r").warnings == ()
    here._store.change("r", lambda state: replace(state, longest_refresh=61.0))
    here.refresh(given)
    [warning] = here.read("r").warnings
    assert "took 0:01:01" in warning and "after 0:02:00 (slot_deadline)" in warning
    assert warning not in caplog.text
    short = replace(given.publisher, slot_deadline=timedelta(seconds=100))
    here.alter(replace(given, publisher=short))
    assert "after 0:01:40 (slot_deadline)" in caplog.text


@pytest.mark.parametrize("on_slot_lost", ["error", "copy"])
def test_a_check_tells_a_lost_slot(slotted: Origin, here: Subscriber, on_slot_lost: Any) -> None:
    """A comparison is made in the snapshot of the slot, which a copy would make anew."""
    begun(slotted, here, on_slot_lost=on_slot_lost)
    for insert in (False, True):
        _lose(slotted)
        if insert:
            slotted.insert("t", (3, "lost"))
        for tables in ((), (T,)):
            with pytest.raises(LostSlot, match="no slot") as told:
                here.check("r", *tables)
            assert "streamtables replications copy r" in told.value.fix
    assert slotted.slots() == [] and sum(here.rows("t").values()) == 2
    assert here.copy("r").tables[T].copied == 3
    assert here.check("r").equal


def _lose(origin: Origin) -> None:
    if not origin.slots():
        return
    if isinstance(origin, LakeOrigin):
        origin.lake.slots.drop("r", even_if_read=True)
    elif isinstance(origin, PostgresOrigin):
        origin.database.run("SELECT pg_drop_replication_slot('r')")


def test_a_batch_that_somebody_else_takes_is_noticed(database: Database, here: Subscriber) -> None:
    origin = begun(PostgresOrigin(database), here)
    origin.insert("t", (3, "c"))
    here.refresh("r")
    origin.insert("t", (4, "stolen"))
    database.run(
        "SELECT pg_logical_slot_get_binary_changes('r', NULL, NULL, 'proto_version', '1', "
        "'publication_names', 'p')"
    )
    with pytest.raises(LostSlot, match='another reader has moved slot "r"'):
        here.refresh("r")
    assert sum(here.rows("t").values()) == 3
    here.copy("r")
    assert here.rows("t")[(4, "stolen")] == 1


def test_one_works_and_the_others_are_told(origin: Origin, here: Subscriber) -> None:
    published(origin)
    here.create(declared(origin))
    at_work, go_on = threading.Event(), threading.Event()

    def stop(step: str) -> None:
        if step == "apply":
            at_work.set()
            assert go_on.wait(60)

    here.refresh("r")
    origin.insert("t", (3, "c"))
    other = here.again()
    other._runs.step = stop
    thread = threading.Thread(target=other.refresh, args=("r",))
    thread.start()
    assert at_work.wait(60)
    assert here.read("r").worker.startswith("process ")
    for act in (here.refresh, here.copy, here.drop, here.detach):
        with pytest.raises(ReplicationInUse, match="another process refreshes"):
            act("r")
    go_on.set()
    assert here.refresh("r", wait=60).action == "NO_DATA"
    thread.join()
    assert here.rows("t")[(3, "c")] == 1


def test_who_was_taken_over_stores_and_confirms_nothing(
    origin: Origin, here: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease ended while it slept: the other did the work, and what it does is left out."""
    begun(origin, here)
    origin.insert("t", (3, "c"))
    slow = here.again()

    def taken_over(step: str) -> None:
        if step == "apply":
            state = here._store.read("r")
            assert state.lease is not None
            ended = replace(state.lease, until=state.lease.until - timedelta(hours=1))
            here._store.change("r", lambda state: replace(state, lease=ended))
            assert here.refresh("r").action == "CHANGES"

    slow._runs.step = taken_over
    with pytest.raises(ReplicationInUse, match="has taken replication"):
        slow.refresh("r")
    assert here.rows("t")[(3, "c")] == 1
    status = here.read("r")
    assert (status.error, status.worker) == (None, "")


@pytest.mark.parametrize("left", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_replication_that_an_earlier_version_stored_goes_on(
    left: timedelta, origin: Origin, here: Subscriber
) -> None:
    begun(origin, here)
    ledger = Ledger(f"{here.lake.root}/_streamtables/replications/r")
    entry = ledger.read()
    assert entry is not None
    until = (datetime.now(UTC) + left).isoformat()
    worker = {"id": "a", "host": "elsewhere", "process": 7, "birth": "b", "until": until}
    stored = {name: each for name, each in entry.value.items() if name != "lease"}
    ledger.append({**stored, "worker": worker}, entry.version)
    origin.insert("t", (3, "c"))
    if left > timedelta():
        with pytest.raises(ReplicationInUse) as told:
            here.refresh("r")
        assert "process 7 on elsewhere does" in told.value.why
        return
    assert here.refresh("r").action == "CHANGES"
    assert here.rows("t")[(3, "c")] == 1


def test_disabled_detached_and_dropped_without_its_publisher(
    database: Database, here: Subscriber
) -> None:
    origin = begun(PostgresOrigin(database), here)
    here.disable("r")
    with pytest.raises(DisabledReplication):
        here.refresh("r")
    here.enable("r")
    away = replace(origin.declared("p"), address="postgresql://127.0.0.1:1/shop")
    here.alter(declared(origin, add_columns=True))
    here.alter(Replication("r", away))
    with pytest.raises(LostPublisher):
        here.refresh("r")
    with pytest.raises(LostPublisher, match="cannot be reached") as told:
        here.drop("r")
    assert "detach" in told.value.fix
    here.detach("r")
    with pytest.raises(RefusedOperation, match="has no slot"):
        here.enable("r")
    here.drop("r")
    assert origin.slots() == ["r"] and here.list() == []
    with pytest.raises(RefusedOperation, match='slot "r" already exists at the publisher'):
        here.create(declared(origin))
    assert here.list() == [] and origin.slots() == ["r"]


def test_a_table_of_a_server_that_is_created_again_is_told(
    database: Database, here: Subscriber
) -> None:
    origin = begun(PostgresOrigin(database), here)
    database.run("DROP TABLE t")
    origin.create("t")
    origin.add("p", "t")
    origin.insert("t", (7, "another"))
    with pytest.raises(PublisherProblem, match="was replaced by another table"):
        here.refresh("r")
    assert sum(here.rows("t").values()) == 2
    here.copy("r", T)
    assert here.rows("t") == Counter([(7, "another")])
    origin.insert("t", (8, "more"))
    here.refresh("r")
    assert here.check("r").equal


def test_how_changes_come_is_told(database: Database, shop: LakeOrigin, here: Subscriber) -> None:
    by_log = published(PostgresOrigin(database))
    here.refresh(declared(by_log))
    assert here.captures("r") == {T: "WAL"}
    here.refresh(Replication("s", published(shop).declared("p"), schema="other"))
    assert here.captures("s") == {T: "LOG"}
    triggers = replace(by_log.declared("p"), capture="trigger")
    here.refresh(Replication("triggers", triggers, schema="triggers"))
    assert here.captures("triggers") == {T: "TRIGGER"}
    here.drop("triggers")
    assert by_log.slots() == ["r"]


def test_storage_options_of_a_declaration_are_used_and_not_stored(
    shop: LakeOrigin, here: Subscriber
) -> None:
    given = replace(published(shop).declared("p"), storage_options={"secret_key": "s3cret"})
    declared_ = Replication("r", given)
    here.refresh(declared_)
    state = here._store.read("r")
    assert here._runs.publisher(state)._lake.storage_options == given.storage_options  # type: ignore[attr-defined]
    files = [each for each in Path(here.lake.root).rglob("*") if each.is_file()]
    stored = b"".join(each.read_bytes() for each in files)
    assert b"s3cret" not in stored and "s3cret" not in repr(declared_)


def test_the_publication_of_tables_is_made_and_dropped(
    database: Database, here: Subscriber
) -> None:
    origin = published(PostgresOrigin(database), "t", "u")
    shop = FromPostgres(database.address, tables=["public.t"])
    here.refresh(Replication("Shop-1", shop))
    names = "SELECT pubname::text FROM pg_publication ORDER BY 1"
    assert database.run(names) == [("p",), ("shop_1",)]
    more = replace(shop, tables=("public.t", "public.u"))
    assert here.refresh(Replication("Shop-1", more)).tables["public.u"].copied == 2
    with pytest.raises(PublisherProblem, match="already exists"):
        here.create(Replication("other", shop, slot="p"))
    here.drop("Shop-1")
    assert (database.run(names), origin.slots()) == ([("p",)], [])


def test_replications_to_one_table_are_warned_of(
    tmp_path: Path, here: Subscriber, caplog: pytest.LogCaptureFixture
) -> None:
    two = LakeOrigin(tmp_path / "two")
    two.create("t")
    two.insert("t", (9, "z"))
    two.publish("p", "t")
    begun(LakeOrigin(tmp_path / "one"), here)
    made = here.create(Replication("s", two.declared("p")))
    assert made.warnings == ('replication "r" writes to "public.t", too',)
    assert made.warnings[0] in "".join(caplog.messages)
    here.refresh("s")
    assert sum(here.rows("t").values()) == 3
    with pytest.raises(RefusedOperation, match="cannot be copied again"):
        here.copy("s")
    assert sum(here.rows("t").values()) == 3


def test_following_goes_on_until_it_is_stopped(origin: Origin, here: Subscriber) -> None:
    published(origin)
    here.create(declared(origin))
    followed = here.follow("r", seconds=0)
    assert next(followed).action == "COPY"
    origin.insert("t", (3, "c"))
    assert next(followed).action == "CHANGES"
    here.disable("r")
    with pytest.raises(DisabledReplication):
        next(followed)


def test_a_refresh_stops_where_it_is_told(origin: Origin, here: Subscriber) -> None:
    begun(origin, here)
    for k in range(10, 16):
        origin.insert("t", (k, "x"))
    part = here.refresh("r", max_rows=2)
    assert (part.complete, part.tables[T].inserted) == (False, 2)
    assert here.refresh("r").tables[T].inserted == 4
