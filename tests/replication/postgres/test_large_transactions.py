"""Transactions of more rows than are held in memory: the same rows, and little memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.apply.copy_rows import copy_rows
from dagster_streamtables.replication.postgres.triggers.trigger_capture import Choice
from dagster_streamtables.replication.target.target_table import ReplicationTarget
from replication.postgres.database import Database

T = "public.t"
ROWS = 1_500_000
STATEMENTS = [
    "INSERT INTO t SELECT i, i % 1000, 'note number ' || i || repeat('.', 100) "
    f"FROM generate_series(1, {ROWS}) AS i",
    "UPDATE t SET a = a + 1",
    "UPDATE t SET id = -id, note = 'moved' || id",
    "DELETE FROM t WHERE id % 4 <> 0",
]
MOST = 700
"""MB of its own that the process may take besides what it had. A million changes are folded in
memory, and take about as much."""


def own_memory() -> float:
    """What the process holds that is no page of a file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) / 1024 for each in lines if each.startswith("RssAnon"))


@contextmanager
def watched() -> Iterator[list[float]]:
    """The memory at each moment."""
    seen, done = [own_memory()], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            seen.append(own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


@pytest.mark.long
@pytest.mark.parametrize("capture", ["wal", "trigger"])
@pytest.mark.parametrize("identity", ["PRIMARY KEY (id)", "REPLICA IDENTITY FULL"])
def test_large_transactions(
    database: Database, tmp_path: Path, identity: str, capture: Choice
) -> None:
    added = "ADD " if identity.startswith("PRIMARY") else ""
    database.run(
        "CREATE TABLE t (id bigint, a int, note text)",
        f"ALTER TABLE t {added}{identity}",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    publisher, target = (
        database.publisher(capture=capture),
        ReplicationTarget(str(tmp_path / "t"), "r", "o"),
    )
    with publisher.copy("s", [T]) as copy:
        position = copy.position(T)
        copy_rows(target, publisher.offer().require()[T], copy.rows(T), position)
    confirmed = publisher.confirm("s", {T: position})
    before = own_memory()
    for statement in STATEMENTS:
        database.run(statement)
        with watched() as memory:
            batch = publisher.read("s", {T: position}, confirmed, max_rows=1).require()
            apply_changes(target, batch.tables[T], batch.end[T])
        position = batch.end[T]
        del batch
        confirmed = publisher.confirm("s", {T: position})
        found = DeltaTable(target.location).to_pyarrow_table(columns=["id", "a", "note"])
        sums = found.num_rows, pc.sum(found["id"]).as_py(), pc.sum(found["a"]).as_py()
        lengths = pc.sum(pc.utf8_length(found["note"])).as_py()
        del found
        query = "SELECT count(*), sum(id)::int8, sum(a)::int8, sum(length(note))::int8 FROM t"
        assert (*sums, lengths) == database.run(query)[0]
        assert max(memory) - before < MOST, statement
