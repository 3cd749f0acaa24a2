"""Reading a subscription as its rules describe it, the columns of its relation by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from dagster_streamtables import Lake, Subscription, subscribe
from named_rows import tuples

Row = tuple[Any, ...]


def plain(rows: pa.Table | pa.RecordBatch, names: Iterable[str] | None = None) -> list[Row]:
    """Rows as tuples: what a subscription adds, and then the columns of the relation by name,
    which are alphabetical if no order is given.
    """
    there = rows.schema.names
    added = [name for name in there if name.startswith("_")]
    own = [name for name in there if not name.startswith("_")]
    names = sorted(own) if names is None else list(names)
    assert sorted(own) == sorted(names), (own, names)
    return tuples(rows.select([*added, *names]))


def ready(subscription: Subscription, names: Iterable[str] | None = None) -> list[Row]:
    """What is there now."""
    return plain(subscription.fetch(None, timeout=0), names)


def read(lake: Lake, relation: str, **options: Any) -> list[Row]:
    """What a new subscription finds, which is closed then."""
    with subscribe(lake, relation, **options) as subscription:
        return ready(subscription)


def sorted_within(rows: Iterable[Row]) -> list[Row]:
    """Rows whose order within a timestamp does not matter."""
    return sorted(rows, key=lambda row: (row[0], repr(row[1:])))


def contents(rows: Iterable[Row], until: int) -> Counter[Row]:
    """The rows of a relation at a timestamp, by adding up what changed."""
    found: Counter[Row] = Counter()
    for timestamp, diff, *row in rows:
        if timestamp <= until:
            found[tuple(row)] += diff
    return Counter({row: n for row, n in found.items() if n})
