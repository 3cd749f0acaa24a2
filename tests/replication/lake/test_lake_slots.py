"""A replication's slot holds what it has not confirmed; a lost one is told, and skips nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from changes.table import Table
from dagster_streamtables import Lake, PublicationEntry, Publications, subscribe
from dagster_streamtables.errors import InvalidDefinition, PublisherProblem, RefusedOperation
from dagster_streamtables.replication.model.replication_model import Lag, Publisher
from dagster_streamtables.runtime.errors.slot_errors import LostSlot, SlotInUse
from replication.lake.replica import KEYED, Replica, T, ops, publish, publisher

U = "public.u"


@pytest.fixture(autouse=True)
def u(lake: Lake, t: Table) -> Table:
    """A second table, published with the first."""
    publish(lake, KEYED, PublicationEntry("u", key=("k",)))
    table = Table.new(lake.location("u"))
    table.insert((1, "u"))
    return table


@pytest.fixture
def replica(lake: Lake, u: Table) -> Replica:
    return Replica(publisher(lake)).copy()


def is_lost(replica: Replica, match: str = "lost changes", *, why: str = "") -> None:
    with pytest.raises(LostSlot, match=match) as told:
        replica.follow()
    assert why in told.value.why


def test_it_is_a_publisher(lake: Lake) -> None:
    mine: Publisher = publisher(lake)

    assert mine.origin == lake.root


def test_nothing_moves_until_it_is_confirmed(lake: Lake, t: Table, replica: Replica) -> None:
    t.insert((3, "c"))

    again = publisher(lake)
    first = replica.publisher.read("replica", replica.at, None, max_rows=9)
    second = again.read("replica", replica.at, None, max_rows=9)
    assert ops([first], T) == ops([second], T) == [("insert", 2, None, (3, "c"))]
    assert first.end == {T: 2, U: 1}
    token = again.confirm("replica", first.end)
    assert again.confirm("replica", first.end) == token
    assert not again.read("replica", first.end, token, max_rows=9).tables
    assert lake.slots.read("replica").held[T].version == 2


def test_a_batch_ends_with_the_transaction_that_reaches_its_rows(
    t: Table, u: Table, replica: Replica
) -> None:
    t.insert((3, "c"), (4, "d"), (5, "e"))
    t.insert((6, "f"))
    u.insert((2, "u"))

    batches = replica.follow(max_rows=2)

    assert [len(ops([batch], T)) for batch in batches] == [3, 1]
    assert [len(ops([batch], U)) for batch in batches] == [0, 1]  # the later commit waits
    assert [batch.complete for batch in batches] == [False, True]


def test_a_slot_is_made_without_a_copy_and_takes_more_tables(
    lake: Lake, t: Table, u: Table
) -> None:
    mine = publisher(lake)

    assert mine.create_slot("s", [T]) == {T: 1}
    t.insert((3, "c"))
    u.insert((2, "u"))
    assert mine.create_slot("s", [T, U]) == {T: 1, U: 2}
    with mine.copy("s", [T]) as copy:
        assert copy.position(T) == 2
        assert copy.rows(T).read_all().num_rows == 3
    assert {name: held.version for name, held in lake.slots.read("s").held.items()} == {T: 1, U: 2}
    with pytest.raises(PublisherProblem, match=r'the table "public.x" is not published'):
        mine.create_slot("s", ["public.x"])
    with pytest.raises(InvalidDefinition, match="not a valid name of a slot"):
        mine.create_slot("a/b", [T])


def test_a_vacuum_leaves_what_a_slot_needs(lake: Lake, t: Table, replica: Replica) -> None:
    t.overwrite((1, "A"))

    assert lake.retention.slot("replica").sources[0].versions_behind == 1
    assert lake.retention.needed_since("t") is not None
    replica.follow()
    assert lake.retention.needed_since("t") is None


def test_lag_is_counted(t: Table, replica: Replica) -> None:
    assert replica.publisher.lag("replica", replica.at) == Lag(commits=0, bytes=0, seconds=0.0)
    t.insert((3, "c"))
    t.insert((4, "d"))
    behind = replica.publisher.lag("replica", replica.at)
    assert behind.commits == 2 and behind.seconds > 0 and behind.bytes


def test_a_slot_that_is_not_there_is_lost(lake: Lake, t: Table) -> None:
    mine = publisher(lake)
    replica = Replica(mine).copy()
    mine.drop_slot("replica")
    mine.drop_slot("replica")

    is_lost(replica, 'there is no slot "replica" at the publisher')
    with pytest.raises(LostSlot, match="there is no slot"):
        mine.confirm("replica", replica.at)


def test_a_slot_that_was_let_go_is_lost(lake: Lake, replica: Replica) -> None:
    lake.slots.invalidate("replica", "a forced vacuum")

    is_lost(replica, "was released by the publisher")
    replica.publisher.drop_slot("replica")
    replica.confirmed = None
    replica.copy().follow()


def test_a_deadline_lets_a_slot_go(lake: Lake, t: Table) -> None:
    replica = Replica(publisher(lake, deadline=timedelta(seconds=-61))).copy()
    replica.publisher.drop_slot("none")
    lake.slots.release("replica", "replication")
    lake.slots.expire()

    is_lost(replica, "released by the publisher")


def test_a_slot_has_the_deadline_that_its_reader_declares(lake: Lake, replica: Replica) -> None:
    """A slot of before gets it with the next read, which is a use of it."""
    old = datetime.now(UTC) - timedelta(days=5)
    for deadline, is_abandoned in ((timedelta(days=7), True), (timedelta(days=11), False)):
        replica.publisher = publisher(lake, deadline=deadline)
        replica.follow()
        slot = lake.slots.read("replica")
        assert slot.deadline == deadline.total_seconds() and not slot.is_idle()
        lake.slots.change("replica", lambda slot: replace(slot, used_at=old, reader=None))
        assert replica.publisher.lag("replica", replica.at).is_abandoned is is_abandoned
    replica.publisher = publisher(lake)
    replica.follow()
    assert lake.slots.read("replica").expires_at is None


@pytest.mark.parametrize("again", [False, True])
def test_a_table_that_was_dropped_is_lost(t: Table, again: bool, replica: Replica) -> None:
    shutil.rmtree(t.location)
    if again:
        Table.new(t.location)

    is_lost(replica, r'lost changes of "public.t"', why="dropped")


def test_a_table_that_was_put_back_is_lost(lake: Lake, t: Table, tmp_path: Path) -> None:
    shutil.copytree(t.location, tmp_path / "backup")
    t.insert((3, "c"))
    replica = Replica(publisher(lake)).copy()
    shutil.rmtree(t.location)
    shutil.copytree(tmp_path / "backup", t.location)

    is_lost(replica, why="put back")
    t.insert((9, "x"))  # the same version numbers again
    is_lost(replica)


def test_history_that_is_gone_is_lost(lake: Lake, t: Table, replica: Replica) -> None:
    t.overwrite((1, "A"))
    t.overwrite((1, "AA"))
    t.delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    is_lost(replica, r'lost changes of "public.t"')
    assert lake.slots.read("replica").held[T].version == 1


def test_a_log_that_was_cleaned_up_is_lost(t: Table, replica: Replica) -> None:
    t.insert((3, "c"))
    t.insert((4, "d"))
    t.delta.create_checkpoint()
    for version in (0, 1, 2):
        Path(t.location, f"_delta_log/{version:020d}.json").unlink()

    is_lost(replica)


def test_a_slot_that_somebody_else_moved_over_changes_is_lost(
    lake: Lake, t: Table, replica: Replica
) -> None:
    replica.follow()
    t.insert((3, "c"))
    thief = Replica(publisher(lake), confirmed=replica.confirmed, at=dict(replica.at))
    thief.rows = {name: rows.copy() for name, rows in replica.rows.items()}
    thief.follow()

    is_lost(replica, why="somebody else")


def test_a_slot_that_its_reader_moved_before_it_was_killed_is_not_lost(
    t: Table, replica: Replica
) -> None:
    """It confirmed what needs no storing, and was killed before it stored where the slot is."""
    replica.follow()
    t.insert()
    before, confirmed = dict(replica.at), replica.confirmed
    replica.follow()
    replica.at, replica.confirmed = before, confirmed

    t.insert((3, "c"))
    replica.follow()
    assert replica.rows[T][(3, "c")] == 1


def test_one_reads_a_slot_at_a_time(lake: Lake, t: Table) -> None:
    one, other = publisher(lake, reader="one"), publisher(lake, reader="other")
    replica = Replica(one).copy()

    for call in (
        lambda: other.read("replica", replica.at, None, max_rows=1),
        lambda: other.confirm("replica", replica.at),
        lambda: other.drop_slot("replica"),
    ):
        with pytest.raises(SlotInUse, match='slot "replica" has a reader'):
            call()
    replica.publisher = publisher(lake, reader="one")  # it was started again
    replica.follow()


def test_slots_of_subscriptions_are_others(lake: Lake, t: Table) -> None:
    with subscribe(lake, "t", slot="crm") as mine:
        mine.fetch(None, timeout=0)
        mine.ack()
    Replica(publisher(lake)).copy()

    with pytest.raises(RefusedOperation, match="follows another relation"):
        publisher(lake).read("crm", {T: 1}, None, max_rows=1).require()
    with pytest.raises(RefusedOperation, match="follows another relation"):
        publisher(lake).create_slot("crm", [T])
    lake.slots.release("replica", "replication")
    with pytest.raises(RefusedOperation, match="follows another relation"):
        subscribe(lake, "t", slot="replica").fetch(1, timeout=0)


def test_a_table_that_is_not_published_any_more_is_not_held(
    lake: Lake, t: Table, replica: Replica
) -> None:
    Publications(lake.root).remove("p", "t")
    t.insert((3, "c"))

    batch = replica.step()
    assert not batch.tables and batch.end == {T: 2, U: 1} and batch.complete
    del replica.at[T]
    replica.follow()
    assert list(lake.slots.read("replica").held) == [U]
    replica.at[T] = 2
    Publications(lake.root).add("p", KEYED)
    is_lost(replica, why="does not hold")


def test_a_table_that_is_copied_meanwhile_stays_held(lake: Lake, t: Table) -> None:
    mine = publisher(lake)
    mine.create_slot("s", [T])
    with mine.copy("s", [U]):
        mine.confirm("s", {T: 1})
        assert set(lake.slots.read("s").held) == {T, U}


@pytest.mark.parametrize("origin", ["any", "none"])
def test_replicated_commits_are_left_out_by_choice(lake: Lake, t: Table, origin: Any) -> None:
    replica = Replica(publisher(lake, origin=origin)).copy()
    rows = t._rows([(3, "c")])
    mark = CommitProperties(custom_metadata={"streamtablesReplication": '{"name": "x"}'})
    write_deltalake(t.location, rows, mode="append", commit_properties=mark)
    mark = CommitProperties(custom_metadata={"userMetadata": '{"streamtablesReplication": 1}'})
    DeltaTable(t.location).delete("k = 1", commit_properties=mark)
    t.insert((4, "d"))

    [batch] = replica.follow()

    left = [("insert", 4, None, (4, "d"))]
    every = [("insert", 2, None, (3, "c")), ("delete", 3, (1,), None), *left]
    assert ops([batch], T) == (left if origin == "none" else every)
    assert batch.end[T] == 4
