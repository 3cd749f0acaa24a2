"""Changes that triggers capture, against what the server's tables hold."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.model.replication_model import Batch
from dagster_streamtables.replication.postgres.triggers import trigger_log
from dagster_streamtables.runtime.errors.slot_errors import LostSlot, SlotInUse
from replication.postgres.database import Database
from replication.postgres.follower import Follower
from replication.postgres.test_histories import COLUMNS, COLUMNS_COME_AND_GO, KEYS_CHANGE
from replication.postgres.test_reading import _statement, make_random_table
from replication.postgres.test_types import BY_CHOICE, EXACT, TYPES, reads_xml

T = "public.t"


@pytest.mark.parametrize(
    ("identity", "max_rows"),
    [
        ("DEFAULT", 3),
        ("FULL", 10**6),
        *(
            pytest.param(identity, rows, marks=pytest.mark.long)
            for identity in ("DEFAULT", "FULL", "USING INDEX other")
            for rows in (1, 7, 10**6)
        ),
    ],
)
def test_random_histories(database: Database, identity: str, max_rows: int) -> None:
    chance = random.Random(f"{identity} {max_rows}")
    make_random_table(database, identity, "INSERT INTO t VALUES (5, 5, NULL, 'NaN')")
    follower = Follower(database, T, max_rows=max_rows)
    with database.connect() as connection:
        for i in range(25):
            with connection.transaction(force_rollback=chance.random() < 0.2):
                for _ in range(chance.randrange(1, 5)):
                    is_undone = chance.random() < 0.2
                    with (
                        suppress(psycopg.errors.UniqueViolation),
                        connection.transaction(force_rollback=is_undone),
                    ):
                        connection.execute(_statement(chance))  # type: ignore[arg-type]
            if i % 10 == 0:
                follower.step()
    follower.require_equal()
    assert database.slots() == []
    assert database.run("SELECT count(*) FROM streamtables.log_1") == [(0,)]


def test_a_large_transaction_is_read_in_parts(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless several of its statements may have changed one row, which the log need not have in
    order: here the insert is told before the delete."""
    parts, parsed = [], trigger_log._parse_rows
    monkeypatch.setattr(trigger_log, "ROWS", 5)
    monkeypatch.setattr(
        trigger_log, "_parse_rows", lambda lines: (parts.append(len(lines)), parsed(lines))[1]
    )
    database.publish("id int PRIMARY KEY, a text")
    follower = Follower(database, T)
    many, few = (f"FROM generate_series(1, {count}) AS i" for count in (20, 9))
    again = "WITH g AS (DELETE FROM t WHERE id < 9 RETURNING *) INSERT INTO t SELECT id, 'x' FROM g"
    for statement, expected in (
        (f"BEGIN; INSERT INTO t SELECT i {many}; INSERT INTO t SELECT i + 20 {many}; COMMIT",
         [5] * 8),
        ("UPDATE t SET a = 'b', id = -id", [6] * 13 + [2]),
        ("DELETE FROM t WHERE id < -20", [5] * 4),
        ("UPDATE t SET id = -id", [6] * 6 + [4]),
        (again, [16]),
        (f"BEGIN; TRUNCATE t; INSERT INTO t SELECT i {few}; COMMIT", [5] * 2),
        ("BEGIN; UPDATE t SET a = 'c'; DELETE FROM t WHERE id > 7; COMMIT", [20]),
    ):  # fmt: skip
        parts.clear()
        database.run(statement)
        follower.require_equal()
        assert parts == expected, statement


@contextmanager
def told_by_both(
    database: Database, *tables: str, publications: Sequence[str] = (), **settings: Any
) -> Iterator[list[Batch]]:
    """What a slot and what triggers tell of the changes that are made in the block."""
    publishers = {
        capture: database.publisher(*publications, capture=capture, **settings)
        for capture in ("wal", "trigger")
    }
    begun = {slot: each.create_slot(slot, tables) for slot, each in publishers.items()}
    told: list[Batch] = []
    yield told
    for slot, each in publishers.items():
        told.append(each.read(slot, begun[slot], None, max_rows=10**6).require())


@pytest.mark.since(15)
def test_what_is_told_is_what_the_server_tells(database: Database) -> None:
    """Each kind of change, by a slot and by triggers."""
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, a text, g int GENERATED ALWAYS AS (id * 2) STORED)",
        "CREATE TABLE f (id int, a text)",
        "ALTER TABLE f REPLICA IDENTITY FULL",
        "CREATE PUBLICATION p FOR TABLE t, f",
    )
    with told_by_both(database, T, "public.f") as batches:
        for name in ("t", "f"):
            database.run(
                f"INSERT INTO {name} VALUES (1, 'a'), (2, NULL), (3, '')",
                f"UPDATE {name} SET a = a || '\\' WHERE id < 3",
                f"UPDATE {name} SET id = id + 10 WHERE id > 1",
                f"DELETE FROM {name} WHERE id = 12",
                f"BEGIN; INSERT INTO {name} VALUES (5); UPDATE {name} SET a = 'x'; COMMIT",
                f"MERGE INTO {name} USING (VALUES (5, 'y'), (6, 'z')) AS s (id, a) "
                f"ON {name}.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a "
                "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a)",
                f"WITH gone AS (DELETE FROM {name} WHERE id = 1 RETURNING *) "
                f"INSERT INTO {name} (id, a) SELECT id, 'again' FROM gone",
                f"TRUNCATE {name}",
                f"COPY (SELECT 7, 'copied') TO '/tmp/{database.name}'",
            )
    for name in (T, "public.f"):
        rows = [_plain(each, name) for each in batches]
        assert rows[0] == rows[1]
        assert len(rows[0]) > 15
        one, other = (each.tables[name] for each in batches)
        assert one.table == other.table
        assert len(one.positions) == len(other.positions)


def _plain(batch: Batch, name: str) -> list[Any]:
    """MERGE tells updates before inserts here, and in the order of the rows there."""
    rows = batch.tables[name].rows.to_pylist()
    return sorted(rows, key=lambda each: (each["transaction"], each["op"] == "insert", repr(each)))


def test_values_of_every_type(database: Database) -> None:
    values = {**{name: each for name, (_, each) in EXACT.items()}, **BY_CHOICE}
    if not reads_xml(database):
        values["xml"] = []
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(values))
    database.run(*TYPES)
    database.publish(f"id int PRIMARY KEY, {columns}")
    both = told_by_both(database, T, types={"*": "text"})
    with both as batches, database.connect() as connection:
        # None of this is the reader's.
        for setting in (
            "datestyle = 'SQL, DMY'", "timezone = 'Asia/Tokyo'", "bytea_output = 'escape'",
            "extra_float_digits = 0", "intervalstyle = 'iso_8601'", "search_path = x",
        ):  # fmt: skip
            connection.execute(f"SET {setting}")  # type: ignore[arg-type]
        for n in range(max(map(len, values.values()))):
            row = [each[n] if n < len(each) else None for each in values.values()]
            marks = ", ".join(["%s"] * len(row))
            with connection.transaction():
                connection.execute("SET LOCAL datestyle = 'ISO, YMD'")
                connection.execute(f"INSERT INTO public.t VALUES ({n}, {marks})", row)  # type: ignore[arg-type]
    found = [each.tables[T].rows["new"].to_pylist() for each in batches]
    assert repr(found[0]) == repr(found[1])
    assert len(found[0]) > 5


def test_columns_come_and_go_while_writers_go_on(database: Database) -> None:
    database.publish(COLUMNS)
    follower = Follower(database, T)
    with database.connect() as connection:  # one session, which keeps its plans
        for statement in (
            *COLUMNS_COME_AND_GO,
            "ALTER TABLE t RENAME c TO name",
            "UPDATE t SET name = coalesce(name, '') || '!'",
            "ALTER TABLE t ALTER b TYPE bigint",
            "INSERT INTO t VALUES (5, 'five', 5000000000, 'c')",
            *KEYS_CHANGE,
        ):
            connection.execute(statement)  # type: ignore[arg-type]
    follower.require_equal()
    with database.connect() as connection, connection.transaction():
        connection.execute("INSERT INTO t VALUES (6, 'x', 1, 'c')")
        connection.execute("ALTER TABLE t DROP name")
        connection.execute("UPDATE t SET a = 'z' WHERE id = 6")
    follower.require_equal()


@pytest.mark.since(15)
def test_filters_columns_and_operations_of_several_publications(database: Database) -> None:
    database.run(
        "CREATE TABLE t (a int, b int, c text, d text, PRIMARY KEY (a, c))",
        "CREATE PUBLICATION p FOR TABLE t (a, b, c) WHERE (a > 5 AND c = 'NSW')",
        "CREATE PUBLICATION q FOR TABLE t (a, b, c) WHERE (a < 0) WITH (publish = 'insert')",
    )
    with told_by_both(database, T, publications=("p", "q")) as batches:
        database.run(
            "INSERT INTO t VALUES (2,102,'NSW'),(3,103,'QLD'),(-4,104,'VIC'),(5,105,'ACT'),"
            "(6,106,'NSW'),(7,107,'NT'),(8,108,'QLD'),(9,109,'NSW')",
            "UPDATE t SET b = 999 WHERE a = 6",
            "UPDATE t SET a = 555 WHERE a = 2",
            "UPDATE t SET c = 'VIC' WHERE a = 9",
            "UPDATE t SET b = 1 WHERE a < 0",
            "ALTER TABLE t ADD e int",
            "UPDATE t SET d = 'unpublished'",
            "DELETE FROM t WHERE a < 7",
            "TRUNCATE t",
        )
    found = [each.tables[T].rows.to_pylist() for each in batches]
    told = [[{**each, "transaction": 0} for each in rows] for rows in found]
    assert told[0] == told[1]
    assert {each["op"] for each in told[0]} == {"insert", "update", "delete", "truncate"}
    assert set(told[0][0]["new"]) == {"a", "b", "c"}


@pytest.mark.since(13)
def test_partitions_by_their_root(database: Database) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, a text) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high (a text, gone int, id int NOT NULL)",
        "ALTER TABLE high DROP gone",
        "ALTER TABLE t ATTACH PARTITION high FOR VALUES FROM (10) TO (20)",
        "CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root = true)",
    )
    follower = Follower(database, T)
    database.run(
        "INSERT INTO t VALUES (1, 'one'), (11, 'eleven'), (2, 'two')",
        "INSERT INTO high (id, a) VALUES (12, 'direct')",
        "UPDATE high SET a = 'changed' WHERE id = 11",
        "UPDATE t SET id = 15 WHERE id = 2",
        "CREATE TABLE new PARTITION OF t FOR VALUES FROM (20) TO (30)",
        "INSERT INTO t VALUES (21, 'routed'), (22, 'routed, too')",
        "DELETE FROM t WHERE id = 12",
    )
    follower.require_equal()
    database.run("UPDATE new SET a = 'direct'", "TRUNCATE t", "INSERT INTO new VALUES (23)")
    follower.require_equal()
    database.run(
        "CREATE TABLE last PARTITION OF t FOR VALUES FROM (30) TO (40)",
        "INSERT INTO last VALUES (31, 'past its root')",
    )
    with pytest.raises(LostSlot, match="were changed") as error:
        follower.step()
    assert "did not come through its root" in error.value.why
    follower.copy(T)
    follower.require_equal()


@pytest.mark.since(13)
def test_rows_that_a_partition_refuses_when_they_move_there(database: Database) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, a text) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20)",
        "CREATE FUNCTION even() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.id % 2 = 0 THEN RETURN NEW; END IF; RETURN NULL; END $$",
        "CREATE TRIGGER even BEFORE INSERT ON high FOR EACH ROW EXECUTE FUNCTION even()",
        "INSERT INTO t SELECT g, 'a' FROM generate_series(1, 6) g",
        "CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root = true)",
    )
    follower = Follower(database, T)
    database.run("UPDATE t SET id = id + 10, a = 'b'")
    follower.require_equal()
    assert len(follower.replica.rows[T]) == 3


def test_writers_without_rights_and_with_paths_of_their_own(database: Database) -> None:
    role = f"writer_{database.name}"
    database.publish("id int PRIMARY KEY", f"CREATE ROLE {role}", f"GRANT INSERT ON t TO {role}")
    follower = Follower(database, T)
    with database.connect() as connection:
        connection.execute(f"SET ROLE {role}")  # type: ignore[arg-type]
        connection.execute("CREATE TEMP TABLE pg_attribute (x int)")
        connection.execute("SET search_path = pg_temp, public")
        connection.execute("INSERT INTO public.t VALUES (1)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM streamtables.log_1")
        connection.execute("CREATE TEMP TABLE mine (x int)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            capture = "EXECUTE FUNCTION streamtables.capture_1()"
            connection.execute(f"CREATE TRIGGER x AFTER TRUNCATE ON mine {capture}")
    with database.connect() as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("INSERT INTO t VALUES (2)")
    follower.require_equal()


@pytest.mark.parametrize(
    "change",
    [
        "DROP TRIGGER \"00_streamtables_1_insert\" ON t",
        "ALTER TABLE t DISABLE TRIGGER ALL; ALTER TABLE t ENABLE TRIGGER ALL",
        "ALTER TABLE t DISABLE TRIGGER \"00_streamtables_1_insert\"; "
        "ALTER TABLE t ENABLE ALWAYS TRIGGER \"00_streamtables_1_insert\"",
        "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY); ALTER PUBLICATION p ADD TABLE t",
        "DELETE FROM streamtables.log_1",
        "UPDATE streamtables.captures SET place = 'elsewhere'",
        "DELETE FROM streamtables.windows",
    ],
)  # fmt: skip
def test_what_captures_changes_was_touched(database: Database, change: str) -> None:
    database.publish("id int PRIMARY KEY")
    follower = Follower(database, T)
    follower.max_rows = 1
    database.run("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    follower.step()
    database.run(*change.split("; "))
    database.run("INSERT INTO t VALUES (3)")
    with pytest.raises(LostSlot):
        follower.step()
    follower.publisher().drop_slot("s") if "place" not in change else database.run(
        "DELETE FROM streamtables.captures"
    )
    follower.copy(T)
    database.run("INSERT INTO t VALUES (4)")
    follower.require_equal()


def test_tables_whose_changes_triggers_do_not_see(database: Database) -> None:
    database.run(
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE heir (PRIMARY KEY (id)) INHERITS (parent)",
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE parent, t",
    )
    publisher = database.publisher(capture="trigger")
    for name in ("public.parent", "public.heir"):
        with pytest.raises(PublisherProblem, match="cannot be captured by triggers"):
            publisher.create_slot("s", [name])
    with pytest.raises(PublisherProblem, match="triggers do not support"):
        database.publisher(capture="trigger", origin="none").create_slot("s", [T])


@pytest.mark.long
def test_one_process_at_a_time(database: Database) -> None:
    database.publish("id int PRIMARY KEY")
    follower = Follower(database, T)
    with database.connect() as connection:
        connection.execute("SELECT pg_advisory_lock(hashtextextended('streamtables s', 0))")
        with pytest.raises(SlotInUse, match="by another process"):
            follower.step()
    follower.step()


NESTED = {
    "after each row, the row": "UPDATE t SET a = a || NEW.id WHERE id = NEW.id",
    "after each row, all rows": "UPDATE t SET a = a || '.'",
    "after each row, others": "INSERT INTO t VALUES (NEW.id + 100, 'by a trigger')",
}


@pytest.mark.parametrize("statement", NESTED.values(), ids=NESTED)
def test_triggers_that_change_their_own_table(database: Database, statement: str) -> None:
    database.publish("id int PRIMARY KEY, a text")
    nested = f"IF pg_trigger_depth() = 1 THEN {statement}; END IF; RETURN NULL;"
    database.trigger("AFTER INSERT OR UPDATE", nested)
    follower = Follower(database, T)
    database.run(
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        *(["UPDATE t SET a = 'x'"] if "INSERT" not in statement else []),
        "INSERT INTO t VALUES (4, 'd')",
    )
    follower.require_equal()


def test_triggers_that_make_room_for_a_row(database: Database) -> None:
    database.publish("id int PRIMARY KEY, a text")
    database.trigger("BEFORE INSERT", "DELETE FROM t WHERE id = NEW.id; RETURN NEW;")
    follower = Follower(database, T)
    database.run("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (1, 'b'), (2, 'c')")
    follower.require_equal()


def test_foreign_keys_that_change_their_own_table(database: Database) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, up int REFERENCES t ON UPDATE CASCADE "
        "ON DELETE CASCADE)",
        "CREATE TABLE u (id int PRIMARY KEY, up int REFERENCES t ON UPDATE CASCADE "
        "ON DELETE SET NULL, other int REFERENCES t ON UPDATE CASCADE ON DELETE CASCADE)",
        "CREATE PUBLICATION p FOR TABLE t, u",
    )
    follower = Follower(database, T, "public.u")
    database.run(
        "INSERT INTO t VALUES (1, NULL), (2, 1), (3, 2), (4, 1), (9, 9), (10, NULL), (11, NULL)",
        "INSERT INTO u VALUES (1, 9, 10), (2, 11, NULL), (3, 9, NULL)",
        "UPDATE t SET id = id + 100",
        "DELETE FROM t WHERE id = 102",
        "DELETE FROM t WHERE id IN (109, 110, 111)",
    )
    follower.require_equal()


def test_an_order_that_is_not_told_is_an_error(database: Database) -> None:
    """A trigger brings back what was deleted: as if the row had come and gone."""
    database.publish("id int PRIMARY KEY, a text", "INSERT INTO t VALUES (1, 'a')")
    database.trigger("AFTER DELETE", "INSERT INTO t VALUES (OLD.*); RETURN NULL;")
    follower = Follower(database, T)
    database.run("DELETE FROM t")
    with pytest.raises(PublisherProblem, match="is unknown"):
        follower.step()


def test_what_commits_late_is_not_missed(database: Database) -> None:
    database.publish("id int PRIMARY KEY")
    follower = Follower(database, T)
    name = database.name
    with database.connect() as early, early.transaction():
        early.execute("INSERT INTO t VALUES (1)")
        database.run("INSERT INTO t VALUES (2)")
        database.run(f"BEGIN; INSERT INTO t VALUES (3); PREPARE TRANSACTION 'late{name}'")
        follower.catch_up()
        assert follower.replica.rows[T] == [{"id": 2}]
        early.execute("INSERT INTO t VALUES (4)")
    follower.copy(T)
    assert sorted(row["id"] for row in follower.replica.rows[T]) == [1, 2, 4]
    database.run("INSERT INTO t VALUES (5)", f"COMMIT PREPARED 'late{name}'")
    follower.require_equal()
    lag = follower.publisher().lag("s", follower.after)
    database.run("INSERT INTO t VALUES (6)")
    later = follower.publisher().lag("s", follower.after)
    assert (lag.commits, lag.bytes, lag.seconds) == (0, 0, 0.0)
    assert later.commits == 1 and later.bytes and later.seconds > 0


def test_transactions_come_in_the_order_of_their_changes_of_a_row(database: Database) -> None:
    database.publish("id int PRIMARY KEY, v text", "INSERT INTO t VALUES (1, '')")
    follower = Follower(database, T)
    with database.connect() as early, early.transaction():
        early.execute("INSERT INTO t VALUES (2, 'early')")
        database.run("UPDATE t SET v = v || 'first' WHERE id = 1")
        early.execute("UPDATE t SET v = v || 'then' WHERE id = 1")
    follower.require_equal()
