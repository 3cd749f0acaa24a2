"""Two clusters, and a subscription of PostgreSQL's own between databases of them."""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from dataclasses import dataclass, field

from replication.postgres.database import Database, LogicalServer

QUICK = """
wal_retrieve_retry_interval = 10ms
max_worker_processes = 24
max_logical_replication_workers = 16
max_sync_workers_per_subscription = 4
max_replication_slots = 60
max_wal_senders = 60
log_min_messages = warning
"""
FINISHED = re.compile(
    r"processing remote data for replication origin \"(\w+)\" during.* finished at ([0-9A-F/]+)"
)
NUMBERS = itertools.count()
PATIENCE = 120.0
"""Seconds after which a subscription is said to hang."""


class Cluster(LogicalServer):
    """Its workers do not wait before they start again."""

    def ensure_pgdata_inited(self) -> None:
        super().ensure_pgdata_inited()
        with (self.pgdata / "postgresql.conf").open("a") as file:
            file.write(QUICK)


@dataclass
class Subscription:
    """What PostgreSQL makes of publications in a database of another cluster."""

    publisher: Database
    subscriber: Database
    publications: tuple[str, ...]
    stopped: list[str] = field(default_factory=list)
    """The commits at which it has stopped, and which it was told to skip."""
    _marks: int = 0

    def begin(self, *, copy: bool) -> None:
        self.publisher.run(
            "CREATE TABLE mark (id int PRIMARY KEY)", "CREATE PUBLICATION marks FOR TABLE mark"
        )
        self.subscriber.run("CREATE TABLE mark (id int PRIMARY KEY)")
        names = ", ".join((*self.publications, "marks"))
        self.subscriber.run(
            f"CREATE SUBSCRIPTION {self.subscriber.name} CONNECTION '{self.publisher.address}' "
            f"PUBLICATION {names} WITH (copy_data = {copy}, disable_on_error = true)"
        )
        self._await("SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel", "its copy")

    def catch_up(self) -> None:
        """Wait until all that is committed is applied; what it stops at is skipped."""
        self._marks += 1
        self.publisher.run(f"INSERT INTO mark VALUES ({self._marks})")
        self._await(f"SELECT count(*) = 1 FROM mark WHERE id = {self._marks}", "a change")

    def end(self) -> None:
        self.subscriber.run(f"DROP SUBSCRIPTION {self.subscriber.name}")

    def rows(self, table: str, columns: list[str]) -> Counter[str]:
        named = ", ".join(f'"{name}"' for name in columns)
        return Counter(map(repr, self.subscriber.run(f"SELECT {named} FROM {table}")))

    def _await(self, query: str, what: str) -> None:
        limit = time.monotonic() + PATIENCE
        enabled = f"SELECT subenabled FROM pg_subscription WHERE subname = '{self.subscriber.name}'"
        with self.subscriber.connect() as connection:
            while time.monotonic() < limit:
                if connection.execute(query).fetchone() == (True,):  # type: ignore[arg-type]
                    return
                if connection.execute(enabled).fetchone() == (False,):  # type: ignore[arg-type]
                    self._skip()
                connection.execute("SELECT pg_sleep(0.005)")
        log = self.subscriber.server.log.read_text()[-3000:]
        raise AssertionError(f"PostgreSQL's subscription does not reach {what}\n{log}")

    def _skip(self) -> None:
        query = f"SELECT 'pg_' || oid FROM pg_subscription WHERE subname = '{self.subscriber.name}'"
        [(origin,)] = self.subscriber.run(query)
        limit = time.monotonic() + PATIENCE
        while (last := self._last_stop(origin)) in self.stopped:
            assert time.monotonic() < limit, "it stops at what it skips"
            time.sleep(0.05)  # the subscription may be disabled before its log tells why
        self.stopped.append(last)
        name = self.subscriber.name
        self.subscriber.run(
            f"ALTER SUBSCRIPTION {name} SKIP (lsn = '{last}')", f"ALTER SUBSCRIPTION {name} ENABLE"
        )

    def _last_stop(self, origin: str) -> str:
        found = FINISHED.findall(self.subscriber.server.log.read_text())
        return [at for name, at in found if name == origin][-1]
