"""Real tables, and a worker whose turns a test takes one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.worker.loop import Worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Append rows to a table below the root: ``write("orders", id=[1, 2])``; Delta makes it."""

    def append(name: str, **columns: list[Any]) -> None:
        write_deltalake(Lake(tmp_path / "lake").location(name), pa.table(columns), mode="append")

    return append


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    (tmp_path / "lake").mkdir(exist_ok=True)
    return Lake(tmp_path / "lake", spark=spark)


def rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    """The rows of a table, without hidden columns, sorted."""
    visible = list(lake.columns(name) or {})
    found = DeltaTable(lake.location(name)).to_pyarrow_table(columns=visible)
    return sorted(found.to_pylist(), key=repr)


def settle(worker: Worker) -> None:
    """Turns until nothing is left to do."""
    for _ in range(10_000):
        assert worker.turn()
        if worker.lease.held and worker.settled:
            return
        worker.wait(0.05)
    raise AssertionError("the worker does not come to rest")


def turns(worker: Worker, until: Callable[[], bool]) -> None:
    """Turns until something holds."""
    for _ in range(10_000):
        if until():
            return
        assert worker.turn()
        worker.wait(0.05)
    raise AssertionError("the worker does not come so far")
