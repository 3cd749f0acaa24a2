"""Slots: what they keep, and how it is told that changes are gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.postgres.logical_slots import lsn_of, lsn_text
from dagster_streamtables.runtime.errors.slot_errors import LostSlot, SlotInUse
from replication.postgres.database import Database, LogicalServer

T = "public.t"


class Slot:
    """The slot `s` of a table, which is used step by step."""

    def __init__(self, database: Database) -> None:
        self.database, self.publisher = database, database.publisher()

    def create(self) -> int:
        return self.publisher.create_slot("s", [T])[T]

    def insert(self, *ids: int) -> None:
        self.database.run(*(f"INSERT INTO t VALUES ({each})" for each in ids))

    def read(
        self, after: int, confirmed: str | None = None, max_rows: int = 10**6
    ) -> tuple[list[int], int]:
        batch = self.publisher.read("s", {T: after}, confirmed, max_rows=max_rows).require()
        rows = batch.tables[T].rows["new"].to_pylist() if batch.tables else []
        return [row["id"] for row in rows], batch.end[T]

    def confirm(self, position: int) -> str:
        return self.publisher.confirm("s", {T: position})

    def steal(self) -> None:
        """Take its changes, as another reader does."""
        self.database.run(
            "SELECT pg_logical_slot_get_binary_changes('s', NULL, NULL, 'proto_version', '1', "
            "'publication_names', 'p')"
        )

    def refused(self, uses: str, kind: type[Exception], match: str, position: int = 0) -> None:
        """None of these uses is possible."""
        known: dict[str, Callable[[], object]] = {
            "read": lambda: self.publisher.read("s", {T: position}, None, max_rows=1),
            "confirm": lambda: self.confirm(position),
            "lag": lambda: self.publisher.lag("s", {T: position}),
            "create": self.create,
            "copy": lambda: self.publisher.copy("s", [T]).__enter__(),
            "drop": lambda: self.publisher.drop_slot("s"),
        }
        for use in uses.split():
            with pytest.raises(kind, match=match):
                known[use]()


@pytest.fixture
def slot(database: Database) -> Slot:
    database.publish("id int PRIMARY KEY")
    return Slot(database)


def test_a_slot_keeps_what_is_not_confirmed(slot: Slot) -> None:
    slot.insert(1)
    position = slot.create()
    assert slot.database.position("s") == position
    slot.insert(2, 3)
    ids, end = slot.read(position)
    assert ids == [2, 3]
    assert slot.read(position)[0] == [2, 3]
    assert slot.read(end)[0] == []
    confirmed = slot.publisher.confirm("s", {T: end, "public.u": end + 5})
    assert confirmed == slot.confirm(end)
    assert slot.database.position("s") == end
    slot.insert(4)
    assert slot.read(end, confirmed)[0] == [4]


def test_a_slot_that_exists_gives_new_tables_a_later_position(slot: Slot) -> None:
    position = slot.create()
    slot.insert(1)
    later = slot.create()
    slot.insert(2)
    assert slot.database.position("s") == position
    assert slot.read(position)[0] == [1, 2]
    assert slot.read(later)[0] == [2]


def test_an_idle_slot_moves_on(slot: Slot) -> None:
    position = slot.create()
    slot.database.run("CREATE TABLE u AS SELECT generate_series(1, 10000)")
    behind = slot.publisher.lag("s", {T: position}).bytes
    assert behind is not None and behind > 100_000
    ids, end = slot.read(position)
    confirmed = slot.confirm(end)
    assert ids == [] and end > position
    # Not 0: the server writes of its own accord, as when it analyzes the new table.
    assert (slot.publisher.lag("s", {T: end}).bytes or 0) < behind / 2
    assert slot.read(end, confirmed)[0] == []


def test_a_stolen_batch(slot: Slot) -> None:
    position = slot.create()
    slot.insert(1)
    slot.steal()
    slot.refused("read confirm", LostSlot, "another reader has moved", position)
    slot.publisher.drop_slot("s")
    position = slot.create()
    slot.insert(2)
    end = slot.read(position)[1]
    confirmed = slot.confirm(end)
    assert slot.read(end, confirmed)[0] == []
    slot.insert(3)
    slot.steal()
    with pytest.raises(LostSlot, match="another reader has moved"):
        slot.read(end, confirmed)
    slot.refused("confirm", LostSlot, "another reader has moved", end)


def test_changes_that_a_table_misses(slot: Slot) -> None:
    """Whoever put the positions back."""
    position = slot.create()
    slot.insert(1)
    end = slot.read(position)[1]
    confirmed = slot.confirm(end)
    with pytest.raises(LostSlot, match="another reader has moved"):
        slot.publisher.read("s", {T: end, "public.u": position}, confirmed, max_rows=1)


def test_a_server_that_went_back(slot: Slot) -> None:
    position = slot.create()
    confirmed = slot.confirm(position)
    with pytest.raises(LostSlot, match="lacks changes"):
        slot.publisher.read("s", {T: position + 10**9}, confirmed, max_rows=1)


@pytest.mark.long
def test_a_standby_that_takes_over(tmp_path: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    with LogicalServer(folder, cleanup_mode="delete") as server:
        database = Database.create(server, "d")
        database.publish("id int PRIMARY KEY")
        before = Slot(database)
        position = before.create()
        before.insert(1)
        end = before.read(position)[1]
        confirmed = before.confirm(end)
        before.insert(2)
        server.cleanup_mode = "stop"
    (folder / "standby.signal").touch()
    shutil.chown(folder / "standby.signal", folder.owner(), folder.group())
    with LogicalServer(folder, cleanup_mode="delete") as server:
        database = Database(server, "d")
        database.run("SELECT pg_promote()")
        assert before.confirm(end) == confirmed, "what was read is of the old server"
        slot = Slot(database)
        left = lsn_of(database.run("SELECT pg_current_wal_flush_lsn()::text")[0][0])
        slot.insert(3)
        database.run("CREATE TABLE u AS SELECT generate_series(1, 10000)")
        assert slot.read(end, confirmed)[0] == [2, 3]
        # As if the old server had written that far, and this one never received it.
        with pytest.raises(LostSlot, match="lacks changes"):
            slot.read(left + 1000, confirmed)
        newest = slot.read(end, confirmed)[1]
        again = slot.confirm(newest)
        assert again.endswith(" 2")
        slot.insert(4)
        assert slot.read(newest, again)[0] == [4]


def test_a_slot_that_is_behind_after_a_crash_of_the_server(slot: Slot) -> None:
    """What was confirmed last may be lost then."""
    position = slot.create()
    slot.insert(1)
    end = slot.read(position)[1]
    slot.insert(2)
    ahead = slot.read(end)[1]
    # As if it had been confirmed up to there before.
    assert slot.read(ahead, lsn_text(ahead))[0] == []
    slot.insert(3)
    assert slot.read(ahead, lsn_text(ahead))[0] == [3]
    slot.confirm(ahead)
    assert slot.database.position("s") == ahead


def test_a_slot_that_is_gone(slot: Slot) -> None:
    position = slot.create()
    slot.publisher.drop_slot("s")
    slot.publisher.drop_slot("s")
    assert slot.database.slots() == []
    slot.refused("read confirm lag", LostSlot, 'no slot "s"', position)


@pytest.mark.since(13)
def test_a_slot_that_the_server_let_go(slot: Slot) -> None:
    position = slot.create()
    slot.insert(1)
    try:
        slot.database.run(
            "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'",
            "SELECT pg_reload_conf()",
            *["SELECT pg_logical_emit_message(false, '', 'x'), pg_switch_wal()"] * 3,
            "CHECKPOINT",
        )
        uses = "read confirm lag create copy"
        slot.refused(uses, LostSlot, 'has released slot "s"', position)
        slot.publisher.drop_slot("s")
    finally:
        slot.database.run("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
    assert slot.create() > position


def test_a_slot_that_is_in_use(slot: Slot) -> None:
    position = slot.create()
    slot.insert(1)
    with slot.database.reading("s"):
        slot.refused("read drop", SlotInUse, "has a reader", position)
        slot.refused("confirm", SlotInUse, "has a reader", position + 1)
    assert slot.read(position)[0] == [1]


def test_slots_of_other_uses_are_left_alone(slot: Slot) -> None:
    for kind in (
        "logical_replication_slot('s', 'test_decoding')",
        "physical_replication_slot('s')",
    ):
        slot.database.run(f"SELECT pg_create_{kind}")
        slot.refused("read confirm create copy drop", PublisherProblem, "has another use")
        slot.database.run("SELECT pg_drop_replication_slot('s')")


@pytest.mark.since(17)
def test_a_slot_fails_over(slot: Slot) -> None:
    slot.create()
    query = "SELECT failover FROM pg_replication_slots WHERE slot_name = 's'"
    assert slot.database.run(query) == [(True,)]


def test_lag(slot: Slot) -> None:
    position = slot.create()
    slot.insert(1)
    first = slot.read(position)[1]
    slot.database.run("SELECT pg_sleep(0.3)")
    slot.insert(2)
    new, old = slot.publisher.lag("s", {T: first}), slot.publisher.lag("s", {T: position})
    assert old.seconds - new.seconds >= 0.3
    assert new.seconds > 0
    assert old.bytes > new.bytes > 0  # type: ignore[operator]
    end = slot.read(position)[1]
    slot.confirm(end)
    assert slot.publisher.lag("s", {T: end}).seconds == 0


def test_without_tables(slot: Slot) -> None:
    position = slot.create()
    batch = slot.publisher.read("s", {}, None, max_rows=1).require()
    assert batch.complete and not batch.tables and not batch.end
    slot.publisher.confirm("s", {})
    assert slot.database.position("s") == position


@pytest.mark.since(16)
def test_changes_of_a_replication_are_left_out_by_choice(slot: Slot) -> None:
    position = slot.create()
    slot.database.run(f"SELECT pg_replication_origin_create('{slot.database.name}')")
    with slot.database.connect() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("SELECT pg_replication_origin_session_setup(%s)", [slot.database.name])
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("SELECT pg_replication_origin_session_reset()")
        connection.execute("INSERT INTO t VALUES (3)")
    assert slot.read(position)[0] == [1, 2, 3]
    slot.publisher = slot.database.publisher(origin="none")
    assert slot.read(position)[0] == [1, 3]
