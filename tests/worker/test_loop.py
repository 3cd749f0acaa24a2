"""Turns of a worker over real tables: what is due is refreshed, upstream first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.worker.loop import Worker
from dagster_streamtables.worker.project import of_folder
from worker.conftest import Write, rows, settle

Declare = Callable[..., Worker]

PAID = "-- schedule: CALCULATED\nSELECT id, customer, amount FROM orders WHERE amount > 10"
TOTALS = "-- schedule: on change\nSELECT customer, sum(amount) AS total FROM paid GROUP BY customer"


@pytest.fixture
def declare(tmp_path: Path, lake: Lake) -> Declare:
    """A worker over a folder with these files: ``declare(paid="SELECT …")``."""

    def declared(**queries: str) -> Worker:
        folder = tmp_path / "tables"
        folder.mkdir(exist_ok=True)
        for name, query in queries.items():
            (folder / f"{name}.sql").write_text(query)
        return Worker(of_folder(str(folder), lake))

    return declared


def test_a_chain_follows_its_source(declare: Declare, lake: Lake, write: Write) -> None:
    write("orders", id=[1, 2], customer=[7, 7], amount=[5, 20])
    worker = declare(paid=PAID, totals=TOTALS)
    settle(worker)
    assert rows(lake, "totals") == [{"customer": 7, "total": 20}]
    write("orders", id=[3], customer=[8], amount=[30])
    settle(worker)
    assert rows(lake, "totals") == [{"customer": 7, "total": 20}, {"customer": 8, "total": 30}]
    before = worker.lines.refreshes
    settle(worker)
    assert worker.lines.refreshes == before, "nothing moved"
    assert worker.finish()
