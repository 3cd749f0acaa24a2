"""`CaptureState`: how the changes of a slot come, and what triggers need at the server.

These are a schema with the states of all slots, and for each slot a log and the function that
writes it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import errors, sql

from dagster_streamtables.replication.postgres.postgres_server import scalar
from dagster_streamtables.runtime.errors.slot_errors import LostSlot, SlotInUse

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection


class CaptureMethod(enum.StrEnum):
    TRIGGER = "TRIGGER"
    TO_WAL = "TO_WAL"
    """Triggers up to the turn, then the server's log. Without a turn, its slot is not made yet."""
    TO_TRIGGER = "TO_TRIGGER"
    """The server's log up to the turn, then triggers. Without a turn, there are none yet."""


@dataclass(frozen=True)
class CaptureState:
    slot: str
    number: int
    """The number of its log and its function."""
    way: CaptureMethod
    turn: int | None
    """The position where the way changes."""

    def is_by_triggers(self, position: float) -> bool:
        """Whether triggers have the changes after a position."""
        to_wal = self.way is CaptureMethod.TO_WAL
        if self.turn is None:
            return to_wal or self.way is CaptureMethod.TRIGGER
        return (position < self.turn) is to_wal


def find_capture(connection: Connection, slot: str) -> CaptureState | None:
    """None if the slot has no triggers.

    Raises:
        LostSlot: The database was copied to where it is now.
    """
    if not is_there(connection):
        return None
    query = "SELECT number, way, turn, place FROM streamtables.captures WHERE slot = %s"
    row = connection.execute(query, [slot]).fetchone()
    if row is None:
        return None
    number, way, turn, place = row
    if place != scalar(connection, PLACE):
        raise LostSlot(
            f'the triggers of slot "{slot}" are of another database',
            why="it was restored or copied to where it is now, and changes have come to neither "
            "both nor one of the two",
            fix="drop the slot, and copy the tables again",
        )
    return CaptureState(slot, number, CaptureMethod(way), turn)


def begin(connection: Connection, slot: str, way: CaptureMethod) -> CaptureState:
    """Create the state and the log of a slot, unless they exist. The role must be allowed to create
    a schema in the database."""
    with connection.transaction():
        # CREATE … IF NOT EXISTS fails if two do it at once.
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('streamtables', 0))")
        if not is_there(connection):
            connection.execute(TABLES.encode())
    with connection.transaction():
        connection.execute(
            "INSERT INTO streamtables.captures (slot, way, place) VALUES (%s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            [slot, way, scalar(connection, PLACE)],
        )
        found = find_capture(connection, slot)
        assert found is not None
        make_log(connection, found.number)
    return found


def change(connection: Connection, slot: str, way: CaptureMethod, turn: int | None) -> None:
    connection.execute(
        "UPDATE streamtables.captures SET way = %s, turn = %s, reason = NULL WHERE slot = %s",
        [way, turn, slot],
    )


LOCK = """
    SET lock_timeout = '5s';
    SELECT pg_advisory_lock(hashtextextended({name}, 0));
    SET lock_timeout = '1min'
"""
"""The server notices within a moment that the process which had it has ended."""


def lock_slot(connection: Connection, slot: str) -> None:
    """Until the connection is closed.

    Raises:
        SlotInUse: Another process has it.
    """
    try:
        connection.execute(sql.SQL(LOCK).format(name=sql.Literal(f"streamtables {slot}")))
    except errors.LockNotAvailable as error:
        raise SlotInUse(
            f'slot "{slot}" is read by another process',
            why="its changes come by triggers, whose log one process at a time reads",
            fix="end that process, or wait; a slot has one reader, so create one for each",
        ) from error


SCHEMA = "streamtables"
# txid_… rather than pg_current_xact_id() and its like: servers before 13 also have them.
TABLES = """
    CREATE SCHEMA IF NOT EXISTS streamtables;
    CREATE SEQUENCE IF NOT EXISTS streamtables.numbers AS int;
    CREATE SEQUENCE IF NOT EXISTS streamtables.statements;
    CREATE TABLE IF NOT EXISTS streamtables.captures (
        slot text PRIMARY KEY,
        number int NOT NULL UNIQUE DEFAULT nextval('streamtables.numbers'),
        way text NOT NULL,
        turn bigint,
        reason text,
        tried timestamptz,
        place text NOT NULL
    );
    CREATE TABLE IF NOT EXISTS streamtables.windows (
        slot text NOT NULL,
        position bigint NOT NULL,
        snapshot txid_snapshot NOT NULL,
        transactions bigint NOT NULL,
        changes bigint NOT NULL,
        PRIMARY KEY (slot, position)
    );
    CREATE TABLE IF NOT EXISTS streamtables.triggers (
        slot text NOT NULL,
        relation oid NOT NULL,
        name text NOT NULL,
        version text NOT NULL,
        PRIMARY KEY (slot, relation)
    );
    CREATE TABLE IF NOT EXISTS streamtables.shapes (
        relation oid NOT NULL, shape bigint NOT NULL, columns text NOT NULL
    )
"""
# The end of a log is not cut off by vacuum, for which it would lock out the writers.
LOG = """
    CREATE TABLE IF NOT EXISTS {log} (
        xid bigint NOT NULL,
        statement bigint NOT NULL,
        ordinal bigint NOT NULL,
        relation oid NOT NULL,
        shape bigint NOT NULL,
        op "char" NOT NULL,
        depth int NOT NULL,
        at timestamptz NOT NULL,
        changed text
    ) WITH (vacuum_truncate = off)
"""
FUNCTION = """
    CREATE FUNCTION {function}() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO, YMD' SET intervalstyle = postgres SET timezone = 'UTC'
    SET extra_float_digits = 3 SET bytea_output = 'hex' SET row_security = off
    AS $$
    DECLARE
        number bigint := nextval('streamtables.statements');
        form bigint;
        before bigint;
        after bigint;
    BEGIN
        SELECT hashtextextended(string_agg(concat_ws(
                ':', attnum, attname, atttypid, atttypmod, attgenerated), ',' ORDER BY attnum), 0)
            INTO form FROM pg_attribute
            WHERE attrelid = TG_RELID AND attnum > 0 AND NOT attisdropped;
        IF NOT EXISTS (SELECT FROM streamtables.shapes AS s
                       WHERE s.relation = TG_RELID AND s.shape = form) THEN
            INSERT INTO streamtables.shapes SELECT TG_RELID, form, json_agg(json_build_array(
                    attname, atttypid::bigint, atttypmod, attgenerated <> '', attnum)
                    ORDER BY attnum)
                FROM pg_attribute WHERE attrelid = TG_RELID AND attnum > 0 AND NOT attisdropped;
        END IF;
        IF TG_OP = 'INSERT' THEN
            INSERT INTO {log} SELECT txid_current(), number, row_number() OVER (), TG_RELID, form,
                'I', pg_trigger_depth(), now(), (new_rows.*)::text FROM new_rows;
        ELSIF TG_OP = 'DELETE' THEN
            INSERT INTO {log} SELECT txid_current(), number, row_number() OVER (), TG_RELID, form,
                'D', pg_trigger_depth(), now(), (old_rows.*)::text FROM old_rows;
        ELSIF TG_OP = 'UPDATE' THEN
            INSERT INTO {log} SELECT txid_current(), number, row_number() OVER (), TG_RELID, form,
                'u', pg_trigger_depth(), now(), (old_rows.*)::text FROM old_rows;
            GET DIAGNOSTICS before = ROW_COUNT;
            INSERT INTO {log} SELECT txid_current(), number, row_number() OVER (), TG_RELID, form,
                'U', pg_trigger_depth(), now(), (new_rows.*)::text FROM new_rows;
            GET DIAGNOSTICS after = ROW_COUNT;
            IF before <> after THEN
                UPDATE {log} AS l SET op = CASE l.op WHEN 'u' THEN 'D'::"char" ELSE 'I' END,
                    ordinal = CASE l.op WHEN 'u' THEN l.ordinal ELSE l.ordinal + before END
                    WHERE l.statement = number AND l.xid = txid_current();
            END IF;
        ELSE
            INSERT INTO {log} VALUES (txid_current(), number, 1, TG_RELID, form, 'T',
                pg_trigger_depth(), now(), NULL);
        END IF;
        RETURN NULL;
    END $$
"""
"""The writer of a table needs no rights on the log, and nothing of its session changes what is
written. Old and new rows of an update come in one order; if a trigger of a partition refuses some
that move there, they do not match, and are deletes and inserts."""
PLACE = """
    SELECT system_identifier || '/' || (
        SELECT oid FROM pg_database WHERE datname = current_database())
    FROM pg_control_system()
"""
"""Other in a copy of the database."""


def log_of(number: int) -> sql.Identifier:
    return sql.Identifier(SCHEMA, f"log_{number}")


def function_of(number: int) -> sql.Identifier:
    return sql.Identifier(SCHEMA, f"capture_{number}")


def is_there(connection: Connection) -> bool:
    """Whether any slot of the database was ever captured by triggers."""
    return scalar(connection, "SELECT to_regclass('streamtables.shapes') IS NOT NULL")


def make_log(connection: Connection, number: int) -> None:
    """Inside a transaction. Triggers are also known by their function, so it stays as it is."""
    function = function_of(number).as_string(connection)
    if scalar(connection, "SELECT to_regproc(%s)", [function]) is not None:
        return
    names = {"log": log_of(number), "function": function_of(number)}
    connection.execute(sql.SQL(LOG).format(**names))
    connection.execute(sql.SQL(FUNCTION).format(**names))
    # Else another user could have it write rows of a table of theirs.
    query = sql.SQL("REVOKE ALL ON FUNCTION {}() FROM PUBLIC")
    connection.execute(query.format(function_of(number)))
