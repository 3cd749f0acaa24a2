"""A folder with source tables, the resources over it, and an instance of Dagster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import StreamTablesResource
from dagster_streamtables.runtime.lake import Lake
from orchestration.replicated import Origin

Write = Callable[..., None]


def writing_to(root: Path) -> Write:
    """Append rows to a table below the root: ``write("orders", id=[1, 2])``; Delta makes it."""

    def append(name: str, **columns: list[Any]) -> None:
        write_deltalake(Lake(root).location(name), pa.table(columns), mode="append")

    return append


@contextmanager
def loading(context: DefinitionsLoadContext) -> Iterator[None]:
    """Definitions are loaded in this context; Dagster 1.12 has no `scoped`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DefinitionsLoadContext, "_instance", context)
        yield


def on_session(spark: SparkSession, root: Path, **more: Any) -> StreamTablesResource:
    """The tables below a root, refreshed on a session that is there."""

    class OnTestSession(StreamTablesResource):
        def session(self) -> SparkSession:
            return spark

    return OnTestSession(root=str(root), **more)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return writing_to(tmp_path)


@pytest.fixture
def resource(tmp_path: Path, spark: SparkSession) -> StreamTablesResource:
    """The tables below the root, refreshed on the session of the tests."""
    return on_session(spark, tmp_path)


@pytest.fixture
def logs(tmp_path: Path) -> StreamTablesResource:
    """The tables below the root, for what needs no Spark."""
    return StreamTablesResource(root=str(tmp_path))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Another lake, which publishes a table."""
    return Origin(tmp_path / "origin")


@pytest.fixture
def lake(tmp_path: Path) -> StreamTablesResource:
    """The lake that tables are replicated into."""
    return StreamTablesResource(root=str(tmp_path / "lake"))
