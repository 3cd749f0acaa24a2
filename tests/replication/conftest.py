"""One server for the tests of a session, and a database of it for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from replication.postgres.database import Database, LogicalServer

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogicalServer]:
    folder = tmp_path_factory.mktemp("postgres") / "data"
    folder.mkdir()
    with LogicalServer(folder, cleanup_mode="delete") as server:
        yield server


@pytest.fixture
def database(server: LogicalServer) -> Iterator[Database]:
    """An empty one."""
    database = Database.create(server, f"d{next(NUMBERS)}")
    yield database
    database.let_go()
