"""Changes of tables and of rows that are rare, against what the server's tables hold then."""

from __future__ import annotations

from typing import Any

import pytest

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.postgres.logical_slots import lsn_text
from replication.postgres.database import Database
from replication.postgres.replica import Replica
from replication.postgres.test_reading import SLOT, follow, shown

T = "public.t"
LONG = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 1000) i)"
"""A text that is stored outside of its row."""


COLUMNS = "id int PRIMARY KEY, a text, gone int"
COLUMNS_COME_AND_GO = (
    "INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2)",
    "ALTER TABLE t ADD b int DEFAULT 7",
    "INSERT INTO t VALUES (3, 'three', 3, 3)",
    "UPDATE t SET b = b + 1 WHERE id < 3",
    "ALTER TABLE t ADD c text",
    "ALTER TABLE t DROP gone",
    "INSERT INTO t VALUES (4, 'four', 4, 'c')",
)
KEYS_CHANGE = "DELETE FROM t WHERE id = 2", "UPDATE t SET id = 20 WHERE id = 1"


def begin(database: Database, *statements: str) -> None:
    database.run(*statements, "CREATE PUBLICATION p FOR ALL TABLES", SLOT)


def require_equal(database: Database, *tables: str) -> None:
    """Who follows these tables has their rows."""
    replica = follow(database, *(f"public.{name}" for name in tables))
    for name in tables:
        assert replica.shown(f"public.{name}") == shown(database, name), name


def news(database: Database, table: str = T, **settings: Any) -> list[dict[str, Any]]:
    after = {table: database.position("s")}
    batch = database.publisher(**settings).read("s", after, None, max_rows=10**6).require()
    return batch.tables[table].rows["new"].to_pylist() if batch.tables else []


@pytest.mark.parametrize("max_rows", [1, 10**6])
@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_columns_come_and_go(database: Database, identity: str, max_rows: int) -> None:
    database.publish(COLUMNS, f"ALTER TABLE t REPLICA IDENTITY {identity}", SLOT)
    database.run(*COLUMNS_COME_AND_GO, *KEYS_CHANGE, "ALTER TABLE t ADD d bool DEFAULT true")
    replica = follow(database, T, max_rows=max_rows)
    # What has not changed since the last column came is for the reader to fill.
    last = database.publisher().offer().require()[T]
    for row in replica.rows[T]:
        row.setdefault("d", last.fills.get("d"))
    assert replica.shown(T) == shown(database, "t")


def test_a_transaction_adds_and_drops_columns_between_changes_of_rows(database: Database) -> None:
    begin(database, "CREATE TABLE t (id int PRIMARY KEY, a text, b int)")
    with database.connect() as connection, connection.transaction():
        connection.execute("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2)")
        connection.execute("ALTER TABLE t DROP b")
        connection.execute("UPDATE t SET a = 'z' WHERE id = 1")
    require_equal(database, "t")


def test_a_transaction_that_renames_is_an_error(database: Database) -> None:
    begin(database, "CREATE TABLE t (id int PRIMARY KEY, a text)")
    with database.connect() as connection, connection.transaction():
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        connection.execute("ALTER TABLE t RENAME a TO b")
        connection.execute("INSERT INTO t VALUES (2, 'y')")
    with pytest.raises(PublisherProblem, match="changed columns"):
        follow(database, T)


def test_types_that_change(database: Database) -> None:
    begin(database, "CREATE TABLE t (id int PRIMARY KEY, n int)")
    database.run(
        "INSERT INTO t VALUES (1, 1)",
        "ALTER TABLE t ALTER n TYPE bigint",
        "INSERT INTO t VALUES (2, 5000000000)",
        "ALTER TABLE t ALTER n TYPE text",
        "INSERT INTO t VALUES (3, 'three')",
    )
    publisher, after, confirmed = database.publisher(), {T: database.position("s")}, None
    found, complete = [], []
    for _ in range(3):
        batch = publisher.read("s", after, confirmed, max_rows=10**6).require()
        found += batch.tables[T].rows["new"].to_pylist()
        complete.append(batch.complete)
        after = dict(batch.end)
        confirmed = publisher.confirm("s", after)
    assert [row["n"] for row in found] == [1, 5000000000, "three"]
    assert complete == [False, False, True]


def test_values_that_did_not_change_are_not_told(database: Database) -> None:
    begin(
        database,
        "CREATE TABLE t (id int PRIMARY KEY, long text, n int)",
        "CREATE TABLE f (id int, long text, n int)",
        "ALTER TABLE f REPLICA IDENTITY FULL",
    )
    for table in ("t", "f"):
        database.run(
            f"INSERT INTO {table} VALUES (1, {LONG}, 0), (2, 'short', 0)",
            f"UPDATE {table} SET n = n + 1",
            f"UPDATE {table} SET id = 10 WHERE id = 1",
            f"UPDATE {table} SET long = long || 'x' WHERE id = 10",
            f"UPDATE {table} SET long = NULL WHERE id = 2",
        )
    start = database.position("s")
    after = {T: start, "public.f": start}
    batch = database.publisher().read("s", after, None, max_rows=10**6).require()
    assert [each for each in batch.tables[T].rows["unchanged"].to_pylist() if each] == [[1], [1]]
    assert not any(batch.tables["public.f"].rows["unchanged"].to_pylist())
    require_equal(database, "t", "f")


def test_truncates_of_several_tables(database: Database) -> None:
    begin(
        database,
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE u (id int REFERENCES t, PRIMARY KEY (id))",
        "CREATE TABLE v (id int PRIMARY KEY)",
    )
    database.run(
        "INSERT INTO t VALUES (1), (2)",
        "INSERT INTO u VALUES (1)",
        "INSERT INTO v VALUES (1)",
        "TRUNCATE t CASCADE",
        "INSERT INTO t VALUES (3)",
        "INSERT INTO u VALUES (3)",
    )
    require_equal(database, "t", "u", "v")


def test_rows_that_come_and_go_in_one_transaction(database: Database) -> None:
    begin(database, "CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE e (id int PRIMARY KEY)")
    with database.connect() as connection, connection.transaction():
        connection.execute("INSERT INTO t VALUES (1), (2)")
        connection.execute("DELETE FROM t WHERE id = 1")
        connection.execute("TRUNCATE t")
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("UPDATE t SET id = 1")
    with database.connect() as connection, connection.transaction():
        connection.execute("INSERT INTO t VALUES (9)")
        connection.execute("DELETE FROM t WHERE id = 9")
    require_equal(database, "t", "e")


def test_a_table_that_is_dropped_and_made_again(database: Database) -> None:
    begin(database, "CREATE TABLE t (id int PRIMARY KEY, a text)")
    database.run(
        "INSERT INTO t VALUES (1, 'old')",
        "DROP TABLE t",
        "CREATE TABLE t (id int PRIMARY KEY, b int)",
        "INSERT INTO t VALUES (1, 5)",
    )
    publisher, after = database.publisher(), {T: database.position("s")}
    batch = publisher.read("s", after, None, max_rows=10**6).require()
    assert batch.tables[T].rows["new"].to_pylist() == [{"id": 1, "a": "old"}]
    batch = publisher.read("s", batch.end, None, max_rows=10**6).require()
    assert batch.tables[T].rows["new"].to_pylist() == [{"id": 1, "b": 5}]
    database.run("DROP TABLE t")
    assert news(database)[0] == {"id": 1, "a": "old"}


def test_positions_of_tables_differ(database: Database) -> None:
    begin(database, "CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    start, ends = database.position("s"), []
    for i in range(4):
        with database.connect() as connection, connection.transaction():
            connection.execute(f"INSERT INTO t VALUES ({i})")  # type: ignore[arg-type]
            connection.execute(f"INSERT INTO u VALUES ({i})")  # type: ignore[arg-type]
        batch = database.publisher().read("s", {T: start}, None, max_rows=10**6).require()
        ends.append(batch.tables[T].positions[-1])
    after = {T: ends[0], "public.u": ends[2], "public.none": ends[3]}
    batch = database.publisher().read("s", after, lsn_text(start), max_rows=10**6).require()
    found = {name: each.rows["new"].to_pylist() for name, each in batch.tables.items()}
    assert found == {T: [{"id": 1}, {"id": 2}, {"id": 3}], "public.u": [{"id": 3}]}
    assert [*batch.tables[T].positions] == ends[1:]
    one = database.publisher().read("s", after, lsn_text(start), max_rows=1)
    assert not one.complete and one.end == after | {T: max(ends[0], one.end[T])}


def test_prepared_transactions_count_when_they_are_committed(database: Database) -> None:
    begin(database, "CREATE TABLE t (id int PRIMARY KEY)")
    name = database.name
    for i, each in enumerate("ab", 1):
        database.run(f"BEGIN; INSERT INTO t VALUES ({i}); PREPARE TRANSACTION '{each}{name}'")
    database.run("INSERT INTO t VALUES (3)")
    assert news(database) == [{"id": 3}]
    database.run(f"COMMIT PREPARED 'b{name}'", f"ROLLBACK PREPARED 'a{name}'")
    assert news(database) == [{"id": 3}, {"id": 2}]


@pytest.mark.since(15)
def test_filters_turn_updates_into_what_the_subscriber_needs(database: Database) -> None:
    """The second scenario of PostgreSQL's documentation."""
    database.run(
        "CREATE TABLE t (a int, b int, c text, PRIMARY KEY (a, c))",
        "CREATE PUBLICATION p FOR TABLE t WHERE (a > 5 AND c = 'NSW')",
    )
    publisher, replica = database.publisher(), Replica()
    database.run(
        "INSERT INTO t VALUES (2,102,'NSW'),(3,103,'QLD'),(4,104,'VIC'),(5,105,'ACT'),"
        "(6,106,'NSW'),(7,107,'NT'),(8,108,'QLD'),(9,109,'NSW')"
    )
    with publisher.copy("s", [T]) as copy:
        after: dict[str, int] = {T: copy.position(T)}
        replica.rows[T] = copy.rows(T).read_all().to_pylist()
    database.run(
        "UPDATE t SET b = 999 WHERE a = 6",
        "UPDATE t SET a = 555 WHERE a = 2",
        "UPDATE t SET c = 'VIC' WHERE a = 9",
    )
    batch = publisher.read("s", after, None, max_rows=10**6).require()
    assert batch.tables[T].rows["op"].to_pylist() == ["update", "insert", "delete"]
    replica.apply(batch)
    assert replica.shown(T) == shown(database, "t", "t WHERE a > 5 AND c = 'NSW'")


def test_tables_of_other_databases_and_of_no_publication_are_left_alone(database: Database) -> None:
    database.publish(
        "id int PRIMARY KEY",
        "CREATE TABLE other (id int PRIMARY KEY)",
        SLOT,
        "INSERT INTO other VALUES (1)",
        "INSERT INTO t VALUES (1)",
        "ALTER PUBLICATION p ADD TABLE other",
        "INSERT INTO other VALUES (2)",
    )
    assert news(database) == [{"id": 1}]
    assert news(database, "public.other") == [{"id": 2}]


@pytest.mark.since(15)
def test_a_column_list_where_only_truncates_are_published(database: Database) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "CREATE PUBLICATION p FOR TABLE t (id) WITH (publish = 'truncate')",
        SLOT,
        "INSERT INTO t VALUES (1, 1)",
        "TRUNCATE t",
    )
    batch = database.publisher().read("s", {T: database.position("s")}, None, max_rows=10).require()
    assert batch.tables[T].table.schema.names == ["id"]
    assert batch.tables[T].rows["op"].to_pylist() == ["truncate"]
