"""Random histories of a table with a key, and what a publisher of PostgreSQL would make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from changes.table import Table
from dagster_streamtables.replication.lake.publication import Publication, PublicationEntry
from dagster_streamtables.replication.model.replication_model import Operation

SCHEMA = pa.schema(
    [("k", pa.int64()), ("My Key", pa.string()), ("n", pa.int64()), ("s", pa.string())]
)
KEY = ("k", "My Key")
COLUMN_LISTS = [None, ("k", "My Key", "n"), ("My Key", "k")]
Row = tuple[Any, ...]
Condition = tuple[str, Callable[[Row], bool]]
"""The same condition in SQL and in Python, where NULL is false."""

FILTERS: Sequence[Condition] = [
    ("n > 2", lambda row: row[2] is not None and row[2] > 2),
    ("n > 2 OR s = 'a' -- either", lambda row: (row[2] or 0) > 2 or row[3] == "a"),
    ("s IS NULL", lambda row: row[3] is None),
    ("NOT (s = '')", lambda row: row[3] not in (None, "")),
    ("k = 1 OR `My Key` IS NULL", lambda row: row[0] == 1 or row[1] is None),
    ("CAST(NULL AS BOOLEAN)", lambda row: False),
]
WHERES: Sequence[Condition] = [
    ("n > 1", lambda row: row[2] is not None and row[2] > 1),
    ("k = 1", lambda row: row[0] == 1),
    ("s IS NULL", lambda row: row[3] is None),
    ("s = 'a'", lambda row: row[3] == "a"),
    ("true", lambda row: True),
]
UPDATES: Sequence[tuple[str, str, Callable[[Any], Any]]] = [
    ("n", "n + 1", lambda n: None if n is None else n + 1),
    ("n", "NULL", lambda _: None),
    ("s", "'a'", lambda _: "a"),
    ("s", "''", lambda _: ""),
]


@dataclass
class Shown:
    """One publication of the table."""

    operations: frozenset[Operation]
    where: Condition | None

    def publication(
        self, name: str, columns: Sequence[str] | None, *, keyless: bool = False
    ) -> Publication:
        where = "" if self.where is None else self.where[0]
        listed = None if columns is None else tuple(columns)
        entry = PublicationEntry("t", listed, where, None if keyless else KEY)
        return Publication(name, (entry,), operations=self.operations)

    def has(self, row: Row) -> bool:
        return self.where is None or self.where[1](row)


@dataclass
class Model:
    """The table, and the rows that a subscriber of its publications has: plain dictionaries."""

    shown: Sequence[Shown]
    columns: Sequence[str]
    rows: dict[Row, Row] = field(default_factory=dict)
    copy: dict[Row, Row] = field(default_factory=dict)

    @property
    def copied(self) -> Counter[Row]:
        return Counter(self.copy.values())

    def begin(self) -> None:
        for key, row in self.rows.items():
            if any(each.has(row) for each in self.shown):
                self.copy[key] = self.seen(row)

    def seen(self, row: Row) -> Row:
        """The columns that are published, by name."""
        return tuple(row[SCHEMA.names.index(name)] for name in sorted(self.columns))

    def shows(self, op: Operation, row: Row) -> bool:
        return any(op in each.operations and each.has(row) for each in self.shown)

    def insert(self, row: Row) -> None:
        self.rows[row[:2]] = row
        if self.shows(Operation.INSERT, row):
            self.copy[row[:2]] = self.seen(row)

    def delete(self, key: Row) -> None:
        if self.shows(Operation.DELETE, self.rows.pop(key, key)):
            self.copy.pop(key, None)

    def update(self, key: Row, new: Row) -> None:
        old = self.rows.pop(key)
        self.rows[new[:2]] = new
        before, after = (self.shows(Operation.UPDATE, row) for row in (old, new))
        if before and self._look(old) != self._look(new):
            there = self.copy.pop(key, None) is not None
            after = after and (there or key != new[:2])
        elif before:
            return
        if after:
            self.copy[new[:2]] = self.seen(new)

    def merge(self, rows: Mapping[Row, Row]) -> None:
        for key, row in rows.items():
            if key in self.rows:
                self.update(key, row)
            else:
                self.insert(row)

    def _look(self, row: Row) -> Any:
        return self.seen(row), row[:2], [self.shows(op, row) for op in Operation]

    def truncate(self) -> None:
        self.rows.clear()
        if any(Operation.TRUNCATE in each.operations for each in self.shown):
            self.copy.clear()


@dataclass
class History:
    """Commits to a table and to its model."""

    table: Table
    model: Model
    chance: Random
    fresh: int = 100

    @classmethod
    def of(cls, table: Table, shown: Sequence[Shown], columns: Any, chance: Random) -> History:
        """With some rows, of which these columns are published."""
        names = [name for name in SCHEMA.names if columns is None or name in columns]
        history = cls(table, Model(shown, names), chance)
        history._insert()
        return history

    def commit(self) -> str:
        steps: Mapping[str, Callable[[], None]] = {
            "insert": self._insert, "update": self._update, "delete": self._delete,
            "truncate": self._truncate, "merge": self._merge, "overwrite": self._overwrite,
            "change key": self._change_key, "compact": self.table.compact,
        }  # fmt: skip
        weights = [4, 4, 3, 1, 3, 1, 2, 1]
        [step] = self.chance.choices(list(steps), weights)
        steps[step]()
        return step

    def _row(self) -> Row:
        pick = self.chance.choice
        return (
            pick([None, 1, 2, 3]), pick([None, "", "x"]), pick([None, 1, 2, 3, 4]),
            pick([None, "", "a", "é'\n"]),
        )  # fmt: skip

    def _new(self, n: int, *, there: bool) -> dict[Row, Row]:
        found = {row[:2]: row for row in (self._row() for _ in range(n))}
        return {key: row for key, row in found.items() if there or key not in self.model.rows}

    def _insert(self) -> None:
        rows = self._new(4, there=False)
        self.table.insert(*rows.values())
        for row in rows.values():
            self.model.insert(row)

    def _update(self) -> None:
        sql, chosen = self.chance.choice(WHERES)
        column, text, value = self.chance.choice(UPDATES)
        self.table.update(sql, **{column: text})
        for key, row in list(self.model.rows.items()):
            if chosen(row):
                new = dict(zip(SCHEMA.names, row, strict=True))
                new[column] = value(new[column])
                self.model.update(key, tuple(new.values()))

    def _delete(self) -> None:
        sql, chosen = self.chance.choice(WHERES)
        self.table.delete(sql)
        for key, row in list(self.model.rows.items()):
            if chosen(row):
                self.model.delete(key)

    def _truncate(self) -> None:
        if self.model.rows:  # of an empty table it is no commit
            self.table.delete()
            self.model.truncate()

    def _merge(self) -> None:
        rows = self._new(3, there=True)
        source = self.table._rows(rows.values())
        match = " AND ".join(f'(t."{name}" IS NOT DISTINCT FROM s."{name}")' for name in KEY)
        merge = self.table.delta.merge(source, match, source_alias="s", target_alias="t")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        merge.execute()
        self.model.merge(rows)

    def _overwrite(self) -> None:
        rows = self._new(4, there=True)
        self.table.overwrite(*rows.values())
        for key in list(self.model.rows.keys() - rows.keys()):
            self.model.delete(key)
        self.model.merge(rows)

    def _change_key(self) -> None:
        self.fresh += 1
        chosen = [key for key in self.model.rows if key[0] == 1]
        self.table.update("k = 1", k=str(self.fresh))
        for key in chosen:
            self.model.update(key, (self.fresh, key[1], *self.model.rows[key][2:]))


def random_publications(chance: Random, *, filtered: bool) -> list[Shown]:
    def one() -> Shown:
        some = frozenset(chance.sample(list(Operation), chance.randint(1, 4)))
        whole = chance.random() < 0.4
        where = chance.choice([None, *FILTERS]) if filtered else None
        return Shown(frozenset(Operation) if whole else some, where)

    return [one() for _ in range(chance.choice([1, 1, 2, 3]))]


def seeds(quick: Sequence[int], long: Sequence[int]) -> pytest.MarkDecorator:
    every = [*quick, *(pytest.param(seed, marks=pytest.mark.long) for seed in long)]
    return pytest.mark.parametrize("seed", every)
