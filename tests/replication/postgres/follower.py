"""Tables that are copied and followed, one batch after the other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from dagster_streamtables.replication.model.replication_model import Batch
from dagster_streamtables.replication.postgres.postgres_publisher import PostgresPublisher
from replication.postgres.database import Database
from replication.postgres.replica import Replica
from replication.postgres.test_reading import shown


class Follower:
    def __init__(
        self,
        database: Database,
        *tables: str,
        max_rows: int = 10**6,
        capture: str = "trigger",
    ) -> None:
        self.database, self.tables, self.max_rows = database, tables, max_rows
        self.capture = capture
        self.slot_timeout = timedelta(seconds=5)
        self.replica, self.confirmed = Replica(), None
        self.after: Mapping[str, int] = {}
        self.applied: list[Batch] = []
        self.copy(*tables)

    def publisher(self) -> PostgresPublisher:
        return self.database.publisher(capture=self.capture, slot_timeout=self.slot_timeout)

    def copy(self, *tables: str) -> None:
        with self.publisher().copy("s", tables) as copy:
            for name in tables:
                self.after = {**self.after, name: copy.position(name)}
                self.replica.rows[name] = copy.rows(name).read_all().to_pylist()

    def step(self) -> Batch:
        """Read, apply, store what is about to be confirmed, confirm."""
        publisher: Any = self.publisher()
        at = "s", self.after, self.confirmed
        batch = publisher.read(*at, max_rows=self.max_rows).require()
        self.replica.apply(batch)
        self.applied.append(batch)
        assert all(batch.end[name] >= self.after[name] for name in self.after)
        self.after = dict(batch.end)
        self.confirmed = publisher.confirming(self.after)
        publisher.confirm("s", self.after)
        return batch

    def catch_up(self) -> None:
        while not self.step().complete:
            pass

    @property
    def state(self) -> str:
        (state,) = set(self.publisher().capture_states("s").values())
        return state

    def require_equal(self) -> None:
        """Once it has caught up."""
        self.catch_up()
        for name in self.tables:
            assert self.replica.shown(name) == shown(self.database, name), name
