"""A PostgreSQL 18 for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from dagster_streamtables import Lake
from postgres.server import connected


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[Any]]:
    with connected(tmp_path_factory.mktemp("postgres")) as connection:
        yield connection


@pytest.fixture
def lake(spark: Any, tmp_path: Any) -> Lake:
    return Lake(tmp_path, spark=spark)
