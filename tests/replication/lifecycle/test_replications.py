"""The life of a replication: created, altered, disabled, dropped; its tables come and go."""

from __future__ import annotations

import itertools
import json
import shutil
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dagster_streamtables import Lake
from dagster_streamtables.errors import InvalidDefinition, RefusedOperation
from dagster_streamtables.replication.lifecycle.errors import (
    DisabledReplication,
    MissingReplication,
    ReplicationInUse,
)
from dagster_streamtables.replication.lifecycle.from_postgres import FromPostgres
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.replication.model.errors import (
    LostPublisher,
    PublisherProblem,
    ReplicationConflict,
    TargetProblem,
)
from dagster_streamtables.runtime.errors.slots import LostSlot
from dagster_streamtables.runtime.observe.events import EventKind
from dagster_streamtables.runtime.storage.ledger import Ledger
from replication.lifecycle.origins import LakeOrigin, Origin, PostgresOrigin, rows
from replication.postgres.database import Database

T = "public.t"


@pytest.fixture
def replications(lake: Lake) -> Replications:
    return Replications(lake)


def published(origin: Origin, *tables: str) -> Origin:
    for table in tables or ("t",):
        origin.create(table, {"k": "int", "v": "text"}, ["k"])
        origin.insert(table, (1, "a"), (2, "b"))
    origin.publish("p", *(tables or ("t",)))
    return origin


def declared(origin: Origin, **settings: Any) -> Replication:
    return Replication("r", origin.declared("p"), **settings)


def states(replications: Replications) -> dict[str, TableState]:
    return {each.name: each.state for each in replications.read("r").tables}


def test_from_creation_to_the_end(origin: Origin, lake: Lake, replications: Replications) -> None:
    published(origin)
    made = replications.create(declared(origin, targets={T: "raw.shop"}))
    assert [each.target for each in made.tables] == ["raw.shop"]
    assert (made.tables[0].state, made.slot, made.error) == ("new", "r", None)
    first = replications.refresh("r")
    assert (first.action, first.tables["raw.shop"].copied, first.complete) == ("COPY", 2, True)
    assert replications.refresh("r").action == "NO_DATA"

    origin.insert("t", (3, "c"))
    lag = replications.lag("r")
    assert lag.bytes and lag.seconds >= 0
    origin.update("t", "k = 1", v="'A'")
    origin.delete("t", "k = 2")
    done = replications.refresh("r")
    table = done.tables["raw.shop"]
    assert (done.action, table.inserted, table.updated, table.deleted) == ("CHANGES", 1, 1, 1)
    assert rows(lake, "raw.shop") == Counter([(1, "A"), (3, "c")])
    status = replications.read("r")
    assert (status.tables[0].position, status.tables[0].rows) == (table.position, 2)
    assert status.refreshed_at is not None and [s.name for s in replications.list()] == ["r"]
    assert replications.lag("r").bytes == 0

    replications.drop("r")
    assert replications.list() == [] and origin.slots() == []
    assert rows(lake, "raw.shop") == Counter([(1, "A"), (3, "c")])
    with pytest.raises(MissingReplication, match='there is no replication "r"'):
        replications.read("r")


def test_tables_come_and_go(origin: Origin, lake: Lake, replications: Replications) -> None:
    published(origin)
    replications.refresh(declared(origin))
    origin.create("u", {"k": "int", "v": "text"}, ["k"])
    origin.insert("u", (7, "u"))
    origin.add("p", "u")
    origin.insert("t", (3, "c"))
    done = replications.refresh("r")
    assert (done.tables["public.u"].copied, done.tables[T].inserted) == (1, 1)
    origin.insert("u", (8, "u"))
    origin.remove("p", "t")
    origin.insert("t", (4, "d"))
    replications.refresh("r")
    assert states(replications) == {T: "removed", "public.u": "ready"}
    assert rows(lake, "u") == Counter([(7, "u"), (8, "u")])
    assert sum(rows(lake, "t").values()) == 3

    # A table that comes back is copied like a new one, and meets the rows that stayed.
    origin.add("p", "t")
    origin.insert("u", (9, "u"))
    with pytest.raises(ReplicationConflict, match="a row that is there already"):
        replications.refresh("r")
    assert sum(rows(lake, "u").values()) == 3, "others go on"
    replications.copy("r", T)
    assert sum(rows(lake, "t").values()) == 4
    assert replications.check("r").equal


def test_without_a_copy_only_changes_are_applied(
    slotted: Origin, replications: Replications
) -> None:
    published(slotted)
    other = Replication("other", slotted.declared("p"))
    replications.refresh(other)
    replications.drop("other")
    slotted.insert("t", (3, "while nobody listened"))
    replications.create(declared(slotted, copy=False))
    assert slotted.slots() == ["r"]
    slotted.insert("t", (4, "d"))
    done = replications.refresh("r")
    assert (done.action, done.tables[T].inserted) == ("CHANGES", 1)
    check = replications.check("r")
    assert (check.tables[T].missing, check.tables[T].unexpected) == (1, 0)
    assert check.tables[T].sample == [
        {"k": 3, "v": "while nobody listened", "__difference": "missing", "__copies": 1}
    ]
    assert check.equal and "were not copied" in check.tables[T].note


def test_a_definition_alone_asks_nothing_of_the_publisher(lake: Lake) -> None:
    replications = Replications(lake)
    nobody = FromPostgres("postgresql://nobody.invalid/shop", ["p"])
    made = replications.create(Replication("r", nobody, enabled=False))
    assert (made.enabled, made.tables) == (False, ())
    with pytest.raises(DisabledReplication, match='replication "r" is disabled'):
        replications.refresh("r")
    replications.drop("r")


def test_a_conflict_stops_until_it_is_mended_or_skipped(
    origin: Origin, lake: Lake, replications: Replications
) -> None:
    published(origin)
    replications.refresh(declared(origin))
    here = DeltaTable(lake.location("t"))
    here.merge(
        DeltaTable(lake.location("t")).to_pyarrow_table().slice(0, 1).set_column(0, "k", [[3]]),
        "s.k = t.k", source_alias="s", target_alias="t",
    ).when_not_matched_insert_all().execute()  # fmt: skip
    origin.insert("t", (3, "c"))
    for errors in (1, 2):
        with pytest.raises(ReplicationConflict, match="meets a row") as told:
            replications.refresh("r")
        status = replications.read("r")
        assert (status.errors, status.enabled) == (errors, True)
        assert status.error is not None and "meets a row" in status.error
    position = int(str(told.value.where).rpartition("position ")[2])
    with pytest.raises(RefusedOperation, match="is applied already"):
        replications.skip("r", 0, T)
    replications.skip("r", position, T)
    assert replications.read("r").skips == (f"{T}@{position}",)
    origin.insert("t", (4, "d"))
    done = replications.refresh("r")
    assert done.skipped == (f"{T}@{position}",)
    assert (replications.read("r").skips, replications.read("r").errors) == ((), 0)
    assert rows(lake, "t", ["k"]) == Counter([(1,), (2,), (3,), (4,)])
    assert not replications.check("r").equal

    origin.delete("t", "k = 3")
    assert replications.refresh("r").conflicts == {}
    origin.insert("t", (5, "e"))
    replications.alter(declared(origin, on_conflict="skip"))
    replications.refresh("r")
    DeltaTable(lake.location("t")).delete("k = 5")
    origin.delete("t", "k = 5")
    assert replications.refresh("r").conflicts == {"delete_missing": 1}
    assert replications.read("r").conflicts == {"delete_missing": 1}


def test_the_first_error_that_lasts_disables(
    origin: Origin, lake: Lake, replications: Replications
) -> None:
    published(origin)
    replications.refresh(declared(origin, disable_on_error=True))
    shutil.rmtree(lake.location("t"))
    with pytest.raises(TargetProblem, match="is not the table that was written"):
        replications.refresh("r")
    assert not replications.read("r").enabled
    with pytest.raises(DisabledReplication, match="is disabled") as told:
        replications.refresh("r")
    assert "is not the table that was written" in told.value.why
    replications.enable("r")
    replications.copy("r")
    assert sum(rows(lake, "t").values()) == 2


@pytest.mark.parametrize("on_slot_lost", ["error", "copy"])
def test_a_lost_slot(
    slotted: Origin, lake: Lake, replications: Replications, on_slot_lost: Any
) -> None:
    published(slotted)
    replications.refresh(declared(slotted, on_slot_lost=on_slot_lost))
    for attempt in range(4):
        _lose(slotted)
        slotted.insert("t", (10 + attempt, "lost"))
        if on_slot_lost == "copy" and attempt < 3:
            assert replications.refresh("r").tables[T].copied == 3 + attempt
            assert replications.check("r").equal
            continue
        with pytest.raises(LostSlot) as told:
            replications.refresh("r")
        assert ("more than 3 times" in told.value.why) == (on_slot_lost == "copy")
    assert replications.copy("r").tables[T].copied == 6
    assert replications.check("r").equal and replications.read("r").errors == 0


def test_a_lake_lets_a_slot_go_at_its_deadline_and_tells(
    tmp_path: Path, replications: Replications
) -> None:
    origin = LakeOrigin(tmp_path / "publisher")
    published(origin)
    week = replace(origin.declared("p"), slot_deadline=timedelta(days=7))
    given = Replication("r", week)
    assert Replication.from_json(json.loads(json.dumps(given.to_json()))) == given
    replications.refresh(given)
    origin.insert("t", (3, "c"))
    there, now = origin.lake, datetime.now(UTC)
    assert there.monitor.events(now=now + timedelta(days=4)) == []
    [event] = there.monitor.events(now=now + timedelta(days=6))
    assert (event.table, event.kind) == ("r", EventKind.SLOT_EXPIRES)

    replications.refresh(replace(given, publisher=origin.declared("p")))
    assert there.monitor.events(now=now + timedelta(days=6)) == []
    replications.refresh(given)
    assert [slot.name for slot in there.slots.expire(now + timedelta(days=8))] == ["r"]
    [event] = there.monitor.events()
    assert (event.table, event.kind) == ("r", EventKind.SLOT_LOST)
    for act in (replications.refresh, replications.check):
        with pytest.raises(LostSlot, match="was let go by the publisher"):
            act("r")
    assert replications.copy("r").tables[T].copied == 3
    for wrong in (timedelta(seconds=59), 7):
        with pytest.raises(InvalidDefinition, match="slot_deadline"):
            replace(week, slot_deadline=wrong)


def test_a_deadline_that_a_refresh_may_miss_is_warned_of(
    tmp_path: Path, replications: Replications, caplog: pytest.LogCaptureFixture
) -> None:
    origin = LakeOrigin(tmp_path / "publisher")
    published(origin)
    given = Replication("r", replace(origin.declared("p"), slot_deadline=timedelta(minutes=2)))
    replications.refresh(given)
    assert replications.read("r").warnings == ()
    replications._store.change("r", lambda state: replace(state, longest_refresh=61.0))
    replications.refresh(given)
    [warning] = replications.read("r").warnings
    assert "took 0:01:01" in warning and "after 0:02:00 (slot_deadline)" in warning
    assert warning not in caplog.text
    short = replace(given.publisher, slot_deadline=timedelta(seconds=100))
    replications.alter(replace(given, publisher=short))
    assert "after 0:01:40 (slot_deadline)" in caplog.text


@pytest.mark.parametrize("on_slot_lost", ["error", "copy"])
def test_a_check_tells_a_lost_slot(
    slotted: Origin, lake: Lake, replications: Replications, on_slot_lost: Any
) -> None:
    """A comparison is made in the snapshot of the slot, which a copy would make anew."""
    published(slotted)
    replications.refresh(declared(slotted, on_slot_lost=on_slot_lost))
    for insert in (False, True):
        _lose(slotted)
        if insert:
            slotted.insert("t", (3, "lost"))
        for tables in ((), (T,)):
            with pytest.raises(LostSlot, match="no slot") as told:
                replications.check("r", *tables)
            assert "streamtables replications copy r" in told.value.fix
    assert slotted.slots() == [] and sum(rows(lake, "t").values()) == 2
    assert replications.copy("r").tables[T].copied == 3
    assert replications.check("r").equal


def _lose(origin: Origin) -> None:
    if not origin.slots():
        return
    if isinstance(origin, LakeOrigin):
        origin.lake.slots.drop("r", even_if_read=True)
    elif isinstance(origin, PostgresOrigin):
        origin.database.run("SELECT pg_drop_replication_slot('r')")


def test_a_batch_that_somebody_else_takes_is_noticed(
    database: Database, lake: Lake, replications: Replications
) -> None:
    origin = published(PostgresOrigin(database))
    replications.refresh(declared(origin))
    origin.insert("t", (3, "c"))
    replications.refresh("r")
    origin.insert("t", (4, "stolen"))
    database.run(
        "SELECT pg_logical_slot_get_binary_changes('r', NULL, NULL, 'proto_version', '1', "
        "'publication_names', 'p')"
    )
    with pytest.raises(LostSlot, match='somebody else has moved slot "r"'):
        replications.refresh("r")
    assert sum(rows(lake, "t").values()) == 3
    replications.copy("r")
    assert rows(lake, "t")[(4, "stolen")] == 1


def test_one_works_and_the_others_are_told(
    origin: Origin, lake: Lake, replications: Replications
) -> None:
    published(origin)
    replications.create(declared(origin))
    at_work, go_on = threading.Event(), threading.Event()

    def stop(step: str) -> None:
        if step == "apply":
            at_work.set()
            assert go_on.wait(60)

    replications.refresh("r")
    origin.insert("t", (3, "c"))
    other = Replications(Lake(lake.root))
    other._runs.step = stop
    thread = threading.Thread(target=other.refresh, args=("r",))
    thread.start()
    assert at_work.wait(60)
    assert replications.read("r").worker.startswith("process ")
    for act in (replications.refresh, replications.copy, replications.drop, replications.detach):
        with pytest.raises(ReplicationInUse, match="another process refreshes"):
            act("r")
    go_on.set()
    assert replications.refresh("r", wait=60).action == "NO_DATA"
    thread.join()
    assert rows(lake, "t")[(3, "c")] == 1


def test_who_was_taken_over_stores_and_confirms_nothing(
    origin: Origin, lake: Lake, replications: Replications, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease ended while it slept: the other did the work, and what it does is left out."""
    published(origin)
    replications.refresh(declared(origin))
    origin.insert("t", (3, "c"))
    slow = Replications(Lake(lake.root))

    def taken_over(step: str) -> None:
        if step == "apply":
            state = replications._store.read("r")
            assert state.lease is not None
            ended = replace(state.lease, until=state.lease.until - timedelta(hours=1))
            replications._store.change("r", lambda state: replace(state, lease=ended))
            assert replications.refresh("r").action == "CHANGES"

    slow._runs.step = taken_over
    with pytest.raises(ReplicationInUse, match="has taken replication"):
        slow.refresh("r")
    assert rows(lake, "t")[(3, "c")] == 1
    status = replications.read("r")
    assert (status.error, status.worker) == (None, "")


@pytest.mark.parametrize("left", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_replication_that_an_earlier_version_stored_goes_on(
    left: timedelta, origin: Origin, lake: Lake, replications: Replications
) -> None:
    published(origin)
    replications.refresh(declared(origin))
    ledger = Ledger(f"{lake.root}/_streamtables/replications/r")
    entry = ledger.read()
    assert entry is not None
    until = (datetime.now(UTC) + left).isoformat()
    worker = {"id": "a", "host": "elsewhere", "process": 7, "birth": "b", "until": until}
    stored = {name: each for name, each in entry.value.items() if name != "lease"}
    ledger.append({**stored, "worker": worker}, entry.version)
    origin.insert("t", (3, "c"))
    if left > timedelta():
        with pytest.raises(ReplicationInUse) as told:
            replications.refresh("r")
        assert "process 7 on elsewhere does" in told.value.why
        return
    assert replications.refresh("r").action == "CHANGES"
    assert rows(lake, "t")[(3, "c")] == 1


def test_disabled_detached_and_dropped_without_its_publisher(
    database: Database, lake: Lake, replications: Replications
) -> None:
    origin = published(PostgresOrigin(database))
    replications.refresh(declared(origin))
    replications.disable("r")
    with pytest.raises(DisabledReplication):
        replications.refresh("r")
    replications.enable("r")
    away = replace(origin.declared("p"), address="postgresql://127.0.0.1:1/shop")
    replications.alter(declared(origin, add_columns=True))
    replications.alter(Replication("r", away))
    with pytest.raises(LostPublisher):
        replications.refresh("r")
    with pytest.raises(LostPublisher, match="cannot be reached") as told:
        replications.drop("r")
    assert "detach" in told.value.fix
    replications.detach("r")
    with pytest.raises(RefusedOperation, match="has no slot"):
        replications.enable("r")
    replications.drop("r")
    assert origin.slots() == ["r"] and replications.list() == []
    with pytest.raises(RefusedOperation, match='there is a slot "r" at the publisher already'):
        replications.create(declared(origin))
    assert replications.list() == [] and origin.slots() == ["r"]


def test_a_table_of_a_server_that_is_created_again_is_told(
    database: Database, lake: Lake, replications: Replications
) -> None:
    origin = published(PostgresOrigin(database))
    replications.refresh(declared(origin))
    database.run("DROP TABLE t")
    origin.create("t", {"k": "int", "v": "text"}, ["k"])
    origin.add("p", "t")
    origin.insert("t", (7, "another"))
    with pytest.raises(PublisherProblem, match="is another table now"):
        replications.refresh("r")
    assert sum(rows(lake, "t").values()) == 2
    replications.copy("r", T)
    assert rows(lake, "t") == Counter([(7, "another")])
    origin.insert("t", (8, "more"))
    replications.refresh("r")
    assert replications.check("r").equal


def test_how_changes_come_is_told(database: Database, tmp_path: Path, lake: Lake) -> None:
    by_log = published(PostgresOrigin(database))
    replications = Replications(lake)
    replications.refresh(declared(by_log))
    assert replications.captures("r") == {T: "WAL"}
    one = published(LakeOrigin(tmp_path / "one"))
    replications.refresh(Replication("s", one.declared("p"), schema="other"))
    assert replications.captures("s") == {T: "LOG"}
    triggers = replace(by_log.declared("p"), capture="trigger")
    replications.refresh(Replication("triggers", triggers, schema="triggers"))
    assert replications.captures("triggers") == {T: "TRIGGER"}
    replications.drop("triggers")
    assert by_log.slots() == ["r"]


def test_storage_options_of_a_declaration_are_used_and_not_stored(
    tmp_path: Path, lake: Lake, replications: Replications
) -> None:
    origin = published(LakeOrigin(tmp_path / "publisher"))
    given = replace(origin.declared("p"), storage_options={"secret_key": "s3cret"})
    declared_ = Replication("r", given)
    replications.refresh(declared_)
    state = replications._store.read("r")
    assert replications._runs.publisher(state)._lake.storage_options == given.storage_options  # type: ignore[attr-defined]
    stored = b"".join(each.read_bytes() for each in Path(lake.root).rglob("*") if each.is_file())
    assert b"s3cret" not in stored and "s3cret" not in repr(declared_)


def test_the_publication_of_tables_is_made_and_dropped(
    database: Database, lake: Lake, replications: Replications
) -> None:
    origin = published(PostgresOrigin(database), "t", "u")
    shop = FromPostgres(database.address, tables=["public.t"])
    replications.refresh(Replication("Shop-1", shop))
    names = "SELECT pubname::text FROM pg_publication ORDER BY 1"
    assert database.run(names) == [("p",), ("shop_1",)]
    more = replace(shop, tables=("public.t", "public.u"))
    done = replications.refresh(Replication("Shop-1", more))
    assert done.tables["public.u"].copied == 2
    with pytest.raises(PublisherProblem, match="there is a publication"):
        replications.create(Replication("other", shop, slot="p"))
    replications.drop("Shop-1")
    assert (database.run(names), origin.slots()) == ([("p",)], [])


def test_two_lakes_replicate_each_other(tmp_path: Path) -> None:
    one, two = LakeOrigin(tmp_path / "one"), LakeOrigin(tmp_path / "two")
    for each in (one, two):
        each.create("t", {"k": "int", "v": "text"}, ["k"])
        each.publish("p", "t")
    one.insert("t", (1, "one"))
    two.insert("t", (2, "two"))
    to_two, to_one = Replications(two.lake), Replications(one.lake)
    circle = Replication("back", two.declared("p"), copy=False)
    to_two.refresh(Replication("r", one.declared("p"), copy=False))
    with pytest.raises(Exception, match="round in a circle"):
        to_one.create(circle)
    to_two.alter(Replication("r", replace(one.declared("p"), origin="none"), copy=False))
    to_one.create(replace(circle, publisher=replace(two.declared("p"), origin="none")))
    with pytest.raises(InvalidDefinition, match="round in a circle"):
        to_one.alter(circle)
    for _ in range(3):
        to_two.refresh("r")
        to_one.refresh("back")
    one.insert("t", (3, "three"))
    two.insert("t", (4, "four"))
    for _ in range(3):
        to_two.refresh("r")
        to_one.refresh("back")
    assert rows(one.lake, "t") == Counter([(1, "one"), (3, "three"), (4, "four")])
    assert rows(two.lake, "t") == Counter([(2, "two"), (3, "three"), (4, "four")])


class Ring:
    """Three lakes with a table, each of which reads from others."""

    def __init__(self, folder: Path) -> None:
        self.lakes = {name: LakeOrigin(folder / name) for name in "abc"}
        for name, each in self.lakes.items():
            each.create("t", {"k": "int", "v": "text"}, ["k"])
            each.publish("p", "t")
            each.insert("t", (ord(name), name))

    def link(self, source: str, to: str, origin: Any) -> None:
        publisher = replace(self.lakes[source].declared("p"), origin=origin)
        at = Replications(self.lakes[to].lake)
        at.create(Replication(f"from_{source}", publisher, slot=f"of_{to}", copy=False))

    def settle(self) -> None:
        for _ in range(4):
            for each in self.lakes.values():
                at = Replications(each.lake)
                for status in at.list():
                    at.refresh(status.name)


@pytest.mark.parametrize("origins", ["any any any", "none any any", "any none any", "any any none"])
def test_a_circle_over_three_lakes_is_refused(tmp_path: Path, origins: str) -> None:
    ring, (first, second, third) = Ring(tmp_path), origins.split()
    ring.link("a", "b", first)
    ring.link("b", "c", second)
    with pytest.raises(InvalidDefinition, match="round in a circle") as told:
        ring.link("c", "a", third)
    way = (ring.lakes[name].lake.root for name in "abca")
    assert told.value.why == f"rows of public.t would go {' → '.join(way)}"
    assert '"from_c" and "from_b" of' in told.value.what and '"from_a"' in told.value.what
    assert Replications(ring.lakes["a"].lake).list() == []


def test_a_circle_that_a_publication_closes_later_is_refused(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.link("a", "b", "any")
    one, two = ring.lakes["a"], ring.lakes["b"]
    for each in (one, two):
        each.create("other", {"k": "int", "v": "text"}, ["k"])
    two.publish("q", "other")
    back, new = Replications(one.lake), Replications(one.lake)
    back.refresh(Replication("back", two.declared("q"), copy=False))
    two.add("q", "t")
    for each in (back, new, new):
        with pytest.raises(InvalidDefinition, match="round in a circle"):
            each.refresh("back")
    assert "public.t" not in {each.name for each in back.read("back").tables}
    two.remove("q", "t")
    new.refresh("back")
    assert new.read("back").errors == 0


def test_rows_pass_two_links_of_a_circle_at_most(tmp_path: Path) -> None:
    """Where two leave out what was replicated, rows end before they are back."""
    ring = Ring(tmp_path)
    ring.link("a", "b", "any")
    ring.link("b", "c", "none")
    ring.link("c", "a", "none")
    ring.settle()
    for name, each in ring.lakes.items():
        each.insert("t", (100 + ord(name), f"new {name}"))
    ring.settle()
    have = {n: {v for _, v in rows(each.lake, "t")} for n, each in ring.lakes.items()}
    new = {name: {v for v in have[name] if v.startswith("new")} for name in have}
    assert new == {"a": {"new a", "new c"}, "b": {"new a", "new b", "new c"},
                   "c": {"new b", "new c"}}  # fmt: skip


@pytest.mark.long
def test_three_lakes_are_equal_by_pairs(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    for source, to in itertools.permutations("abc", 2):
        ring.link(source, to, "none")
    for name, each in ring.lakes.items():
        each.insert("t", (100 + ord(name), f"new {name}"))
    ring.settle()
    ring.lakes["a"].update("t", f"k = {100 + ord('b')}", v="'changed'")
    ring.lakes["b"].delete("t", f"k = {100 + ord('c')}")
    ring.settle()
    have = [{(k, v) for k, v in rows(each.lake, "t") if k > 150} for each in ring.lakes.values()]
    assert have == [{(197, "new a"), (198, "changed")}] * 3


def test_replications_to_one_table_are_warned_of(
    tmp_path: Path, lake: Lake, replications: Replications, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = published(LakeOrigin(tmp_path / "one")), LakeOrigin(tmp_path / "two")
    two.create("t", {"k": "int", "v": "text"}, ["k"])
    two.insert("t", (9, "z"))
    two.publish("p", "t")
    replications.refresh(Replication("r", one.declared("p")))
    made = replications.create(Replication("s", two.declared("p")))
    assert made.warnings == ('replication "r" writes to "public.t", too',)
    assert made.warnings[0] in "".join(caplog.messages)
    replications.refresh("s")
    assert sum(rows(lake, "t").values()) == 3
    with pytest.raises(RefusedOperation, match="cannot be copied again"):
        replications.copy("s")
    assert sum(rows(lake, "t").values()) == 3


def test_following_goes_on_until_it_is_stopped(
    origin: Origin, lake: Lake, replications: Replications
) -> None:
    published(origin)
    replications.create(declared(origin))
    followed = replications.follow("r", seconds=0)
    assert next(followed).action == "COPY"
    origin.insert("t", (3, "c"))
    assert next(followed).action == "CHANGES"
    replications.disable("r")
    with pytest.raises(DisabledReplication):
        next(followed)


def test_a_refresh_stops_where_it_is_told(origin: Origin, replications: Replications) -> None:
    published(origin)
    replications.refresh(declared(origin))
    for k in range(10, 16):
        origin.insert("t", (k, "x"))
    part = replications.refresh("r", max_rows=2)
    assert (part.complete, part.tables[T].inserted) == (False, 2)
    assert replications.refresh("r").tables[T].inserted == 4
