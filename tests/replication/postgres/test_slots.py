"""Slots: what they keep, and how it is told that changes are gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.model.publisher import Publisher
from dagster_streamtables.replication.postgres.lsn import lsn_of, lsn_text
from dagster_streamtables.runtime.errors.slots import LostSlot, SlotInUse
from replication.postgres.database import Database, LogicalServer

T = "public.t"


@pytest.fixture
def publisher(database: Database) -> Publisher:
    database.publish("id int PRIMARY KEY")
    return database.publisher()


@pytest.fixture
def position(publisher: Publisher) -> int:
    """Where the new slot `s` is."""
    return publisher.create_slot("s", [T])[T]


def insert(database: Database, *ids: int) -> None:
    database.run(*(f"INSERT INTO t VALUES ({each})" for each in ids))


def refused(
    publisher: Publisher, uses: str, kind: type[Exception], match: str, position: int = 0
) -> None:
    """None of these uses of the slot is possible."""
    known: dict[str, Callable[[], object]] = {
        "read": lambda: publisher.read("s", {T: position}, None, max_rows=1),
        "confirm": lambda: publisher.confirm("s", {T: position}),
        "lag": lambda: publisher.lag("s", {T: position}),
        "create": lambda: publisher.create_slot("s", [T]),
        "copy": lambda: publisher.copy("s", [T]).__enter__(),
        "drop": lambda: publisher.drop_slot("s"),
    }
    for use in uses.split():
        with pytest.raises(kind, match=match):
            known[use]()


def read(publisher: Publisher, after: int, confirmed: str | None, max_rows: int = 10**6
         ) -> tuple[list[int], int]:  # fmt: skip
    batch = publisher.read("s", {T: after}, confirmed, max_rows=max_rows).require()
    rows = batch.tables[T].rows["new"].to_pylist() if batch.tables else []
    return [row["id"] for row in rows], batch.end[T]


def test_a_slot_keeps_what_is_not_confirmed(database: Database, publisher: Publisher) -> None:
    insert(database, 1)
    position = publisher.create_slot("s", [T])[T]
    assert database.position("s") == position
    insert(database, 2, 3)
    ids, end = read(publisher, position, None)
    assert ids == [2, 3]
    assert read(publisher, position, None)[0] == [2, 3]
    assert read(publisher, end, None)[0] == []
    confirmed = publisher.confirm("s", {T: end, "public.u": end + 5})
    assert confirmed == publisher.confirm("s", {T: end})
    assert database.position("s") == end
    insert(database, 4)
    assert read(publisher, end, confirmed)[0] == [4]


def test_a_slot_that_exists_gives_new_tables_a_later_position(
    database: Database, publisher: Publisher, position: int
) -> None:
    insert(database, 1)
    later = publisher.create_slot("s", [T])[T]
    insert(database, 2)
    assert database.position("s") == position
    assert read(publisher, position, None)[0] == [1, 2]
    assert read(publisher, later, None)[0] == [2]


def test_an_idle_slot_moves_on(database: Database, publisher: Publisher, position: int) -> None:
    database.run("CREATE TABLE u AS SELECT generate_series(1, 10000)")
    assert publisher.lag("s", {T: position}).bytes > 100_000  # type: ignore[operator]
    ids, end = read(publisher, position, None)
    confirmed = publisher.confirm("s", {T: end})
    assert ids == [] and end > position
    assert publisher.lag("s", {T: end}).bytes < 10_000  # type: ignore[operator]
    assert read(publisher, end, confirmed)[0] == []


def test_a_stolen_batch(database: Database, publisher: Publisher, position: int) -> None:
    insert(database, 1)
    _steal(database)
    refused(publisher, "read confirm", LostSlot, "somebody else has moved", position)
    publisher.drop_slot("s")
    position = publisher.create_slot("s", [T])[T]
    insert(database, 2)
    end = read(publisher, position, None)[1]
    confirmed = publisher.confirm("s", {T: end})
    assert read(publisher, end, confirmed)[0] == []
    insert(database, 3)
    _steal(database)
    with pytest.raises(LostSlot, match="somebody else has moved"):
        read(publisher, end, confirmed)
    refused(publisher, "confirm", LostSlot, "somebody else has moved", end)


def test_changes_that_a_table_misses(
    database: Database, publisher: Publisher, position: int
) -> None:
    """Whoever put the positions back."""
    insert(database, 1)
    end = read(publisher, position, None)[1]
    confirmed = publisher.confirm("s", {T: end})
    with pytest.raises(LostSlot, match="somebody else has moved"):
        publisher.read("s", {T: end, "public.u": position}, confirmed, max_rows=1)


def test_a_server_that_went_back(database: Database, publisher: Publisher, position: int) -> None:
    confirmed = publisher.confirm("s", {T: position})
    with pytest.raises(LostSlot, match="lacks changes"):
        publisher.read("s", {T: position + 10**9}, confirmed, max_rows=1)


@pytest.mark.long
def test_a_standby_that_takes_over(tmp_path: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    with LogicalServer(folder, cleanup_mode="delete") as server:
        database = Database.create(server, "d")
        database.publish("id int PRIMARY KEY")
        publisher = database.publisher()
        position = publisher.create_slot("s", [T])[T]
        insert(database, 1)
        end = read(publisher, position, None)[1]
        confirmed = publisher.confirm("s", {T: end})
        insert(database, 2)
        server.cleanup_mode = "stop"
    (folder / "standby.signal").touch()
    shutil.chown(folder / "standby.signal", folder.owner(), folder.group())
    with LogicalServer(folder, cleanup_mode="delete") as server:
        database = Database(server, "d")
        database.run("SELECT pg_promote()")
        assert publisher.confirm("s", {T: end}) == confirmed, "what was read is of the old server"
        publisher = database.publisher()
        left = lsn_of(database.run("SELECT pg_current_wal_flush_lsn()::text")[0][0])
        insert(database, 3)
        database.run("CREATE TABLE u AS SELECT generate_series(1, 10000)")
        assert read(publisher, end, confirmed)[0] == [2, 3]
        # As if the old server had written that far, and this one never received it.
        with pytest.raises(LostSlot, match="lacks changes"):
            read(publisher, left + 1000, confirmed)
        newest = read(publisher, end, confirmed)[1]
        again = publisher.confirm("s", {T: newest})
        assert again.endswith(" 2")
        insert(database, 4)
        assert read(publisher, newest, again)[0] == [4]


def _steal(database: Database) -> None:
    database.run(
        "SELECT pg_logical_slot_get_binary_changes('s', NULL, NULL, 'proto_version', '1', "
        "'publication_names', 'p')"
    )


def test_a_slot_that_is_behind_after_a_crash_of_the_server(
    database: Database, publisher: Publisher, position: int
) -> None:
    """What was confirmed last may be lost then."""
    insert(database, 1)
    end = read(publisher, position, None)[1]
    insert(database, 2)
    ahead = read(publisher, end, None)[1]
    # As if it had been confirmed up to there before.
    assert read(publisher, ahead, lsn_text(ahead))[0] == []
    insert(database, 3)
    assert read(publisher, ahead, lsn_text(ahead))[0] == [3]
    publisher.confirm("s", {T: ahead})
    assert database.position("s") == ahead


def test_a_slot_that_is_gone(database: Database, publisher: Publisher, position: int) -> None:
    publisher.drop_slot("s")
    publisher.drop_slot("s")
    assert database.slots() == []
    refused(publisher, "read confirm lag", LostSlot, 'no slot "s"', position)


@pytest.mark.since(13)
def test_a_slot_that_the_server_let_go(
    database: Database, publisher: Publisher, position: int
) -> None:
    insert(database, 1)
    try:
        database.run(
            "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'",
            "SELECT pg_reload_conf()",
            *["SELECT pg_logical_emit_message(false, '', 'x'), pg_switch_wal()"] * 3,
            "CHECKPOINT",
        )
        uses = "read confirm lag create copy"
        refused(publisher, uses, LostSlot, 'has let slot "s" go', position)
        publisher.drop_slot("s")
    finally:
        database.run("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
    assert publisher.create_slot("s", [T])[T] > position


def test_a_slot_that_is_in_use(database: Database, publisher: Publisher, position: int) -> None:
    insert(database, 1)
    with database.reading("s"):
        refused(publisher, "read drop", SlotInUse, "has a reader", position)
        refused(publisher, "confirm", SlotInUse, "has a reader", position + 1)
    assert read(publisher, position, None)[0] == [1]


def test_slots_of_other_uses_are_left_alone(database: Database, publisher: Publisher) -> None:
    for kind in (
        "logical_replication_slot('s', 'test_decoding')",
        "physical_replication_slot('s')",
    ):
        database.run(f"SELECT pg_create_{kind}")
        refused(publisher, "read confirm create copy drop", PublisherProblem, "of another use")
        database.run("SELECT pg_drop_replication_slot('s')")


@pytest.mark.since(17)
@pytest.mark.usefixtures("position")
def test_a_slot_fails_over(database: Database) -> None:
    query = "SELECT failover FROM pg_replication_slots WHERE slot_name = 's'"
    assert database.run(query) == [(True,)]


def test_lag(database: Database, publisher: Publisher, position: int) -> None:
    insert(database, 1)
    first = read(publisher, position, None)[1]
    database.run("SELECT pg_sleep(0.3)")
    insert(database, 2)
    new, old = publisher.lag("s", {T: first}), publisher.lag("s", {T: position})
    assert old.seconds - new.seconds >= 0.3
    assert new.seconds > 0
    assert old.bytes > new.bytes > 0  # type: ignore[operator]
    end = read(publisher, position, None)[1]
    publisher.confirm("s", {T: end})
    assert publisher.lag("s", {T: end}).seconds == 0


def test_without_tables(database: Database, publisher: Publisher, position: int) -> None:
    batch = publisher.read("s", {}, None, max_rows=1).require()
    assert batch.complete and not batch.tables and not batch.end
    publisher.confirm("s", {})
    assert database.position("s") == position


@pytest.mark.since(16)
def test_changes_of_a_replication_are_left_out_by_choice(
    database: Database, publisher: Publisher, position: int
) -> None:
    database.run(f"SELECT pg_replication_origin_create('{database.name}')")
    with database.connect() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("SELECT pg_replication_origin_session_setup(%s)", [database.name])
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("SELECT pg_replication_origin_session_reset()")
        connection.execute("INSERT INTO t VALUES (3)")
    assert read(publisher, position, None)[0] == [1, 2, 3]
    assert read(database.publisher(origin="none"), position, None)[0] == [1, 3]
