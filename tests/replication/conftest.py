"""One server for the tests of a session, and a database of it for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from replication.postgres.database import VERSION, Database, LogicalServer, running

NUMBERS = itertools.count()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the server does not do yet; the wheel's does it all."""
    marks = [(each, mark) for each in items for mark in each.iter_markers("since")]
    too_new = {each for each, mark in marks if mark.args[0] > VERSION}
    if too_new:
        config.hook.pytest_deselected(items=[*too_new])
        items[:] = [each for each in items if each not in too_new]


@pytest.fixture(scope="session")
def server() -> Iterator[LogicalServer]:
    with running(LogicalServer) as server:
        yield server


@pytest.fixture
def database(server: LogicalServer) -> Iterator[Database]:
    database = Database.create(server, f"d{next(NUMBERS)}")
    yield database
    database.drop()
