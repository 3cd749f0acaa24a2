"""Whether a refresh committed is what the log says, whatever error came after the commit."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.retries import DefaultPolicy

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.runtime.spark.local_server import ensure_server, key_of
from dagster_streamtables.runtime.spark.session import open_session
from dagster_streamtables.runtime.storage import writer
from runtime.delta import write
from runtime.orders import LARGE, TOTALS, orders, source
from runtime.refreshes import refreshed


@pytest.mark.parametrize(
    "table",
    [pytest.param(LARGE, id="append", marks=pytest.mark.long), pytest.param(TOTALS, id="merge")],
)
def test_a_checkpoint_that_fails_after_the_commit(table: StreamTable, lake: Lake) -> None:
    refreshed(lake, table)
    place = lake.location(table.name)
    DeltaTable(place).alter.set_table_properties({"delta.checkpointInterval": "1"})
    write(lake, "orders", orders(20, 21))
    taken = Path(place, "_delta_log", f"{DeltaTable(place).version() + 1:020d}.checkpoint.parquet")
    (taken / "in the way").mkdir(parents=True)

    done = lake.refresh(table)

    assert (done.action, done.writer) == (Action.DIFFERENTIAL, "delta-rs")
    assert done.version == DeltaTable(place).version()
    assert done.inserted == lake.monitor.history(table.name, limit=1)[0].inserted == 2
    shutil.rmtree(taken)
    assert refreshed(lake, table).action is Action.NO_DATA


@pytest.mark.smoke("two refreshes at once")
def test_a_refresh_that_commits_before_the_one_before_it_looks(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed(lake, LARGE)
    write(lake, "orders", orders(20))
    real, other = writer.change, Lake(lake.root, spark=spark)

    def write_and_be_overtaken(*args: object) -> object:
        monkeypatch.setattr(writer, "change", real)
        written = real(*args)  # type: ignore[arg-type]
        write(lake, "orders", orders(21))
        assert other.refresh(LARGE).action is Action.DIFFERENTIAL
        return written

    monkeypatch.setattr(writer, "change", write_and_be_overtaken)
    first = lake.refresh(LARGE)

    assert (first.action, first.inserted) == (Action.DIFFERENTIAL, 1)
    assert first.version == DeltaTable(lake.location(LARGE.name)).version() - 1
    assert refreshed(lake, LARGE).action is Action.NO_DATA


def test_a_connection_that_ends_after_the_commit(lake: Lake) -> None:
    refreshed(lake, LARGE)
    source(lake).delete("id < 5")
    before = DeltaTable(lake.location(LARGE.name)).version()
    commit = Path(lake.location(LARGE.name), "_delta_log", f"{before + 1:020d}.json")
    key = key_of(ensure_server())
    assert key is not None
    with Wire(key.address, cut=commit.exists) as address:
        far = open_session(address)
        # By default Spark's client waits ten minutes for a network to come back.
        far.client.set_retry_policies([DefaultPolicy(max_retries=2)])
        done = Lake(lake.root, spark=far, driver_rows=0).refresh(LARGE)

    assert (done.action, done.writer, done.version) == (Action.DIFFERENTIAL, "spark", before + 1)
    assert done.deleted == 5
    assert refreshed(lake, LARGE).action is Action.NO_DATA


class Wire:
    """A way to a Spark Connect server on which no answer comes back from a moment on."""

    def __init__(self, address: str, cut: Callable[[], bool]) -> None:
        far = urlsplit(address)
        self._far, self._options, self._cut = ("127.0.0.1", far.port), far.path, cut
        self._door = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []

    def __enter__(self) -> str:
        threading.Thread(target=self._answer, daemon=True).start()
        return f"sc://localhost:{self._door.getsockname()[1]}{self._options}"

    def __exit__(self, *_: object) -> None:
        for each in (self._door, *self._ends):
            each.close()

    def _answer(self) -> None:
        while not self._cut():
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            far = socket.create_connection(self._far)
            self._ends += [near, far]
            for end, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(end, other), daemon=True).start()
        self._door.close()

    def _pass(self, end: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while (read := end.recv(65536)) and not self._cut():
                other.sendall(read)
        if self._cut():
            self._door.close()
        for each in (end, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
