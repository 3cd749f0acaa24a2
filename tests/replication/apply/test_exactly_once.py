"""Changes are applied once, whoever else writes, and wherever an apply is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.replication.apply import apply_changes as module
from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.apply.contract import Choices
from dagster_streamtables.replication.apply.copy_rows import copy_rows
from dagster_streamtables.replication.model.replication_model import PublishedTable
from replication.apply.published import (
    KEYED,
    SHOP,
    WHOLE,
    Transactions,
    at,
    changes,
    left,
    position_of,
    stored,
)

pytestmark = pytest.mark.process

HERS = "name = 'there'"
TABLES = pytest.mark.parametrize("table", [KEYED, WHOLE], ids=["keyed", "whole"])


def history(count: int) -> Transactions:
    """Each transaction is undone by no other, so that one that is lost or doubled shows."""
    return {
        p: [
            ("insert", {"id": p, "name": "new"}),
            ("update", {"id": p - 1, "name": "new"}, {"id": p - 1, "name": f"of {p}"}),
            ("delete", {"id": p - 2, "name": f"of {p - 1}"}),
        ]
        for p in range(10, 10 + count)
    }


def batches(table: PublishedTable, count: int) -> list[tuple[Any, int]]:
    """One of each transaction, and each has those before it, too, as after a lost answer."""
    happened = list(history(count).items())
    return [
        (changes(table, dict(happened[max(0, i - 3) : i + 1])), position)
        for i, (position, _) in enumerate(happened)
    ]


def expected(table: PublishedTable, count: int) -> Any:
    return left(table, [], history(count))


def start(place: Path, table: PublishedTable) -> None:
    copy_rows(at(place), table, SHOP.empty_table().to_reader(), 1)


def lose_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each write fail when it is done."""
    really = module.write

    def write(*args: Any) -> None:
        really(*args)
        raise OSError("the connection was reset")

    monkeypatch.setattr(module, "write", write)


@TABLES
def test_an_answer_that_is_lost_after_the_commit(
    table: PublishedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, table)
    lose_answers(monkeypatch)
    for batch, end in batches(table, 4):
        assert apply_changes(at(tmp_path), batch, end).version is not None
        assert apply_changes(at(tmp_path), batch, end).version is None

    assert stored(tmp_path) == expected(table, 4)


def test_an_error_before_the_commit_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, KEYED)

    def write(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "write", write)
    [(batch, end)] = batches(KEYED, 1)
    with pytest.raises(ZeroDivisionError):
        apply_changes(at(tmp_path), batch, end)
    assert position_of(at(tmp_path)) == 1


@TABLES
def test_two_that_apply_the_same(table: PublishedTable, tmp_path: Path) -> None:
    start(tmp_path, table)

    def apply(_: int) -> list[int | None]:
        return [apply_changes(at(tmp_path), *each).version for each in batches(table, 8)]

    with ThreadPoolExecutor() as pool:
        versions = [version for found in pool.map(apply, range(2)) for version in found]

    made = [version for version in versions if version is not None]
    assert len(made) == len(set(made))
    assert stored(tmp_path) == expected(table, 8)


@TABLES
def test_somebody_who_writes_what_is_not_published(table: PublishedTable, tmp_path: Path) -> None:
    rows = [{"id": i, "name": "there", "own": 0} for i in range(3)]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows))
    done, wrote, turns = threading.Event(), threading.Event(), 0

    def count() -> None:
        nonlocal turns
        pause = 0.0
        while not done.wait(pause):
            begun = time.monotonic()
            try:
                DeltaTable(tmp_path).update(updates={"own": "own + 1"}, predicate=HERS)
                turns += 1
                wrote.set()
            except CommitFailedError:
                pass
            # Who commits faster than a change is computed leaves no turn to anybody.
            pause = 4 * (time.monotonic() - begun)

    with ThreadPoolExecutor() as pool:
        other = pool.submit(count)
        try:
            for each in batches(table, 8):
                apply_changes(at(tmp_path), *each)
                assert wrote.wait(60)
        finally:
            done.set()
        other.result()

    there = [{**row, "own": turns} for row in rows]
    assert stored(tmp_path) == left(table, there, history(8))


def test_somebody_who_is_always_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path, KEYED)
    really = module.write

    def write(*args: Any) -> None:
        write_deltalake(tmp_path, SHOP.empty_table(), mode="append")
        really(*args)

    monkeypatch.setattr(module, "write", write)
    monkeypatch.setattr(module, "_PAUSE", 0)
    [(batch, end)] = batches(KEYED, 1)

    with pytest.raises(ConflictingCommit, match="other writers keep committing"):
        apply_changes(at(tmp_path), batch, end)
    assert not stored(tmp_path)


def test_a_batch_from_the_middle_of_a_position(tmp_path: Path) -> None:
    start(tmp_path, WHOLE)
    happened = history(6)
    apply_changes(at(tmp_path), changes(WHOLE, dict(list(happened.items())[:3])), 12)

    apply_changes(at(tmp_path), changes(WHOLE, happened), 15)

    assert stored(tmp_path) == expected(WHOLE, 6)


def test_a_transaction_that_is_skipped(tmp_path: Path) -> None:
    start(tmp_path, WHOLE)
    happened = history(6)

    apply_changes(at(tmp_path), changes(WHOLE, happened), 20, Choices(skip={12}))

    others = {p: each for p, each in happened.items() if p != 12}
    assert (stored(tmp_path), position_of(at(tmp_path))) == (left(WHOLE, [], others), 20)


def test_a_position_without_an_effect_is_recorded_by_choice(tmp_path: Path) -> None:
    start(tmp_path, KEYED)
    nothing = changes(KEYED, {5: [("delete", {"id": 1, "name": ""})]})

    silent = apply_changes(at(tmp_path), nothing, 5, Choices(record_idle=False))
    assert (silent.version, silent.position, position_of(at(tmp_path))) == (None, 5, 1)

    assert apply_changes(at(tmp_path), nothing, 5).version == 1
    assert position_of(at(tmp_path)) == 5


CHILD = """
import sys
from pathlib import Path
from replication.apply.test_exactly_once import (
    KEYED, WHOLE, apply_changes, at, batches, position_of
)
table = {"keyed": KEYED, "whole": WHOLE}[sys.argv[2]]
target, left = at(Path(sys.argv[1])), batches(table, int(sys.argv[3]))
applied = position_of(target)
print("ready", flush=True)
for batch, end in left:
    if end > applied:
        apply_changes(target, batch, end)
"""


@pytest.mark.long
@TABLES
def test_processes_that_are_killed(table: PublishedTable, tmp_path: Path) -> None:
    start(tmp_path, table)
    kind = "whole" if table.identity is None else "keyed"
    chance, kills, count = random.Random(7), 0, 60
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    while True:
        command = [sys.executable, "-c", CHILD, str(tmp_path), kind, str(count)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        try:
            child.wait(chance.uniform(0, 0.6))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            kills += 1
        if child.wait() == 0:
            break
    assert kills >= 5
    assert stored(tmp_path) == expected(table, count)
