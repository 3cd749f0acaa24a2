"""One server for the tests of a session, and a database of it for each test."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from replication.postgres.database import VERSION, Database, LogicalServer

NUMBERS = itertools.count()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the server does not do yet; the wheel's does it all."""
    too_new = {
        each for each in items for mark in each.iter_markers("since") if mark.args[0] > VERSION
    }
    if too_new:
        config.hook.pytest_deselected(items=[*too_new])
        items[:] = [each for each in items if each not in too_new]


@pytest.fixture(scope="session")
def server() -> Iterator[LogicalServer]:
    # Not pytest's folder: another session closes it to the system user that the server runs as.
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "data"
        folder.mkdir()
        with LogicalServer(folder, cleanup_mode="delete") as server:
            yield server


@pytest.fixture
def database(server: LogicalServer) -> Iterator[Database]:
    """An empty one."""
    database = Database.create(server, f"d{next(NUMBERS)}")
    yield database
    database.let_go()
