"""Random histories, followed by a slot and by triggers: both tell the same."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from dagster_streamtables.replication.model.replication_model import Batch
from dagster_streamtables.replication.postgres.triggers import trigger_log
from replication.postgres.database import Database

NAMES = ("public.t", "public.u")
PUBLICATIONS = (
    "CREATE PUBLICATION p FOR TABLE t, u",
    "CREATE PUBLICATION p FOR TABLE t WHERE (id > 5), u (id, a)",
    "CREATE PUBLICATION p FOR TABLE t (id, n) WHERE (id % 2 = 0 AND id < 9), u "
    "WITH (publish = 'insert, delete')",
    "CREATE PUBLICATION p FOR TABLE t, u WITH (publish = 'update, truncate')",
)


def _statement(chance: random.Random) -> str:
    table, k, more = chance.choice("tu"), chance.randrange(12), chance.randrange(12)
    text = chance.choice(["NULL", "''", "'a,\"b\\'", "'(ü)'", "E'\\n'", "repeat('long', 2000)"])
    return chance.choice(
        [
            f"INSERT INTO {table} (id, a, n) SELECT g, {text}, {more}.5 "
            f"FROM generate_series({k}, {more}) g ON CONFLICT DO NOTHING",
            f"INSERT INTO {table} (id, a, n) SELECT g, {text}, {k} FROM generate_series({k}, 11) g "
            "ON CONFLICT (id) DO UPDATE SET n = excluded.n, a = NULL",
            f"UPDATE {table} SET a = {text}, n = n + 1 WHERE id % 3 = {k % 3}",
            f"UPDATE {table} SET id = id + 1 WHERE id = {k}",
            f"DELETE FROM {table} WHERE id BETWEEN {k} AND {more}",
            f"MERGE INTO {table} USING generate_series({k}, {k + 3}) AS s (id) ON "
            f"{table}.id = s.id WHEN MATCHED AND s.id % 2 = 0 THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET a = {text} "
            f"WHEN NOT MATCHED THEN INSERT (id, a, n) VALUES (s.id, {text}, 1)",
            *([f"TRUNCATE {table}"] if k == 0 else []),
            *([f"ALTER TABLE u ADD c{chance.randrange(10**9)} int DEFAULT 3"] if k == 1 else []),
        ]
    )


def _told(batches: list[Batch]) -> dict[str, list[list[Any]]]:
    """By table, for each transaction its changes of each row in order."""
    found: dict[str, list[list[Any]]] = {name: [] for name in NAMES}
    for batch in batches:
        for name, changes in batch.tables.items():
            rows = changes.rows.to_pylist()
            for i in range(len(changes.positions)):
                mine = [_whole(row) for row in rows if row["transaction"] == i]
                # The rows of one statement come in another order from MERGE.
                found[name].append(sorted(mine, key=repr))
    return found


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    """A value that did not change is told by triggers, and not by a slot."""
    hidden = row["unchanged"] or ()
    new = row["new"] and {
        name: "…" if i in hidden or len(str(value or "")) > 5000 else value
        for i, (name, value) in enumerate(row["new"].items())
    }
    return {"op": row["op"], "old": row["old"], "new": new}


@pytest.mark.since(15)
@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(n, marks=pytest.mark.hours) for n in range(3, 200))]
)
def test_triggers_tell_what_a_slot_tells(
    database: Database, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    # Of every second seed each change is read by itself, as it may be in a large transaction.
    monkeypatch.setattr(trigger_log, "ROWS", trigger_log.ROWS if seed % 2 else 1)
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, a text, n numeric(8, 2))",
        "CREATE TABLE u (id int PRIMARY KEY, a text, n numeric(8, 2))",
        PUBLICATIONS[seed % len(PUBLICATIONS)],
    )
    has_list = "u (" in PUBLICATIONS[seed % len(PUBLICATIONS)]
    identity = "DEFAULT" if has_list else chance.choice(["DEFAULT", "FULL"])
    database.run(f"ALTER TABLE u REPLICA IDENTITY {identity}")
    captures = {"w": "wal", "s": "trigger"}
    publishers = {slot: database.publisher(capture=how) for slot, how in captures.items()}
    after = {slot: each.create_slot(slot, NAMES) for slot, each in publishers.items()}
    with database.connect() as connection:
        for _ in range(30):
            is_lost = chance.random() < 0.2
            with (
                suppress(psycopg.errors.UniqueViolation),
                connection.transaction(force_rollback=is_lost),
            ):
                for _ in range(chance.randrange(1, 5)):
                    is_undone = chance.random() < 0.2
                    with connection.transaction(force_rollback=is_undone):
                        connection.execute(_statement(chance))  # type: ignore[arg-type]
    told = {}
    for slot, publisher in publishers.items():
        batches, confirmed = [], None
        while not batches or not batches[-1].complete:
            read = publisher.read(slot, after[slot], confirmed, max_rows=chance.choice([1, 9, 500]))
            batches.append(read)
            after[slot], confirmed = read.end, publisher.confirm(slot, read.end)
        told[slot] = _told(batches)
    assert told["s"] == told["w"]
