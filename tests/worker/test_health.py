"""What a worker answers over HTTP: whether it works, and its metrics."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables.metrics.collector import StreamTablesCollector, serve
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.worker.lake_workload import of_folder
from dagster_streamtables.worker.loop import Worker, WorkerSettings


def over_tables(folder: Path, lake: Lake, heartbeat: timedelta) -> Worker:
    (folder / "tables").mkdir()
    (folder / "tables" / "paid.sql").write_text("-- schedule: 1h\nSELECT id FROM orders")
    return Worker(of_folder(str(folder / "tables"), lake), WorkerSettings(heartbeat=heartbeat))


@contextmanager
def served(worker: Worker) -> Iterator[str]:
    """The address at which it answers."""
    collector = StreamTablesCollector(worker.driven.logs.monitor)
    server, _ = serve(collector, worker.health, port=0)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def asked(address: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"{address}/health") as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_worker_that_works_or_stands_by_is_healthy(tmp_path: Path, lake: Lake) -> None:
    # No heartbeat is ever missed, and no table is due: its source is missing.
    worker = over_tables(tmp_path, lake, timedelta(hours=1))
    with served(worker) as address:
        status, said = asked(address)
        assert (status, said["state"]) == (200, "stands by")
        assert worker.turn()
        status, said = asked(address)
        assert (status, said["state"], said["failures"]) == (200, "works", 0)
        with urllib.request.urlopen(f"{address}/metrics") as response:
            text = response.read().decode()
        assert 'streamtables_worker_alive{worker="streamtables"} 1.0' in text
        assert 'streamtables_worker_nodes{worker="streamtables"} 1.0' in text
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}/elsewhere")
        worker.stop()
        assert worker.finish()
        assert asked(address)[1]["state"] == "stops"


def test_a_worker_that_cannot_decide_is_not_healthy(tmp_path: Path, spark: SparkSession) -> None:
    """The root is no folder that could be written, so that no heartbeat is."""
    (tmp_path / "lake").write_text("a file where the root was")
    lake = Lake(tmp_path / "lake", spark=spark)
    worker = over_tables(tmp_path, lake, timedelta(microseconds=1))
    assert not worker.turn()
    said = worker.health()
    assert not said["healthy"]
    assert said["trouble"]
    with served(worker) as address:
        assert asked(address)[0] == 503
    (tmp_path / "lake").unlink()
    (tmp_path / "lake").mkdir()
    assert worker.turn()
    assert not worker.health()["trouble"]
    worker.finish()
