"""What a copy holds, against what the server's tables held at that moment."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.postgres import snapshot
from dagster_streamtables.replication.postgres.postgres_publisher import PostgresPublisher
from replication.postgres.database import Database
from replication.postgres.replica import Replica
from replication.postgres.test_reading import follow, shown
from replication.postgres.writers import TABLES, Writers

T, EVENTS = "public.t", "public.events"
TEXTS = [
    None, "", "NULL", "\\.", "\\N", "\ufeffmark", '"', '""', "a,b", " a ", "\n", "\r", "\r\n", "\t",
    "ü€😀", "x" * 2_000_000, "\x01", "'",
]  # fmt: skip


def copied(publisher: PostgresPublisher, table: str, slot: str = "s") -> pa.Table:
    with publisher.copy(slot, [table]) as copy:
        return copy.rows(table).read_all()


def column(rows: pa.Table, name: str) -> list[Any]:
    return sorted(rows[name].to_pylist(), key=repr)


@pytest.mark.parametrize("columns", ["v text", "id int, v text", "v text, id int"])
def test_hostile_texts(database: Database, columns: str) -> None:
    database.run(
        f"CREATE TABLE t ({columns})", "CREATE PUBLICATION p FOR TABLE t WITH (publish = 'insert')"
    )
    with database.connect() as connection:
        for text in (*TEXTS, *reversed(TEXTS)):
            connection.execute("INSERT INTO t (v) VALUES (%s)", [text])
    found = copied(database.publisher(), T)
    assert column(found, "v") == sorted([*TEXTS, *TEXTS], key=repr)


def test_an_empty_table_and_names_of_every_kind(database: Database) -> None:
    database.run(
        'CREATE SCHEMA "My Schema"',
        'CREATE TABLE "My Schema"."T $1 {ü} ""%s""" ("a ""b""" int PRIMARY KEY, "%s {}" text)',
        'CREATE PUBLICATION "P, ""1""" FOR TABLE "My Schema"."T $1 {ü} ""%s"""',
    )
    publisher, name = database.publisher('P, "1"'), 'My Schema.T $1 {ü} "%s"'
    with publisher.copy("s", [name]) as copy:
        rows = copy.rows(name).read_all()
        position = copy.position(name)
    assert rows.num_rows == 0
    assert rows.schema == publisher.offer().require()[name].schema
    database.run("""INSERT INTO "My Schema"."T $1 {ü} ""%s""\" VALUES (1, 'x')""")
    batch = publisher.read("s", {name: position}, None, max_rows=10).require()
    assert batch.tables[name].rows["new"].to_pylist() == [{'a "b"': 1, "%s {}": "x"}]
    assert column(copied(publisher, name), "%s {}") == ["x"]


@pytest.mark.since(15)
def test_filters_are_joined_by_or_and_the_operations_do_not_matter(database: Database) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, a text, b text, g int GENERATED ALWAYS AS (1) STORED)",
        "INSERT INTO t SELECT g, 'a' || g, NULLIF(g, 3)::text FROM generate_series(0, 9) g",
        "INSERT INTO t VALUES (-1, '{}', '%s')",
        "CREATE PUBLICATION p FOR TABLE t (id, b) WHERE (id > 5 AND id <> 8)",
        "CREATE PUBLICATION q FOR TABLE t (b, id) WHERE (id = 3 OR id < 0)"
        " WITH (publish = 'truncate')",
        "CREATE PUBLICATION r FOR TABLE t (id, b) WITH (publish = 'truncate')",
        "CREATE PUBLICATION whole FOR TABLE t",
    )
    ids = {
        ("p",): [6, 7, 9],
        ("q",): [-1, 3],
        ("p", "q"): [-1, 3, 6, 7, 9],
        ("p", "r"): list(range(-1, 10)),
    }
    for publications, expected in ids.items():
        found = copied(database.publisher(*publications), T)
        assert found.schema.names == ["id", "b"]
        assert sorted(found["id"].to_pylist()) == expected
    assert copied(database.publisher("whole"), T).schema.names == ["id", "a", "b"]


@pytest.mark.since(13)
def test_partitions_are_copied_by_their_root_and_heirs_by_themselves(database: Database) -> None:
    database.run(
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF root FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high PARTITION OF root FOR VALUES FROM (10) TO (20) PARTITION BY LIST (id)",
        "CREATE TABLE higher PARTITION OF high DEFAULT",
        "INSERT INTO root VALUES (1), (11), (12)",
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE heir (PRIMARY KEY (id)) INHERITS (parent)",
        "INSERT INTO parent VALUES (1)",
        "INSERT INTO heir VALUES (2)",
        "CREATE PUBLICATION p FOR TABLE root, parent WITH (publish_via_partition_root = true)",
        "CREATE PUBLICATION leaves FOR TABLE root",
    )
    publisher, names = database.publisher(), ["public.root", "public.parent", "public.heir"]
    assert sorted(publisher.offer().require()) == sorted(names)
    with publisher.copy("s", names) as copy:
        after = {name: copy.position(name) for name in names}
        ids = [column(copy.rows(name).read_all(), "id") for name in names]
    assert ids == [[1, 11, 12], [1], [2]]
    database.run("INSERT INTO root VALUES (13)", "INSERT INTO heir VALUES (3)")
    batch = publisher.read("s", after, None, max_rows=10).require()
    assert {n: c.rows["new"].to_pylist() for n, c in batch.tables.items()} == {
        "public.root": [{"id": 13}],
        "public.heir": [{"id": 3}],
    }
    leaves = database.publisher("leaves")
    assert column(copied(leaves, "public.higher", "l"), "id") == [11, 12, 13]


# Before 15.13, 16.9 and 17.5 a server may lose changes of a table that is added to a
# publication while transactions are open; no 12 has that mended.
@pytest.mark.parametrize("is_new", [True, pytest.param(False, marks=pytest.mark.since(13))])
def test_nothing_is_lost_or_doubled_between_copy_and_changes(
    database: Database, is_new: bool
) -> None:
    """While three write, as fast as they can."""
    database.run(*TABLES)
    if not is_new:
        database.run("ALTER PUBLICATION p DROP TABLE t")
    publisher = database.publisher()
    after = {} if is_new else dict(publisher.create_slot("s", [EVENTS]))
    first = database.position("s") if after else None
    replica, names = Replica(), [T, *([EVENTS] if is_new else [])]
    with Writers(database, 3, ahead=10**9).writing():
        database.run("SELECT pg_sleep(0.3)")
        if not is_new:
            database.run("ALTER PUBLICATION p ADD TABLE t")
        with publisher.copy("s", names) as copy:
            for name in names:
                after[name] = copy.position(name)
                replica.rows[name] = copy.rows(name).read_all().to_pylist()
        assert database.slots() == ["s"]
        assert first is None or database.position("s") == first
        database.run("SELECT pg_sleep(0.3)")
    follow(database, after=after, max_rows=100, replica=replica)
    for name in (T, EVENTS):
        assert replica.shown(name) == shown(database, name)


def test_rows_come_a_batch_at_a_time_in_another_thread_and_need_not_all_be_read(
    database: Database,
) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t SELECT generate_series(1, 200000)",
        "CREATE TABLE u (id int PRIMARY KEY)",
        "INSERT INTO u VALUES (1)",
        "CREATE PUBLICATION p FOR TABLE t, u",
    )
    found: list[pa.RecordBatch] = []
    with database.publisher().copy("s", [T, "public.u"]) as copy:
        assert column(copy.rows("public.u").read_all(), "id") == [1]
        rows = copy.rows(T)
        reader = threading.Thread(target=lambda: found.append(rows.read_next_batch()))
        reader.start()
        reader.join()
        assert 0 < found[0].num_rows < 200_000
    open_ones = (
        "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL "
        "AND pid <> pg_backend_pid() AND datname = current_database()"
    )
    while database.run(open_ones) != [(0,)]:
        pass


def test_what_is_copied_stays_as_it_is_until_the_end(database: Database) -> None:
    database.publish("id int PRIMARY KEY", "INSERT INTO t VALUES (1)")
    with database.publisher().copy("s", [T]) as copy:
        database.run("INSERT INTO t VALUES (2)")
        for change in ("ALTER TABLE t ALTER id TYPE bigint", "TRUNCATE t"):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                database.run("SET lock_timeout = 20", change)
        assert column(copy.rows(T).read_all(), "id") == [1]


def test_a_table_that_is_rewritten_when_its_copy_begins(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot from before a rewrite shows the table without rows."""
    database.publish("id int PRIMARY KEY", "INSERT INTO t VALUES (1)")
    publisher = database.publisher()
    begin = snapshot.begin_with_slot

    def and_rewrite(*args: Any, **kwargs: Any) -> Any:
        begun = begin(*args, **kwargs)
        database.run("ALTER TABLE t ALTER id TYPE bigint")
        return begun

    monkeypatch.setattr(snapshot, "begin_with_slot", and_rewrite)
    with pytest.raises(PublisherProblem, match=r'"public\.t" was rewritten'):
        copied(publisher, T)
    assert database.slots() == []
    monkeypatch.undo()
    assert column(copied(publisher, T), "id") == [1]


def test_a_new_slot_does_not_wait_for_ever(database: Database) -> None:
    database.publish("id int PRIMARY KEY")
    publisher = database.publisher(slot_timeout=timedelta(seconds=0.3))
    with database.connect() as connection, connection.transaction(force_rollback=True):
        connection.execute("INSERT INTO t VALUES (1)")
        pid = connection.info.backend_pid
        with pytest.raises(PublisherProblem, match="cannot begin") as error:
            copied(publisher, T)
        assert f"process {pid}" in error.value.why
        with pytest.raises(PublisherProblem, match="cannot begin"):
            publisher.create_slot("s", [T])
    assert database.slots() == []


def test_a_table_that_is_not_published_begins_no_slot(database: Database) -> None:
    database.publish("id int PRIMARY KEY")
    publisher = database.publisher()
    with pytest.raises(PublisherProblem, match=r'"public\.u"') as error:
        copied(publisher, "public.u")
    assert T in error.value.why
    with pytest.raises(PublisherProblem, match=r'"public\.u"'):
        publisher.create_slot("s", ["public.u"])
    assert database.slots() == []
