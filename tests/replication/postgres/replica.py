"""Changes applied row by row, as plainly as it can be done: the oracle of what a batch says."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from dagster_streamtables.replication.model.replication_model import (
    Batch,
    TableChanges,
    change_schema,
)

Row = dict[str, Any]


@dataclass
class Replica:
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def apply(self, batch: Batch) -> None:
        for name, changes in batch.tables.items():
            changes.rows.validate(full=True)
            assert changes.rows.schema == change_schema(changes.table)
            positions = [*changes.positions]
            assert positions == sorted(set(positions))
            assert positions[-1] <= batch.end[name]
            used = changes.rows["transaction"].to_pylist()
            assert used == sorted(used) and set(used) == set(range(len(positions)))
            self._apply(self.rows.setdefault(name, []), changes)

    def _apply(self, rows: list[Row], changes: TableChanges) -> None:
        names = changes.table.schema.names
        for row in rows:
            for name in names:
                row.setdefault(name, changes.table.fills.get(name))
            for name in row.keys() - set(names):
                del row[name]
        for change in changes.rows.to_pylist():
            _change(rows, change, changes.table.identity, names)

    def shown(self, name: str) -> Counter[str]:
        return Counter(map(as_text, self.rows.get(name, [])))


def as_text(row: Row) -> str:
    """Columns and values, by name: NaN is equal to itself here, and -0.0 is not 0.0."""
    return repr(sorted(row.items()))


def _change(
    rows: list[Row], change: Row, identity: tuple[str, ...] | None, names: list[str]
) -> None:
    op, old, new = change["op"], change["old"], change["new"]
    assert (new is None) == (op in ("delete", "truncate"))
    if op == "truncate":
        rows.clear()
        return
    if op == "insert":
        assert old is None and change["unchanged"] is None
        rows.append(new)
        return
    if old is None:
        assert identity is not None
        old = {name: new[name] for name in identity}
    # NaN is equal to itself here, and -0.0 is not 0.0.
    matching = [row for row in rows if all(repr(row[name]) == repr(old[name]) for name in old)]
    assert matching, (change, rows)
    if op == "delete":
        rows.remove(matching[0])
        return
    unchanged = [names[i] for i in change["unchanged"] or ()]
    matching[0].update({name: value for name, value in new.items() if name not in unchanged})
