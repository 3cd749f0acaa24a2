"""Fixtures that more than one test module needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from dagster_streamtables.runtime.leftovers import VIEWS
from dagster_streamtables.runtime.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """A session on the local Spark server, which is started if it does not run."""
    return open_session()


@pytest.fixture(autouse=True)
def no_views_stay(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drop what a test's lake keeps for its next refresh: each view holds a snapshot in memory."""
    yield
    if "spark" in request.fixturenames:
        session = request.getfixturevalue("spark")
        for row in session.sql(f"SHOW VIEWS LIKE '{VIEWS}*'").collect():
            session.catalog.dropTempView(row["viewName"])
