"""Three stream tables, each over the one before, and the commits that they show."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.postgres import Server
from dagster_streamtables import FromPostgres, Lake, Replication, Replications
from dagster_streamtables.runtime.model.table_state import StreamTableState

_CHAIN = {
    "paid": "SELECT id, customer, amount FROM orders WHERE amount > 10",
    "placed": "SELECT p.id, c.region, p.amount FROM paid AS p JOIN customers AS c "
    "ON p.customer = c.id",
    "by_region": "SELECT region, count(*) AS orders, sum(amount) AS total FROM placed "
    "GROUP BY region",
}
_CUSTOMERS = 1000


class Chain:
    """A source, three stream tables over it, and the worker that refreshes them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tables, self.root = folder, folder / "tables", folder / "lake"
        self.tables.mkdir()
        self.root.mkdir()
        self.lake = Lake(self.root)
        ids = range(_CUSTOMERS)
        customers = pa.table({"id": [*ids], "region": [f"r{each % 20}" for each in ids]})
        write_deltalake(self.lake.location("customers"), customers)
        self.commits = 0
        self.commit()

    def declare(self, schedule: str) -> None:
        for name, query in _CHAIN.items():
            own = schedule if name == "by_region" else "CALCULATED"
            (self.tables / f"{name}.sql").write_text(f"-- schedule: {own}\n{query}\n")

    def commit(self) -> None:
        """Ten rows more, in one commit."""
        begin = self.commits * 10
        ids = range(begin, begin + 10)
        rows = {
            "id": [*ids],
            "customer": [(each * 7919) % _CUSTOMERS for each in ids],
            "amount": [each % 100 for each in ids],
        }
        self._write(pa.table(rows))
        self.commits += 1

    def _write(self, rows: pa.Table) -> None:
        write_deltalake(self.lake.location("orders"), rows, mode="append")

    def reflected(self) -> int:
        """The last commit, from 0 up, that the last table reflects; -1 for none."""
        seen = self._frontiers("by_region")
        return max((self._commit_of(version) for version, _ in seen[-1:]), default=-1)

    def visible(self) -> dict[int, float]:
        """For each commit, when the last table reflected it first."""
        return self._first(self._frontiers("by_region"))

    def followed(self, said: str) -> dict[int, float]:
        """For each commit, when the follower had it.

        Args:
            said: What the follower has printed.
        """
        lines = map(str.split, said.splitlines())
        return self._first((int(version), float(at)) for version, at in lines)

    def _first(self, seen: Iterable[tuple[int, float]]) -> dict[int, float]:
        """For each commit, when it was seen first, by versions of the last table in their order."""
        found: dict[int, float] = {}
        reached = -1
        for version, at in seen:
            now = self._commit_of(version)
            for commit in range(reached + 1, now + 1):
                found[commit] = at
            reached = max(reached, now)
        return found

    def written(self) -> dict[int, float]:
        """When each commit was written."""
        return {version: path.stat().st_mtime for version, path in self._commits("orders")}

    def _commit_of(self, version: int) -> int:
        """The last commit that a version of the last table reflects."""
        placed = self._frontier("by_region", version)["placed"]
        paid = self._frontier("placed", placed)["paid"]
        return self._newest_in(self._frontier("paid", paid)["orders"])

    def _newest_in(self, version: int) -> int:
        """The last commit that a version of the source has."""
        return version

    def _frontiers(self, name: str) -> list[tuple[int, float]]:
        return [(version, path.stat().st_mtime) for version, path in self._commits(name)]

    def _frontier(self, name: str, version: int) -> dict[str, int]:
        for older in range(version, -1, -1):  # an upkeep commit has no state of its own
            path = dict(self._commits(name)).get(older)
            state = None if path is None else _state(path)
            if state is not None:
                return state.frontier
        return {"orders": -1, "paid": 0, "placed": 0}

    def _commits(self, name: str) -> Iterator[tuple[int, Path]]:
        log = Path(self.lake.location(name)) / "_delta_log"
        for path in sorted(log.glob("*.json")):
            if path.stem.isdigit():
                yield int(path.stem), path


class ReplicatedChain(Chain):
    """The same, and the source is replicated from a PostgreSQL server."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._server = server
        self._written: list[float] = []
        self._newest: dict[int, int] = {-1: -1}
        server.run(
            "CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)",
            "CREATE PUBLICATION bench FOR TABLE orders",
        )
        super().__init__(folder)
        declared = Replication("orders", FromPostgres(server.address, ("bench",)))
        Replications(self.lake).create(declared)
        Replications(self.lake).refresh("orders")

    def written(self) -> dict[int, float]:
        return dict(enumerate(self._written))

    def _write(self, rows: pa.Table) -> None:
        values = ", ".join(str(tuple(row.values())) for row in rows.to_pylist())
        self._server.run(f"INSERT INTO orders VALUES {values}")
        self._written.append(time.time())

    def _newest_in(self, version: int) -> int:
        if version not in self._newest:
            table = DeltaTable(self.lake.location("orders"), version=version)
            rows = table.to_pyarrow_table(columns=["id"]).num_rows
            self._newest[version] = rows // 10 - 1
        return self._newest[version]


def _state(path: Path) -> StreamTableState | None:
    for line in path.read_text().splitlines():
        info = json.loads(line).get("commitInfo")
        if info is not None:
            return StreamTableState.from_json(info.get("userMetadata") or "")
    return None
