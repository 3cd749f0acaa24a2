"""A folder with source tables, and the resource that refreshes stream tables in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dagster_streamtables import StreamTablesResource
from dagster_streamtables.runtime.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Append rows to a table below the root: ``write("orders", id=[1, 2])``; Delta makes it."""

    def append(name: str, **columns: list[Any]) -> None:
        write_deltalake(Lake(tmp_path).location(name), pa.table(columns), mode="append")

    return append


@pytest.fixture
def resource(tmp_path: Path, spark: SparkSession) -> StreamTablesResource:
    """The tables below the root, refreshed on the session of the tests."""

    class OnTestSession(StreamTablesResource):
        def session(self) -> SparkSession:
            return spark

    return OnTestSession(root=str(tmp_path))


@pytest.fixture
def logs(tmp_path: Path) -> StreamTablesResource:
    """The tables below the root, for what needs no Spark."""
    return StreamTablesResource(root=str(tmp_path))
