"""`Batch`: changes of published tables, as they happened, up to a position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.model.published_table import PublishedTable

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Transaction:
    """One commit at the publisher."""

    position: int
    """Where it ends: a version of a Delta table, or the LSN behind a PostgreSQL commit. Later
    commits have greater positions."""
    committed_at: datetime | None = None


@dataclass(frozen=True)
class TableChanges:
    """The changes of one table, in the order in which they happened."""

    table: PublishedTable
    """With the columns that the table had then: a batch ends where they change."""
    transactions: tuple[Transaction, ...]
    """In order of their positions."""
    rows: pa.Table
    """One row for each change, in order; columns as in `change_schema`."""


@dataclass(frozen=True)
class Batch:
    """What happened to the published tables after the positions that were asked for."""

    tables: Mapping[str, TableChanges]
    """By name; tables without changes are missing."""
    end: Mapping[str, int]
    """By name of every table that was asked for: all its changes up to this position are here."""
    complete: bool = True
    """Whether there was nothing behind it when it was read."""
    refused: Mapping[str, StreamTablesError] = field(default_factory=dict[str, StreamTablesError])
    """By table, why its changes cannot be read. It is in neither `tables` nor `end`."""

    def require(self) -> Batch:
        """
        Raises:
            StreamTablesError: The changes of a table cannot be read.
        """
        for error in self.refused.values():
            raise error
        return self


def change_schema(table: PublishedTable) -> pa.Schema:
    """The columns of changes.

    op           "insert", "update", "delete" or "truncate"
    transaction  int32, the index of its `Transaction`
    old          struct, the identity of the row before, or the whole row where there is none. NULL
                 for an insert, a truncate, and an update that leaves the identity as it is. An
                 update without an identity always has it.
    new          struct of the published columns, NULL for a delete and a truncate
    unchanged    list of int16, the indices of columns of `new` whose values the publisher does not
                 tell since they stayed what they were (PostgreSQL's TOAST); they are NULL in `new`
    """
    import pyarrow as pa

    names = table.schema.names if table.identity is None else table.identity
    return pa.schema(
        [
            pa.field("op", pa.string(), nullable=False),
            pa.field("transaction", pa.int32(), nullable=False),
            pa.field("old", pa.struct([table.schema.field(name) for name in names])),
            pa.field("new", pa.struct(list(table.schema))),
            pa.field("unchanged", pa.list_(pa.int16())),
        ]
    )
