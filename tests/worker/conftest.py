"""Real tables, and a worker whose turns a test takes one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.worker.location import of_definitions
from dagster_streamtables.worker.loop import Worker
from orchestration.conftest import Write, writing_to


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return writing_to(tmp_path / "lake")


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    (tmp_path / "lake").mkdir(exist_ok=True)
    return Lake(tmp_path / "lake", spark=spark)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def worker(defs: dg.Definitions, instance: dg.DagsterInstance) -> Iterator[Worker]:
    """The worker of the definitions of a module, at rest; it reports at once."""
    made = Worker(of_definitions(defs, "here", instance, report_every=0.1))
    settle(made)
    yield made
    assert made.finish()


def rows(lake: Lake, name: str) -> list[dict[str, Any]]:
    """The rows of a table, without hidden columns, sorted."""
    visible = list(lake.columns(name) or {})
    found = DeltaTable(lake.location(name)).to_pyarrow_table(columns=visible)
    return sorted(found.to_pylist(), key=repr)


def settle(worker: Worker) -> None:
    """Turns until nothing is left to do."""
    assert worker.turn()
    turns(worker, lambda: worker.lease.is_active and worker.is_quiet)


def turns(worker: Worker, until: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if until():
            return
        assert worker.turn()
        worker.wait(0.05)
    raise AssertionError("the worker does not come so far")
