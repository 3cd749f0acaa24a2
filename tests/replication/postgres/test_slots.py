"""Slots: what they keep, and how it is told that changes are gone."""

from __future__ import annotations

import shutil
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
    database.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    return database.publisher()


def insert(database: Database, *ids: int) -> None:
    database.run(*(f"INSERT INTO t VALUES ({each})" for each in ids))


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
    database: Database, publisher: Publisher
) -> None:
    first = publisher.create_slot("s", [T])[T]
    insert(database, 1)
    later = publisher.create_slot("s", [T])[T]
    insert(database, 2)
    assert database.position("s") == first
    assert read(publisher, first, None)[0] == [1, 2]
    assert read(publisher, later, None)[0] == [2]


def test_an_idle_slot_moves_on(database: Database, publisher: Publisher) -> None:
    position = publisher.create_slot("s", [T])[T]
    database.run("CREATE TABLE u AS SELECT generate_series(1, 10000)")
    assert publisher.lag("s", {T: position}).bytes > 100_000  # type: ignore[operator]
    ids, end = read(publisher, position, None)
    confirmed = publisher.confirm("s", {T: end})
    assert ids == [] and end > position
    assert publisher.lag("s", {T: end}).bytes < 10_000  # type: ignore[operator]
    assert read(publisher, end, confirmed)[0] == []


def test_a_stolen_batch(database: Database, publisher: Publisher) -> None:
    position = publisher.create_slot("s", [T])[T]
    insert(database, 1)
    _steal(database)
    with pytest.raises(LostSlot, match="somebody else has moved"):
        read(publisher, position, None)
    with pytest.raises(LostSlot, match="somebody else has moved"):
        publisher.confirm("s", {T: position})
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
    with pytest.raises(LostSlot, match="somebody else has moved"):
        publisher.confirm("s", {T: end})


def test_changes_that_a_table_misses(database: Database, publisher: Publisher) -> None:
    """Whoever put the positions back."""
    position = publisher.create_slot("s", [T])[T]
    insert(database, 1)
    end = read(publisher, position, None)[1]
    confirmed = publisher.confirm("s", {T: end})
    with pytest.raises(LostSlot, match="somebody else has moved"):
        publisher.read("s", {T: end, "public.u": position}, confirmed, max_rows=1)


def test_a_server_that_went_back(database: Database, publisher: Publisher) -> None:
    position = publisher.create_slot("s", [T])[T]
    confirmed = publisher.confirm("s", {T: position})
    with pytest.raises(LostSlot, match="lacks changes"):
        publisher.read("s", {T: position + 10**9}, confirmed, max_rows=1)


@pytest.mark.long
def test_a_standby_that_takes_over(tmp_path: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    with LogicalServer(folder, cleanup_mode="delete") as server:
        database = Database.create(server, "d")
        database.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
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
    database: Database, publisher: Publisher
) -> None:
    """What was confirmed last may be lost then."""
    position = publisher.create_slot("s", [T])[T]
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


def test_a_slot_that_is_gone(database: Database, publisher: Publisher) -> None:
    position = publisher.create_slot("s", [T])[T]
    publisher.drop_slot("s")
    publisher.drop_slot("s")
    assert database.slots() == []
    for use in (
        lambda: publisher.read("s", {T: position}, None, max_rows=1),
        lambda: publisher.confirm("s", {T: position}),
        lambda: publisher.lag("s", {T: position}),
    ):
        with pytest.raises(LostSlot, match='no slot "s"'):
            use()


@pytest.mark.since(13)
def test_a_slot_that_the_server_let_go(database: Database, publisher: Publisher) -> None:
    position = publisher.create_slot("s", [T])[T]
    insert(database, 1)
    try:
        database.run(
            "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'",
            "SELECT pg_reload_conf()",
            *["SELECT pg_logical_emit_message(false, '', 'x'), pg_switch_wal()"] * 3,
            "CHECKPOINT",
        )
        for use in (
            lambda: publisher.read("s", {T: position}, None, max_rows=1),
            lambda: publisher.confirm("s", {T: position}),
            lambda: publisher.lag("s", {T: position}),
            lambda: publisher.create_slot("s", [T]),
            lambda: publisher.copy("s", [T]).__enter__(),
        ):
            with pytest.raises(LostSlot, match='has let slot "s" go'):
                use()
        publisher.drop_slot("s")
    finally:
        database.run("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
    assert publisher.create_slot("s", [T])[T] > position


def test_a_slot_that_is_in_use(database: Database, publisher: Publisher) -> None:
    position = publisher.create_slot("s", [T])[T]
    insert(database, 1)
    with database.reading("s"):
        for use in (
            lambda: publisher.read("s", {T: position}, None, max_rows=1),
            lambda: publisher.confirm("s", {T: position + 1}),
            lambda: publisher.drop_slot("s"),
        ):
            with pytest.raises(SlotInUse):
                use()
    assert read(publisher, position, None)[0] == [1]


def test_slots_of_other_uses_are_left_alone(database: Database, publisher: Publisher) -> None:
    for kind in (
        "logical_replication_slot('s', 'test_decoding')",
        "physical_replication_slot('s')",
    ):
        database.run(f"SELECT pg_create_{kind}")
        for use in (
            lambda: publisher.read("s", {T: 0}, None, max_rows=1),
            lambda: publisher.confirm("s", {T: 0}),
            lambda: publisher.create_slot("s", [T]),
            lambda: publisher.copy("s", [T]).__enter__(),
            lambda: publisher.drop_slot("s"),
        ):
            with pytest.raises(PublisherProblem, match="of another use"):
                use()
        database.run("SELECT pg_drop_replication_slot('s')")


@pytest.mark.since(17)
def test_a_slot_fails_over(database: Database, publisher: Publisher) -> None:
    publisher.create_slot("s", [T])
    assert database.run("SELECT failover FROM pg_replication_slots WHERE slot_name = 's'") == [
        (True,)
    ]


def test_lag(database: Database, publisher: Publisher) -> None:
    position = publisher.create_slot("s", [T])[T]
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


def test_without_tables(database: Database, publisher: Publisher) -> None:
    position = database.publisher().create_slot("s", [T])[T]
    batch = publisher.read("s", {}, None, max_rows=1).require()
    assert batch.complete and not batch.tables and not batch.end
    publisher.confirm("s", {})
    assert database.position("s") == position


@pytest.mark.since(16)
def test_changes_of_a_replication_are_left_out_by_choice(database: Database) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE t",
        f"SELECT pg_replication_origin_create('{database.name}')",
    )
    position = database.publisher().create_slot("s", [T])[T]
    with database.connect() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("SELECT pg_replication_origin_session_setup(%s)", [database.name])
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("SELECT pg_replication_origin_session_reset()")
        connection.execute("INSERT INTO t VALUES (3)")
    assert read(database.publisher(), position, None)[0] == [1, 2, 3]
    assert read(database.publisher(origin="none"), position, None)[0] == [1, 3]
