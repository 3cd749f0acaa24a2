"""What a batch says, against what the server's tables hold."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from dagster_streamtables.replication.postgres import wal_reading
from replication.postgres.database import Database
from replication.postgres.replica import Replica, as_text

SLOT = "SELECT pg_create_logical_replication_slot('s', 'pgoutput')"


def shown(database: Database, table: str, name: str = "") -> Counter[str]:
    with database.connect() as connection:
        cursor = connection.execute(f"SELECT * FROM {name or table}")  # type: ignore[arg-type]
        names = [column.name for column in cursor.description or ()]
        return Counter(as_text(dict(zip(names, row, strict=True))) for row in cursor)


def follow(
    database: Database,
    *tables: str,
    after: Mapping[str, int] | None = None,
    max_rows: int = 10**6,
    replica: Replica | None = None,
) -> Replica:
    """All changes from the slot on, or from these positions, confirmed batch by batch."""
    replica, confirmed = replica or Replica(), None
    after = after or dict.fromkeys(tables, database.position("s"))
    publisher = database.publisher()
    while True:
        batch = publisher.read("s", after, confirmed, max_rows=max_rows).require()
        replica.apply(batch)
        assert all(batch.end[name] >= at for name, at in after.items())
        after = dict(batch.end)
        confirmed = publisher.confirm("s", after)
        if batch.complete:
            return replica


def make_random_table(database: Database, identity: str, *statements: str) -> None:
    key = "" if identity == "FULL" else "PRIMARY KEY"
    database.publish(
        f'"The Key" int {key}, b int NOT NULL, "ü.$" text, f float8',
        "CREATE UNIQUE INDEX other ON t (b)",
        f"ALTER TABLE t REPLICA IDENTITY {identity}",
        *statements,
    )


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL", "USING INDEX other"])
@pytest.mark.parametrize("max_rows", [1, 7, 10**6])
def test_random_histories(
    database: Database, identity: str, max_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if max_rows == 7:
        monkeypatch.setattr(wal_reading, "IN_MEMORY", 0)
    chance = random.Random(f"{identity} {max_rows}")
    make_random_table(database, identity, SLOT)
    with database.connect() as connection:
        for _ in range(25):
            with connection.transaction(force_rollback=chance.random() < 0.2):
                for _ in range(chance.randrange(1, 5)):
                    connection.execute(_statement(chance))  # type: ignore[arg-type]
    replica = follow(database, "public.t", max_rows=max_rows)
    assert replica.shown("public.t") == shown(database, "t")


def _statement(chance: random.Random) -> str:
    k, more = chance.randrange(12), chance.randrange(12)
    text = chance.choice(["NULL", "''", "'NULL'", "'a,\"b\\'", "'längere Texte als zwölf Byte'"])
    number = chance.choice(["NULL", "'NaN'", "'-0'", "0", "'-Infinity'", "1e300", "0.1"])
    return chance.choice(
        [
            f"INSERT INTO t VALUES ({k}, {k}, {text}, {number}) ON CONFLICT DO NOTHING",
            f"INSERT INTO t SELECT g, g, {text}, {number} FROM generate_series({k}, {more}) g "
            "ON CONFLICT DO NOTHING",
            f'UPDATE t SET "ü.$" = {text}, f = {number} WHERE b % 3 = {k % 3}',
            f'UPDATE t SET b = b + 12 WHERE "The Key" = {k} AND b < 12',
            f'UPDATE t SET "The Key" = "The Key" + 100, b = b + 100 WHERE b = {k}',
            f'DELETE FROM t WHERE "The Key" = {k}',
            "DELETE FROM t WHERE b > 100",
            *(["TRUNCATE t"] if k == 0 else []),
        ]
    )
