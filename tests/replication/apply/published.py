"""Changes of a published table, written down, and a model that applies one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from dagster_streamtables.replication.model.replication_model import (
    PublishedTable,
    TableChanges,
    change_schema,
)
from dagster_streamtables.replication.target.target_table import ReplicationTarget, log_of

Values = Mapping[str, Any]
Change = tuple[Any, ...]
"""("insert", new), ("update", old or None, new, *unchanged columns), ("delete", old) or
("truncate",); `old` has at least the identity."""
Transactions = Mapping[int, Sequence[Change]]
"""Position → changes."""
ORIGIN = "postgresql://host:5432/shop"
SHOP = pa.schema([("id", pa.int64()), ("name", pa.string())])
KEYED = PublishedTable("public.shop", SHOP, ("id",))
WHOLE = PublishedTable("public.shop", SHOP, None)


def at(place: Path | str) -> ReplicationTarget:
    return ReplicationTarget(str(place), "shop", ORIGIN)


def position_of(target: ReplicationTarget) -> int | None:
    """The position in the log of a target; None without a table or a position."""
    log = log_of(target)
    return None if log is None else log.transaction(target.application)


def changes(table: PublishedTable, happened: Transactions) -> TableChanges:
    names = table.schema.names
    identity = table.identity or names
    rows = []
    for index, each in enumerate(happened.values()):
        for op, *values in each:
            old = values[0] if op in ("update", "delete") else None
            new = {"insert": values[:1], "update": values[1:2]}.get(op, [None])[0]
            hidden = [names.index(name) for name in values[2:]]
            old = old and {name: old[name] for name in identity}
            new = new and {n: None if names.index(n) in hidden else new[n] for n in names}
            rows.append((op, index, old, new, hidden or None))
    schema = change_schema(table)
    columns = ("op", "transaction", "old", "new", "unchanged")
    told = [dict(zip(columns, row, strict=True)) for row in rows]
    return TableChanges(
        table,
        tuple(happened),
        pa.Table.from_pylist(told, schema=schema),
    )


def stored(place: Path | str, *names: str) -> Counter[str]:
    """The rows of a target, counted, by their texts: NaN is equal to itself, -0.0 not to 0.0."""
    rows = DeltaTable(str(place)).to_pyarrow_table(columns=[*names] or None)
    return counted(rows.to_pylist())


def counted(rows: Sequence[Values]) -> Counter[str]:
    return Counter(repr([(name, _plain(row[name])) for name in sorted(row)]) for row in rows)


def _plain(value: Any) -> Any:
    return value.astimezone(UTC) if getattr(value, "tzinfo", None) else value


class Model:
    """What PostgreSQL does with changes, one by one; rows may have columns of their own."""

    def __init__(self, table: PublishedTable, rows: Sequence[Values] = (), policy: str = "error"):
        self.names = table.schema.names
        self.identity = table.identity or self.names
        self.counts = table.identity is None
        self.rows = [dict(row) for row in rows]
        self.extra = {name: None for row in rows for name in row if name not in self.names}
        self.policy = policy
        self.conflicts: Counter[str] = Counter()

    def apply(self, happened: Transactions) -> None:
        for each in happened.values():
            for op, *values in each:
                getattr(self, op)(*values)

    def insert(self, new: Values) -> None:
        if not self.counts and self._has(new):
            self.conflicts["insert_exists"] += 1
            if self.policy == "apply":
                self._find(new).update(new)
            return
        self.rows.append({**self.extra, **new})

    def update(self, old: Values | None, new: Values, *unchanged: str) -> None:
        before = old or new
        told = {name: value for name, value in new.items() if name not in unchanged}
        told |= {n: before[n] for n in unchanged if n in self.identity}
        if not self._has(before):
            self.conflicts["update_missing"] += 1
            if self.policy == "apply" and len(told) == len(self.names):
                self._take_place(told)
        elif not self.counts and self._key(told) != self._key(before) and self._has(told):
            self.conflicts["update_exists"] += 1
            if self.policy == "apply":
                self.rows.remove(self._find(told))
                self._find(before).update(told)
        else:
            self._find(before).update(told)

    def _take_place(self, new: Values) -> None:
        if not self.counts and self._has(new):
            self._find(new).update(new)
        else:
            self.rows.append({**self.extra, **new})

    def delete(self, old: Values) -> None:
        if self._has(old):
            found = self._find(old)
            self.rows = [row for row in self.rows if row is not found]
        else:
            self.conflicts["delete_missing"] += 1

    def truncate(self) -> None:
        self.rows = []

    def _key(self, row: Values) -> str:
        return repr([row[name] for name in self.identity])

    def _has(self, row: Values) -> bool:
        return any(self._key(each) == self._key(row) for each in self.rows)

    def _find(self, row: Values) -> dict[str, Any]:
        return next(each for each in self.rows if self._key(each) == self._key(row))


def left(table: PublishedTable, rows: Sequence[Values], happened: Transactions) -> Counter[str]:
    """What the model leaves of these rows, counted."""
    model = Model(table, rows)
    model.apply(happened)
    return counted(model.rows)
