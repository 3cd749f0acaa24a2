"""Bad input: each is a clear error, nothing is begun, and no message has a secret."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dagster_streamtables.errors import (
    EnvironmentProblem,
    InvalidDefinition,
    LostPublisher,
    PublisherProblem,
    StreamTablesError,
)
from dagster_streamtables.replication.lifecycle.publisher_declaration import FromPostgres
from dagster_streamtables.replication.postgres.postgres_publisher import PostgresPublisher
from dagster_streamtables.replication.postgres.postgres_server import OPTIONS, PublisherServer
from dagster_streamtables.runtime.lake import Lake
from replication.postgres.database import VERSION, Database, LogicalServer

T = "public.t"
SECRET = "s3cr3t"


def refused(kind: type[StreamTablesError], what: str, use: Callable[[], object]) -> Any:
    with pytest.raises(kind, match=what) as found:
        use()
    assert SECRET not in "".join(traceback.format_exception(found.value))
    assert found.value.fix
    return found.value


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://user:{SECRET}@{SECRET}@host/db",
        f"postgresql://user:{SECRET}/{SECRET}@host/db",
        f"postgresql://user:1/{SECRET}@host/db",
        f"postgresql://user:%zz{SECRET}@host/db",
        f"postgresql://user@host/db?pasword={SECRET}",
        f"host=h password='{SECRET}",
        f"{SECRET} {SECRET}",
        f"host=h pasword={SECRET}",
    ],
)
def test_an_address_that_cannot_be_read_is_not_shown(address: str) -> None:
    refused(InvalidDefinition, "cannot be read", lambda: PostgresPublisher(address, ["p"]))


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        (f"postgresql://u:{SECRET}@h:5433/d?sslmode=require", "postgresql://h:5433/d"),
        (f"postgresql://u:{SECRET}%40%2F@h:1,i:2/d%40e", "postgresql://h,i:1,2/d@e"),
        ("postgresql://[::1]:5433/d", "postgresql://::1:5433/d"),
        ("postgresql:///d?host=/a%20b&user=u", "postgresql:///a b:5432/d"),
        (f"dbname='a b' password={SECRET} connect_timeout=3", "postgresql://localhost:5432/a b"),
    ],
)
def test_an_address_without_secrets(address: str, origin: str) -> None:
    server = PublisherServer.at(address, password=None)
    assert server.origin == origin
    given = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    given.pop("password", None)
    assert server.options == OPTIONS | given
    assert SECRET not in repr(server) + repr(PostgresPublisher(address, ["p"]))


@pytest.fixture
def guarded(database: Database) -> Iterator[str]:
    """The address of a role that needs a password, without it."""
    database.publish("id int PRIMARY KEY, v text", "INSERT INTO t VALUES (1, 'x')")
    with database.guarded(SECRET):
        database.run("GRANT SELECT ON t TO guarded")
        yield make_conninfo(database.address, user="guarded", password=None)


def test_passwords(
    database: Database, guarded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "nothing"))
    wrong = make_conninfo(guarded, password="wrong")
    assert list(PostgresPublisher(wrong, ["p"], password=SECRET).offer().require()) == [T]
    assert list(PostgresPublisher(wrong, ["p"], password_file=file).offer().require()) == [T]
    assert list(PostgresPublisher(make_conninfo(guarded, password=SECRET), ["p"]).offer().require())
    nobody = make_conninfo(database.address, user=f"nobody{SECRET}")
    for publisher in (
        PostgresPublisher(wrong, ["p"]),
        PostgresPublisher(guarded, ["p"]),
        PostgresPublisher(guarded, ["p"], password=f"{SECRET}x"),
        PostgresPublisher(nobody, ["p"], password=SECRET),
    ):
        error = refused(PublisherProblem, "refuses the login of the replication", publisher.offer)
        assert error.why
    file.unlink()
    absent = PostgresPublisher(guarded, ["p"], password_file=file)
    assert refused(EnvironmentProblem, "cannot be read", absent.offer).where == str(file)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert list(PostgresPublisher(guarded, ["p"]).offer().require()) == [T]


def test_privileges(database: Database, guarded: str) -> None:
    publisher = PostgresPublisher(guarded, ["p"], password=SECRET)
    uses = (lambda: publisher.copy("s", [T]).__enter__(), lambda: publisher.create_slot("s", [T]))
    for take, give in [
        ("REVOKE SELECT ON t FROM guarded", "GRANT SELECT (id, v) ON t TO guarded"),
        ("REVOKE USAGE ON SCHEMA public FROM PUBLIC", "GRANT USAGE ON SCHEMA public TO PUBLIC"),
        ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", "ALTER TABLE t DISABLE ROW LEVEL SECURITY"),
        ("ALTER ROLE guarded NOREPLICATION", "ALTER ROLE guarded REPLICATION"),
    ]:
        database.run(take)
        for use in uses:
            refused(PublisherProblem, "does not allow that", use)
        assert database.slots() == []
        database.run(give)
    with publisher.copy("s", [T]) as copy:
        assert copy.rows(T).read_all().num_rows == 1
    create = partial(publisher.create_publication, "q", tables=[T])
    refused(PublisherProblem, "does not allow that", create)


@pytest.mark.since(15)
def test_a_publication_that_is_missing_is_created(database: Database) -> None:
    database.run(
        'CREATE SCHEMA "x.y"',
        'CREATE TABLE "x.y"."T %" (id int PRIMARY KEY) PARTITION BY LIST (id)',
        'CREATE TABLE "x.y".part PARTITION OF "x.y"."T %" DEFAULT',
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE u (id int PRIMARY KEY)",
        "CREATE VIEW v AS SELECT 1",
    )
    publisher = database.publisher('P "1"')
    error = refused(PublisherProblem, "there is no publication", publisher.offer)
    assert "create_publication" in error.fix
    refused(PublisherProblem, "there is no publication", lambda: publisher.create_slot("s", [T]))
    for tables in (["t"], ["public.v"], ["public.nothing", T]):
        create = partial(publisher.create_publication, 'P "1"', tables=tables)
        refused(PublisherProblem, "there is no table", create)
    refused(InvalidDefinition, "no tables", lambda: publisher.create_publication("q"))
    publisher.create_publication('P "1"', tables=[T], schemas=["x.y"])
    assert sorted(publisher.offer().require()) == [T, "x.y.T %"]
    publisher.create_publication("two", tables=["public.u", "x.y.T %"])
    assert sorted(database.publisher("two").offer().require()) == ["public.u", "x.y.T %"]
    assert database.slots() == []


def test_whole_schemas(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)")
    publisher = database.publisher("q")
    if VERSION < 15:
        create = partial(publisher.create_publication, "q", schemas=["public"])
        refused(PublisherProblem, "does not publish whole schemas", create)
    else:
        publisher.create_publication("q", schemas=["public"])
        assert [*publisher.offer().require()] == [T]


@pytest.mark.since(15)
def test_tables_without_an_identity(database: Database) -> None:
    database.run(
        "CREATE TABLE bare (id int)",
        "CREATE PUBLICATION p FOR TABLE bare",
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "CREATE PUBLICATION q FOR TABLE t (v)",
        "CREATE PUBLICATION other FOR TABLE t",
        "CREATE PUBLICATION i FOR TABLE bare, t (v) WITH (publish = 'insert, truncate')",
    )
    for publications, table, what in [
        (["p"], "public.bare", "have no identity"),
        (["q"], T, "have no identity"),
        (["q", "other"], T, "different columns"),
    ]:
        publisher = database.publisher(*publications)
        refused(PublisherProblem, what, publisher.offer().require)
        refused(PublisherProblem, what, partial(publisher.create_slot, "s", [table]))
        refused(PublisherProblem, what, publisher.copy("s", [table]).__enter__)
    found = database.publisher("i").offer().require()
    assert [each.identity for each in found.values()] == [None, None]
    database.run("ALTER TABLE bare REPLICA IDENTITY FULL")
    assert database.publisher().offer().require()["public.bare"].identity is None
    database.run("ALTER TABLE bare ADD PRIMARY KEY (id), REPLICA IDENTITY NOTHING")
    refused(PublisherProblem, "have no identity", database.publisher().offer().require)
    assert database.slots() == []


def test_a_server_that_goes_away_in_the_middle(database: Database) -> None:
    many = "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 200000) g"
    database.publish("id int PRIMARY KEY, v text", many)
    publisher = database.publisher()
    end_all = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )

    def copy() -> None:
        with publisher.copy("s", [T]) as copied:
            rows = copied.rows(T)
            rows.read_next_batch()
            database.run(end_all)
            rows.read_all()

    refused(LostPublisher, "the connection to PostgreSQL|cannot be reached", copy)
    with publisher.copy("s", [T]) as copied:
        assert copied.rows(T).read_all().num_rows == 200_000
    assert database.slots() == ["s"]
    closed = f"postgresql://u:{SECRET}@127.0.0.1:1/d"
    refused(LostPublisher, "cannot be reached", PostgresPublisher(closed, ["p"]).offer)
    nowhere = Database(database.server, "nothing")
    refused(PublisherProblem, "there is no database", nowhere.publisher().offer)


def test_a_table_that_stays_locked(database: Database) -> None:
    database.publish("id int PRIMARY KEY")
    publisher = database.publisher(slot_timeout=timedelta(seconds=0.2))
    with database.connect() as connection, connection.transaction():
        connection.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        refused(LostPublisher, "locked", lambda: publisher.copy("s", [T]).__enter__())
    assert database.slots() == []


def test_names_of_slots(database: Database) -> None:
    database.publish("id int PRIMARY KEY")
    for name in ("A", "a b", 'a"; DROP TABLE t', "a" * 64, "", "a\n"):
        begin = partial(database.publisher().create_slot, name, [T])
        refused(InvalidDefinition, "cannot be called", begin)
    assert database.slots() == []
    longest = "a" * 63
    database.publisher().create_slot(longest, [T])
    with database.publisher().copy(longest, [T]) as copy:
        assert copy.rows(T).read_all().num_rows == 0
    assert database.slots() == [longest]


def test_psycopg_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    source = FromPostgres("host=h", ["p"])
    connect = partial(source.connect, Lake(str(tmp_path)), "reader", ["p"], None)
    error = refused(EnvironmentProblem, "not installed", connect)
    assert error.fix == "pip install 'dagster-streamtables[postgres]'"


@pytest.mark.long
def test_a_server_that_does_not_decode_and_one_that_stops(tmp_path: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    with LogicalServer(folder, cleanup_mode="delete") as server:
        database = Database.create(server, "d")
        database.publish("id int PRIMARY KEY")
        publisher = database.publisher()
        position = publisher.create_slot("s", [T])[T]
        publisher.drop_slot("s")
        database.run("ALTER SYSTEM SET wal_level = 'replica'")
        server.cleanup_mode = "stop"
    refused(LostPublisher, "cannot be reached", publisher.offer)
    with LogicalServer(folder, cleanup_mode="delete") as server:
        publisher = Database(server, "d").publisher(capture="wal")
        refused(PublisherProblem, "does not decode", lambda: publisher.create_slot("s", [T]))
        refused(PublisherProblem, "does not decode", lambda: publisher.copy("s", [T]).__enter__())
        assert Database(server, "d").slots() == []
        assert position
