"""An account of the times of rows in plain Python, to compare stored tables with.

At each step plain Spark runs the query. The account knows which rows there were, with their times,
and which there are now; it knows nothing of changes, writers and plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from deltalake import DeltaTable

from dagster_streamtables import Lake, Refresh, StreamTable
from runtime.delta import views

AT = "loaded_at"
Row = tuple[str, ...]


@dataclass
class Account:
    """A stream table, and the times that its rows should have."""

    table: StreamTable
    key: Sequence[int] | None = None
    """The places of the columns that identify a row; None for a bag."""
    times: list[tuple[Row, datetime]] = field(default_factory=list)

    def refresh(self, lake: Lake, *, full: bool = False) -> Refresh:
        """Refresh the table, and compare it with the account."""
        begin = datetime.now(UTC)
        done = lake.refresh(self.table, full=full)
        found = times(lake, self.table)
        [now] = {at for _, at in found} - {at for _, at in self.times} or {None}
        assert now is None or begin <= now <= datetime.now(UTC)
        self.times = self._after(result(lake, self.table), now)
        assert Counter(found) == Counter(self.times), (self.table.name, done)
        return done

    def _after(self, rows: list[Row], now: datetime | None) -> list[tuple[Row, datetime]]:
        if self.key is None:
            return self._copies(rows, now)
        before = {self._key(row): (row, at) for row, at in self.times}
        assert len({self._key(row) for row in rows}) == len(rows)
        known = {row: before.get(self._key(row), (None, now)) for row in rows}
        return [(row, at if held == row else now) for row, (held, at) in known.items()]

    def _key(self, row: Row) -> Row:
        return tuple(row[place] for place in self.key or ())

    def _copies(self, rows: list[Row], now: datetime | None) -> list[tuple[Row, datetime]]:
        """Each copy takes the earliest time that is left of its row."""
        left = sorted(self.times, key=lambda each: each[1], reverse=True)
        held: dict[Row, list[datetime]] = {}
        for row, at in left:
            held.setdefault(row, []).append(at)
        return [(row, held[row].pop() if held.get(row) else now) for row in rows]


def times(lake: Lake, table: StreamTable) -> list[tuple[Row, datetime]]:
    """The stored rows, as texts, and their times."""
    rows = lake.read(table.name).drop(table.changed_at).columns
    held = DeltaTable(lake.location(table.name)).to_pyarrow_table().to_pylist()
    return [(tuple(repr(row[name]) for name in rows), row[table.changed_at]) for row in held]


def result(lake: Lake, table: StreamTable) -> list[Row]:
    """The rows of the query by plain Spark, as texts."""
    rows = views(lake, *table.sources).sql(table.query)
    return [tuple(map(repr, row)) for row in rows.collect()]


def stream(name: str, query: str, **more: object) -> StreamTable:
    settings = {"changed_at": AT, "differential_max_change_ratio": 0} | more
    return StreamTable(name, query, **settings)  # type: ignore[arg-type]
