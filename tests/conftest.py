"""Fixtures that more than one test module needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from dagster_streamtables.runtime.leftovers import drop_views
from dagster_streamtables.runtime.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session on the local Spark server, which is started if it does not run.

    What the lakes of a module keep in it for their next refresh is dropped in the end: each view
    holds a snapshot in Spark's memory.
    """
    session = open_session()
    yield session
    drop_views(session)
