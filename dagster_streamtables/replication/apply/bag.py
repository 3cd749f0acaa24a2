"""What changes come to in a table without an identity, where equal rows are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dagster_streamtables.replication.apply.conflicts import Conflicts, Kind
from dagster_streamtables.replication.apply.net import NONE, STORED, NumberedChanges, Row


@dataclass
class Bag:
    """The rows of the numbers that were touched: first the stored ones, by their indices."""

    stored: Mapping[int, Sequence[int]]
    wins: bool = False
    """Whether an update of a missing row inserts it."""
    truncated: bool = False
    conflicts: Conflicts = field(default_factory=Conflicts)
    rows: dict[int, list[Row]] = field(default_factory=dict)
    left: set[int] = field(default_factory=set)
    """The stored rows that are gone, or have other values."""

    def fold(self, changes: NumberedChanges) -> None:
        old, new = changes.old.tolist(), changes.new.tolist()
        for i, op in enumerate(changes.op.tolist()):
            if op == "truncate":
                self.rows, self.truncated = {}, True
            elif op == "insert":
                self._at(new[i]).append(Row(NONE, i))
            elif self._at(old[i]):
                row = self._at(old[i]).pop()
                self.left |= {row.origin} - {NONE}
                if op == "update":
                    self._at(new[i]).append(Row(row.origin, i))
            elif op == "delete":
                self.conflicts.add(Kind.DELETE_MISSING, i)
            else:
                self.conflicts.add(Kind.UPDATE_MISSING, i)
                if self.wins:
                    self._at(new[i]).append(Row(NONE, i))

    def _at(self, number: int) -> list[Row]:
        if number not in self.rows:
            there = () if self.truncated else self.stored.get(number, ())
            self.rows[number] = [Row(index, STORED) for index in there]
        return self.rows[number]
