"""One random history: what is published, what happens, and both replicas of it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from qa.replication_oracle.clusters import NUMBERS, Cluster, Subscription
from qa.replication_oracle.ours import Replica
from replication.postgres.database import Database, LogicalServer

COLUMNS = {"id": "int", "b": "int NOT NULL", "note": "text", "amount": "numeric(10,2)"}
LONG = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) i)"
"""A text that is stored outside of its row, so that an update of others does not tell it."""


@dataclass(frozen=True)
class Kind:
    """How rows of a table are told apart."""

    name: str
    made: str
    identity: tuple[str, ...]
    """What a column list and a filter of updates must be of; empty for all columns."""
    operations: tuple[str, ...] = ("insert", "update", "delete", "truncate")


KINDS = (
    Kind("key", "ALTER TABLE {t} ADD PRIMARY KEY (id)", ("id",)),
    Kind("pair", "ALTER TABLE {t} ADD PRIMARY KEY (id, b)", ("id", "b")),
    Kind(
        "index",
        "CREATE UNIQUE INDEX ON {t} (b); ALTER TABLE {t} REPLICA IDENTITY USING INDEX {t}_b_idx",
        ("b",),
    ),
    Kind("whole", "ALTER TABLE {t} REPLICA IDENTITY FULL", ()),
    Kind("both", "ALTER TABLE {t} ADD PRIMARY KEY (id); ALTER TABLE {t} REPLICA IDENTITY FULL", ()),
    Kind("nothing", "ALTER TABLE {t} REPLICA IDENTITY NOTHING", (), ("insert", "truncate")),
)


@dataclass
class History:
    seed: int
    publisher: LogicalServer
    subscriber: Cluster
    folder: Path
    said: list[str] = field(default_factory=list)
    refused: int = 0
    """Statements that the publisher did not take."""
    stops: int = 0

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:
            error.add_note(f"seed {self.seed}\n" + "\n".join(self.said))
            raise

    def _run(self) -> None:
        self.chance = random.Random(self.seed)
        number = next(NUMBERS)
        self.here = Database.create(self.publisher, f"h{number}")
        self.there = Database.create(self.subscriber, f"h{number}")
        names = ["t", "u", "v"][: self.chance.randrange(1, 4)]
        self.tables = {name: self.chance.choice(KINDS) for name in names}
        self.columns: dict[str, list[str]] = {}
        self._make_tables()
        publications = self._make_publications()
        for _ in range(self.chance.randrange(4)):
            self._transaction()
        copy = self.chance.random() < 0.7
        theirs = Subscription(self.here, self.there, publications)
        ours = Replica(
            self.here.publisher(*publications),
            self.folder,
            max_rows=self.chance.choice([1, 20, 10**6]),
            in_memory=self.chance.choice([0, 2, 10**6]),
        )
        theirs.begin(copy=copy)
        ours.begin([f"public.{name}" for name in names], copy=copy)
        for _ in range(self.chance.randrange(1, 4)):
            self._compare(theirs, ours)
            for _ in range(self.chance.randrange(3)):
                self._write_to_targets(theirs, ours)
            for _ in range(self.chance.randrange(1, 8)):
                self._transaction()
            theirs.catch_up()
            ours.catch_up()
        self._compare(theirs, ours)
        self.stops = len(theirs.stopped)
        theirs.end()
        self.here.drop()

    def _compare(self, theirs: Subscription, ours: Replica) -> None:
        for name, columns in self.columns.items():
            found = ours.rows(f"public.{name}", columns)
            wanted = theirs.rows(name, columns)
            assert found == wanted, (name, "ours", found - wanted, "theirs", wanted - found)
        assert len(ours.skipped) == len(theirs.stopped), (ours.skipped, theirs.stopped)

    def _make_tables(self) -> None:
        columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
        for name, kind in self.tables.items():
            for database in (self.here, self.there):
                database.run(f"CREATE TABLE {name} ({columns})", kind.made.format(t=name))
                # A column list may leave it out.
                if "b" not in kind.identity:
                    database.run(f"ALTER TABLE {name} ALTER b DROP NOT NULL")
            self.said.append(f"{name}: {kind.name}")

    def _make_publications(self) -> tuple[str, ...]:
        count = self.chance.randrange(1, 4)
        lists = {name: self._column_list(kind) for name, kind in self.tables.items()}
        made: dict[int, list[str]] = {i: [] for i in range(count)}
        kinds: dict[int, set[str]] = {i: set(KINDS[0].operations) for i in made}
        for name, kind in self.tables.items():
            for i in self.chance.sample(range(count), self.chance.randrange(1, count + 1)):
                made[i].append(f"{name} ({', '.join(lists[name])}){self._filter(kind)}")
                kinds[i] &= set(kind.operations)
            self.columns[name] = lists[name]
        for i, entries in made.items():
            chosen = sorted(kinds[i])
            if self.chance.random() < 0.3:
                chosen = self.chance.sample(chosen, self.chance.randrange(1, len(chosen) + 1))
            self._say(
                f"CREATE PUBLICATION p{i} {'FOR TABLE ' * bool(entries)}{', '.join(entries)} "
                f"WITH (publish = '{', '.join(chosen)}')"
            )
        return tuple(f"p{i}" for i in made)

    def _column_list(self, kind: Kind) -> list[str]:
        if not kind.identity and "update" in kind.operations:
            return [*COLUMNS]
        must = set(kind.identity) or {"id"}
        chosen = {name for name in COLUMNS if name in must or self.chance.random() < 0.8}
        return [name for name in COLUMNS if name in chosen]

    def _filter(self, kind: Kind) -> str:
        if self.chance.random() < 0.5:
            return ""
        column = self.chance.choice(kind.identity or ("id", "b"))
        bound = self.chance.randrange(12)
        return " WHERE " + self.chance.choice(
            [
                f"({column} > {bound})",
                f"({column} % 3 = {bound % 3})",
                f"({column} IS NULL OR {column} < {bound})",
            ]
        )

    def _say(self, statement: str) -> None:
        self.said.append(statement)
        self.here.run(statement)

    def _transaction(self) -> None:
        """Of one table, so that a stop at it stops the same."""
        table = self.chance.choice([*self.tables])
        fails = self.chance.random() < 0.1
        statements = [self._statement(table) for _ in range(self.chance.randrange(1, 5))]
        if self.chance.random() < 0.05:
            statements = [f"TRUNCATE {', '.join(self.tables)}"]
        self.said.append("; ".join(statements) + ("; ROLLBACK" if fails else ""))
        try:
            with self.here.connect() as connection, connection.transaction(force_rollback=fails):
                for statement in statements:
                    connection.execute(statement)  # type: ignore[arg-type]
        except psycopg.Error as error:
            self.said[-1] += f" -- refused: {str(error).splitlines()[0]}"
            self.refused += 1

    def _statement(self, t: str) -> str:
        k, other = self.chance.randrange(12), self.chance.randrange(12)
        note = self.chance.choice(["NULL", "''", "'x'", "'y'", LONG])
        amount = self.chance.choice(["NULL", "1.5", "-0.01", "99999999.99"])
        return self.chance.choice(
            [
                f"INSERT INTO {t} VALUES ({k}, {k}, {note}, {amount}) ON CONFLICT DO NOTHING",
                f"INSERT INTO {t} SELECT g, g, {note}, {amount} FROM generate_series({k}, {other}) "
                "g ON CONFLICT DO NOTHING",
                f"UPDATE {t} SET note = {note} WHERE id % 3 = {k % 3}",
                f"UPDATE {t} SET amount = {amount} WHERE id = {k}",
                f"UPDATE {t} SET id = id + 12 WHERE id = {k}",
                f"UPDATE {t} SET b = b + 100, id = id + 100 WHERE b = {k}",
                f"UPDATE {t} SET id = {other}, b = {other} WHERE id = {k}",
                f"DELETE FROM {t} WHERE id = {k}",
                f"DELETE FROM {t} WHERE id % 4 = {k % 4}",
                *([f"TRUNCATE {t}"] if k == 0 else []),
            ]
        )

    def _write_to_targets(self, theirs: Subscription, ours: Replica) -> None:
        """Somebody else does, so that later changes meet rows, or do not find them."""
        name = self.chance.choice([*self.tables])
        kind, key = self.tables[name], self.chance.randrange(14)
        if kind.name in ("whole", "nothing"):
            return
        by = kind.identity or ("id",)
        where = " AND ".join(f"{column} = {key}" for column in by)
        is_there = theirs.subscriber.run(f"SELECT 1 FROM {name} WHERE {where}")
        if is_there:
            self.said.append(f"target: DELETE FROM {name} WHERE {where}")
            theirs.subscriber.run(f"DELETE FROM {name} WHERE {where}")
            ours.delete(f"public.{name}", where)
            return
        row: dict[str, Any] = {
            column: key for column in self.columns[name] if column in ("id", "b")
        }
        self.said.append(f"target: INSERT INTO {name} {row}")
        values = f"({', '.join(row)}) VALUES ({', '.join(map(str, row.values()))})"
        theirs.subscriber.run(f"INSERT INTO {name} {values}")
        ours.insert(f"public.{name}", row)
