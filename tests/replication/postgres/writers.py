"""Threads that write two tables, `t` and `events`, while others read what they write."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from replication.postgres.database import Database

TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY, v int)",
    "INSERT INTO t SELECT g, 0 FROM generate_series(1, 100) g",
    "CREATE TABLE events (id int PRIMARY KEY)",
    "CREATE PUBLICATION p FOR TABLE t, events",
)


class Writers:
    """Each writes rows of its own, in transactions with savepoints, some rolled back, some slow.

    They run ahead of their reader by so many transactions: otherwise it would never be done with
    what they have written.
    """

    AHEAD = 100

    def __init__(self, database: Database, count: int = 4, ahead: int = AHEAD) -> None:
        self.ahead = ahead
        self.database, self.ends = database, threading.Event()
        self.committed: set[int] = set()
        self.applied, self.goes_on = 0, threading.Condition()
        self.threads = [threading.Thread(target=self._write, args=(n,)) for n in range(count)]

    @contextmanager
    def writing(self) -> Iterator[None]:
        for each in self.threads:
            each.start()
        try:
            yield
        finally:
            self.ends.set()
            self.have_applied(len(self.committed))
            for each in self.threads:
                each.join()

    def have_applied(self, count: int) -> None:
        with self.goes_on:
            self.applied = count
            self.goes_on.notify_all()

    def _may_write(self) -> bool:
        """Whether to go on, once the reader is near enough."""

        def is_near() -> bool:
            return self.ends.is_set() or len(self.committed) < self.applied + self.ahead

        with self.goes_on:
            self.goes_on.wait_for(is_near)
        return not self.ends.is_set()

    def _write(self, number: int) -> None:
        chance, event = random.Random(number), 10_000_000 * (number + 1)
        with self.database.connect() as connection:
            while self._may_write():
                event += 1
                is_undone = chance.random() < 0.2
                with connection.transaction(force_rollback=is_undone):
                    _run(connection, f"INSERT INTO events VALUES ({event})")
                    with connection.transaction(force_rollback=chance.random() < 0.4):
                        _run(connection, f"UPDATE t SET v = v + 1 WHERE id % 4 = {number}")
                    if chance.random() < 0.1:
                        _run(connection, "SELECT pg_sleep(0.05)")
                    _run(connection, f"INSERT INTO t VALUES ({event}, 0)")
                    _run(connection, f"DELETE FROM t WHERE id % 4 = {number} AND v = 9")
                if not is_undone:
                    self.committed.add(event)


def _run(connection: psycopg.Connection[Any], statement: str) -> None:
    connection.execute(statement)  # type: ignore[arg-type]
