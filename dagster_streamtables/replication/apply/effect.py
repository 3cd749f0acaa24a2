"""`Effect`: what changes come to, as rows to insert, update and delete in the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.apply.contract import Conflicts
from dagster_streamtables.replication.apply.net import NONE, STORED, Row
from dagster_streamtables.replication.target.columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Effect:
    came: pa.Table
    """Rows to insert, in the published columns."""
    changed: pa.Table
    """The rows to update, by what tells them apart in the target."""
    values: pa.Table
    """Their new values."""
    kept: Mapping[str, np.ndarray]
    """Column of `values` → the rows in which it stays what it is."""
    gone: pa.Table
    """The rows to delete, in the columns of `changed`: all equal ones."""
    again: pa.Table
    """Rows that are inserted again, in all columns of the target: they are among the deleted, or
    all are replaced."""
    replaces: bool
    """Whether the rows that came take the place of all that were there."""
    inserted: int
    updated: int
    deleted: int | None
    """None for all rows that were there."""
    conflicts: Conflicts = field(default_factory=Conflicts)

    @property
    def is_empty(self) -> bool:
        parts = (self.came, self.changed, self.gone)  # there is no `again` without them
        return not self.replaces and not any(part.num_rows for part in parts)

    def require_values(self, columns: Columns) -> None:
        """
        Raises:
            TargetProblem: A column that is not NULL in the target would be.
        """
        columns.require_values(self.came)
        columns.require_values(self.again)
        for name in columns.required.intersection(self.values.column_names):
            rows = self.values.select([name])
            columns.require_values(rows.filter(~self.kept[name]) if name in self.kept else rows)


def values_of(new: pa.Table, rows: Sequence[Row]) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """The values of rows, by the changes that have them.

    Returns:
        The published columns; and by column, the rows whose value only the target has.
    """
    import pyarrow as pa

    last = np.array([row.change for row in rows], np.int64)
    found, kept = new.take(last), {}
    for column in sorted({each for row in rows for each in row.columns}):
        changes = np.array([row.columns.get(column, row.change) for row in rows], np.int64)
        name, stays = new.column_names[column], changes == STORED
        kept[name] = stays
        taken = new.column(name).take(pa.array(changes, mask=stays))
        found = found.set_column(column, new.schema.field(column), taken)
    return found, kept


def is_new(row: Row) -> bool:
    return row.origin == NONE
