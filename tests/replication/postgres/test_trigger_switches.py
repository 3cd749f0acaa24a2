"""From triggers to the log of a server and back, while others write: nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dagster_streamtables.errors import LostPublisher
from replication.postgres.database import Database, LogicalServer
from replication.postgres.follower import Follower
from replication.postgres.writers import TABLES, Writers

SHORT = timedelta(seconds=0.5)
T, EVENTS = "public.t", "public.events"


def events_of(follower: Follower) -> list[int]:
    """Those that were applied, besides what was copied."""
    changes = [each.tables[EVENTS] for each in follower.applied if EVENTS in each.tables]
    return [row["id"] for each in changes for row in each.rows["new"].to_pylist()]


@pytest.mark.parametrize("rounds", [1, pytest.param(8, marks=pytest.mark.long)])
def test_both_switches_while_four_write(database: Database, rounds: int) -> None:
    database.run(*TABLES)
    writers = Writers(database)
    with writers.writing():
        follower = Follower(database, T, EVENTS, capture="trigger")
        read = [row["id"] for row in follower.replica.rows[EVENTS]]
        follower.max_rows = 300
        for _ in range(rounds):
            for capture, state in (("auto", "WAL"), ("trigger", "TRIGGER")):
                follower.capture = capture
                enough = len(writers.committed) + Writers.AHEAD
                while follower.state != state or len(writers.committed) < enough:
                    follower.step()
                    writers.have_applied(len(read) + len(events_of(follower)))
    follower.catch_up()
    read += events_of(follower)
    assert len(read) == len(set(read)), "none is told twice"
    assert set(read) == writers.committed, "none is missing"
    follower.require_equal()
    assert len(read) > 2 * rounds * Writers.AHEAD


class Crash(BaseException):
    """The process is gone: nothing that it does later reaches the server."""


class Crashes:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.before = True
        execute = psycopg.Connection.execute

        def counted(connection: Any, *args: Any, **options: Any) -> Any:
            if self.left is None:
                return execute(connection, *args, **options)
            self.left -= 1
            if self.left < 0 or (self.left == 0 and self.before):
                raise Crash
            found = execute(connection, *args, **options)
            if self.left == 0:
                raise Crash
            return found

        monkeypatch.setattr(psycopg.Connection, "execute", counted)

    @contextmanager
    def after(self, statements: int, *, before: bool) -> Iterator[None]:
        self.left, self.before = statements, before
        try:
            yield
        finally:
            self.left = None


@pytest.mark.parametrize(
    ("capture", "stride"),
    [
        ("trigger", 59),
        *(pytest.param(each, 1, marks=pytest.mark.long) for each in ("auto", "trigger")),
    ],
)
def test_a_crash_at_every_statement_of_a_switch(
    database: Database, monkeypatch: pytest.MonkeyPatch, capture: str, stride: int
) -> None:
    database.run(*TABLES)
    crashes, at, ended, event = Crashes(monkeypatch), 1, False, 0

    def write() -> None:
        nonlocal event
        event += 1
        update = f"UPDATE t SET v = v + 1 WHERE id % 9 = {at % 9}"
        database.run(f"INSERT INTO events VALUES ({event})", update)

    while not ended:
        follower = Follower(database, T, EVENTS, capture="trigger" if capture == "auto" else "wal")
        read = [row["id"] for row in follower.replica.rows[EVENTS]]
        write()
        follower.step()
        write()
        follower.capture = capture
        try:
            with crashes.after(at, before=at % 2 == 0):
                for _ in range(3):
                    follower.step()
                ended = True
        except Crash:
            write()
        wanted = "WAL" if capture == "auto" else "TRIGGER"
        while not (follower.step().complete and follower.state == wanted):
            pass
        write()
        follower.step()
        assert sorted(read + events_of(follower)) == list(range(1, event + 1)), at
        follower.require_equal()
        assert database.slots() == (["s"] if capture == "auto" else [])
        follower.publisher().drop_slot("s")
        at += stride
    assert at > 30


def test_a_slot_that_cannot_begin_leaves_the_triggers(database: Database) -> None:
    database.run(*TABLES)
    follower = Follower(database, T, EVENTS)
    follower.capture = "auto"
    with database.connect() as connection, connection.transaction(force_rollback=True):
        connection.execute("CREATE TABLE other (id int)")
        connection.execute("SET LOCAL lock_timeout = 0")
        database.run("INSERT INTO events VALUES (1)")
        follower.slot_timeout = SHORT
        assert follower.step().complete
        assert follower.state == "TRIGGER"
        follower.require_equal()
    assert database.slots() == []
    ((reason,),) = database.run("SELECT reason FROM streamtables.captures")
    assert "cannot begin while transactions are open" in reason
    follower.step()
    assert follower.state == "TRIGGER", "it is not tried again at once"
    database.run("UPDATE streamtables.captures SET tried = NULL")
    follower.catch_up()
    assert follower.state == "WAL"


def test_tables_that_are_locked_leave_the_slot(database: Database) -> None:
    database.run(*TABLES)
    follower = Follower(database, T, EVENTS, capture="wal")
    follower.slot_timeout = SHORT
    follower.capture = "trigger"
    with database.connect() as connection, connection.transaction():
        connection.execute("UPDATE t SET v = 1 WHERE id = 1")
        with pytest.raises(LostPublisher, match="locked"):
            follower.step()
    follower.capture = "wal"
    follower.require_equal()
    assert follower.state == "WAL"
    assert database.run("SELECT count(*) FROM streamtables.captures") == [(0,)]
    follower.capture = "trigger"
    follower.catch_up()
    assert follower.state == "TRIGGER"


def test_tables_that_come_while_the_way_changes(database: Database) -> None:
    database.run(*TABLES)
    for begins, capture in (("trigger", "auto"), ("wal", "trigger")):
        follower = Follower(database, T, capture=begins)
        follower.capture = capture
        database.run("UPDATE t SET v = v + 1")
        batch = follower.publisher().read("s", follower.after, None, max_rows=1).require()
        assert follower.state == "TRANSITIONING"
        follower.copy(EVENTS)
        database.run(f"INSERT INTO events VALUES ({len(begins)})", "UPDATE t SET v = v + 1")
        assert not batch.complete
        follower.tables = (T, EVENTS)
        follower.require_equal()
        follower.publisher().drop_slot("s")


@pytest.mark.long
def test_a_server_that_does_not_decode_until_it_is_told_to(tmp_path: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    with LogicalServer(folder, cleanup_mode="delete") as server:
        database = Database.create(server, "d")
        database.run(*TABLES, "ALTER SYSTEM SET wal_level = 'replica'")
        server.cleanup_mode = "stop"
    with LogicalServer(folder, cleanup_mode="delete") as server:
        follower = Follower(database := Database(server, "d"), T, EVENTS, capture="auto")
        database.run("INSERT INTO events VALUES (1)", "UPDATE t SET v = v + 1")
        follower.catch_up()
        assert follower.state == "TRIGGER"
        database.run("INSERT INTO events VALUES (2)", "UPDATE t SET v = v + 1")
        database.run("ALTER SYSTEM SET wal_level = 'logical'")
        server.cleanup_mode = "stop"
    with LogicalServer(folder, cleanup_mode="delete") as server:
        follower.database = Database(server, "d")
        follower.database.run("INSERT INTO events VALUES (3)", "DELETE FROM t WHERE id > 50")
        follower.catch_up()
        assert follower.state == "WAL"
        follower.database.run("INSERT INTO events VALUES (4)", "TRUNCATE t")
        follower.require_equal()
        assert events_of(follower) == [1, 2, 3, 4]
