"""Several readers and writers at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from changes.reading import contents, plain, read
from changes.table import Table
from dagster_streamtables import Lake, subscribe

pytestmark = pytest.mark.process

COMMITS = 20
TESTS = Path(__file__).parent.parent
READER = """
import json, sys
from dagster_streamtables import Lake, subscribe
from changes.reading import plain
root, last = sys.argv[1], int(sys.argv[2])
with subscribe(Lake(root), "t", clock="ms", as_of="{as_of}") as subscription:
    subscription.fetch(0)
    print("ready", flush=True)
    rows = []
    for batch in subscription:
        rows += plain(batch)
        if any(row[2] == last for row in rows):
            break
    print(json.dumps(rows))
"""


@pytest.mark.parametrize("clock", ["version", "ms"])
def test_two_threads_beside_a_writer(lake: Lake, t: Table, clock: Any) -> None:
    t.insert((0, "a"))
    found: dict[int, list[Any]] = {0: [], 1: []}

    def follow(n: int) -> None:
        with subscribe(lake, "t", clock=clock, poll_interval=0.01) as subscription:
            for batch in subscription:
                found[n] += plain(batch)
                if any(row[2] == COMMITS for row in found[n]):
                    return

    threads = [threading.Thread(target=follow, args=(n,)) for n in found]
    for thread in threads:
        thread.start()
    for n in range(1, COMMITS + 1):
        t.update(None, v="v || 'x'") if n % 5 == 0 else t.insert((n, "a"))
        if n == COMMITS:
            t.insert((n, "end"))
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()

    for rows in found.values():
        assert [row[0] for row in rows] == sorted(row[0] for row in rows)
        assert contents(rows, rows[-1][0]) == t.rows(t.version)
    # A time means the same rows to both, from where the later one began.
    begins = max(rows[0][0] for rows in found.values())
    later = [sorted(row for row in rows if row[0] > begins) for rows in found.values()]
    assert later[0] == later[1]


@pytest.mark.long
def test_two_processes_have_the_same_times(lake: Lake, t: Table, tmp_path: Path) -> None:
    t.insert((0, "a"))
    with subscribe(lake, "t", clock="ms") as here:
        here.fetch(0)
        begun = here.timestamp
    script = READER.format(as_of=begun)
    command = [sys.executable, "-c", script, str(tmp_path), str(COMMITS)]
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    options: dict[str, Any] = {"text": True, "env": {**os.environ, "PYTHONPATH": path}}
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, **options) for _ in range(2)]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    for n in range(1, COMMITS + 1):
        t.insert((n, "a"))
    lines = [reader.communicate(timeout=60)[0] for reader in readers]
    told = [sorted(map(tuple, json.loads(line))) for line in lines]

    assert told[0] == told[1]
    # Whoever reads them again finds the same.
    assert sorted(read(lake, "t", clock="ms", as_of=begun)) == told[0]


def test_a_subscription_is_closed_by_another_thread(lake: Lake, t: Table) -> None:
    subscription = subscribe(lake, "t", slot="s")
    closing = threading.Timer(0.2, subscription.close)
    closing.start()
    assert list(subscription) == []
    closing.join()
    with subscribe(lake, "t", slot="s") as next_reader:
        assert next_reader.fetch(1, timeout=0).num_rows == 0
