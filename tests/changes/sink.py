"""A sink in a process of its own: it stores rows and token in one transaction, until it is killed.

python -m changes.sink ROOT DATABASE SLOT|-
"""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

import pyarrow as pa

from dagster_streamtables import Lake, Subscription, subscribe


def main(root: str, database: str, slot: str) -> None:
    store = opened(database)
    lake, resume = Lake(root), stored_token(store)
    if slot == "-":
        begun = subscribe(lake, "t", resume=resume, as_of=None if resume else 0, batch_rows=7)
    else:
        begun = subscribe(lake, "t", slot=slot, as_of=0, batch_rows=7, poll_interval=0.02)
    print("begun", flush=True)
    follow(begun, store, already=resume, acks=slot != "-")


def opened(database: str) -> sqlite3.Connection:
    # Dagster runs a function in a thread of its own.
    store = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    store.execute("CREATE TABLE IF NOT EXISTS rows (k INTEGER, v TEXT, diff INTEGER, ts INTEGER)")
    store.execute("CREATE TABLE IF NOT EXISTS position (token TEXT)")
    return store


def stored_token(store: sqlite3.Connection) -> str | None:
    found = store.execute("SELECT token FROM position").fetchone()
    return found[0] if found else None


def keep(store: sqlite3.Connection, rows: list[dict[str, Any]], token: str | None) -> None:
    """Store rows and the token after them, both or neither."""
    store.execute("BEGIN IMMEDIATE")
    values = [(r["k"], r["v"], r["_diff"], r["_timestamp"]) for r in rows]
    store.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", values)
    store.execute("DELETE FROM position")
    store.execute("INSERT INTO position VALUES (?)", [token])
    store.execute("COMMIT")


def follow(
    begun: Subscription, store: sqlite3.Connection, *, already: str | None, acks: bool
) -> None:
    """Store each timestamp whole, with the token after it."""
    last = store.execute("SELECT MAX(ts) FROM rows").fetchone()[0] if already else None
    held: list[pa.RecordBatch] = []
    for batch in begun:
        held.append(batch)
        if begun.partial:
            continue
        rows = [row for each in held for row in each.to_pylist()]
        held.clear()
        # A slot that was not acknowledged in time gives again what is stored: the sink knows it.
        if last is None or rows[0]["_timestamp"] > last:
            keep(store, rows, begun.token)
        if acks:
            begun.ack()


if __name__ == "__main__":
    main(*sys.argv[1:])
