"""The same sink as the function of a change asset, run again and again until it is killed.

python -m changes.run_sink ROOT DATABASE SLOT
"""

from __future__ import annotations

import sqlite3
import sys

import dagster as dg

from dagster_streamtables import Changes, StreamTablesResource, change_asset
from dagster_streamtables.runtime.lake import Lake

QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


def main(root: str, database: str, slot: str) -> None:
    store = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    store.execute("CREATE TABLE IF NOT EXISTS rows (k INTEGER, v TEXT, diff INTEGER, ts INTEGER)")
    store.execute("CREATE TABLE IF NOT EXISTS position (token TEXT)")

    def stored() -> str | None:
        found = store.execute("SELECT token FROM position").fetchone()
        return found[0] if found else None

    # A run that is killed begins again, so it takes no more than it can store between two kills.
    @change_asset(
        relation="t", slot=slot, as_of=0, max_rows=100, stored_token=stored, retry_policy=None
    )
    def rows(changes: Changes) -> None:
        store.execute("BEGIN IMMEDIATE")
        for batch in changes.batches():
            values = [(r["k"], r["v"], r["_diff"], r["_timestamp"]) for r in batch.to_pylist()]
            store.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", values)
        store.execute("DELETE FROM position")
        store.execute("INSERT INTO position VALUES (?)", [changes.token])
        store.execute("COMMIT")

    lake = StreamTablesResource(root=Lake(root).root)
    print("begun", flush=True)
    with dg.DagsterInstance.ephemeral() as instance:
        while True:
            dg.materialize(
                [rows], instance=instance, resources={"streamtables": lake}, run_config=QUIET
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
