"""Fixtures that more than one test module needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dagster_streamtables.runtime.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """A session on the local Spark server, which is started if it does not run."""
    return open_session()
