"""`Publisher`: the tables that a replication reads, their rows and changes; and the errors."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from dagster_streamtables.errors import (
    LostPublisher,
    LostSpark,
    LostStore,
    PublisherProblem,
    StreamTablesError,
)
from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.errors.slot_errors import LostSlot, SlotInUse

_Found = TypeVar("_Found")


class LostTable(LostSlot, PublisherProblem):
    """Changes of one table are missing: that table must be copied again."""


OF_ALL = (LostPublisher, LostSpark, LostStore, SlotInUse)
"""Errors that stop the replication, whichever table meets them first."""


def of_each(
    tables: Iterable[str], find: Callable[[str], _Found]
) -> tuple[dict[str, _Found], dict[str, StreamTablesError]]:
    """Find something for each table; the error of one does not hide the others.

    Returns:
        The results by table, and the errors by table.

    Raises:
        StreamTablesError: An error of `OF_ALL`.
    """
    found: dict[str, _Found] = {}
    refused: dict[str, StreamTablesError] = {}
    for name in tables:
        try:
            found[name] = find(name)
        except OF_ALL:
            raise
        except StreamTablesError as error:
            refused[name] = error
    return found, refused


class Operation(enum.StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"


@dataclass(frozen=True)
class PublishedTable:
    """One table of a publisher, as its publications show it."""

    name: str
    """The name at the publisher, with its schema: ``public.orders``. Its target has the same name
    unless the replication says otherwise."""
    schema: pa.Schema
    """The published columns, with the types that a Delta table stores."""
    identity: tuple[str, ...] | None
    """The columns that identify a row; None if only the whole row does: then equal rows are
    counted."""
    operations: frozenset[Operation] = frozenset(Operation)
    """The published operations. The initial copy is not one of them."""
    fills: Mapping[str, Any] = field(default_factory=dict)
    """Column → the value of the rows that existed when the column was added: a publisher changes
    them without a message. NULL for other columns."""
    untold: frozenset[str] = frozenset()
    """Columns whose values in such rows are unknown."""
    id: str = ""
    """The id of the table at the publisher: one that is dropped and created again has another.
    Empty if `read` itself tells the two apart."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that tell rows apart: the identity, or all columns."""
        return tuple(self.schema.names) if self.identity is None else self.identity


@dataclass(frozen=True)
class TableOffer:
    """The tables of some publications."""

    tables: Mapping[str, PublishedTable]
    refused: Mapping[str, StreamTablesError] = field(default_factory=dict)
    """By table, why it cannot be replicated."""

    def require(self) -> Mapping[str, PublishedTable]:
        """All tables; raise the error of a refused one."""
        for error in self.refused.values():
            raise error
        return self.tables


@dataclass(frozen=True)
class TableChanges:
    """The changes of one table, in the order in which they happened."""

    table: PublishedTable
    """With its columns at that time: a batch ends where they change."""
    positions: tuple[int, ...]
    """Of its transactions, in order: a version of a Delta table, or the LSN after a PostgreSQL
    commit."""
    rows: pa.Table
    """One row for each change, in order; columns as in `change_schema`."""


@dataclass(frozen=True)
class Batch:
    """The changes of the published tables after the requested positions."""

    tables: Mapping[str, TableChanges]
    """By name; tables without changes are missing."""
    end: Mapping[str, int]
    """By name of every requested table: all its changes up to this position are here."""
    complete: bool = True
    """Whether nothing followed when it was read."""
    refused: Mapping[str, StreamTablesError] = field(default_factory=dict[str, StreamTablesError])
    """By table, why its changes cannot be read. It is in neither `tables` nor `end`."""

    def require(self) -> Batch:
        """Raise the error of a table whose changes cannot be read."""
        for error in self.refused.values():
            raise error
        return self


def change_schema(table: PublishedTable) -> pa.Schema:
    """The columns of changes.

    op           "insert", "update", "delete" or "truncate"
    transaction  int32, the index of its position
    old          struct, the identity of the row before, or the whole row where there is none. NULL
                 for an insert, a truncate, and an update that leaves the identity as it is. An
                 update without an identity always has it.
    new          struct of the published columns, NULL for a delete and a truncate
    unchanged    list of int16, the indices of columns of `new` whose values the publisher does not
                 tell since they stayed what they were (PostgreSQL's TOAST); they are NULL in `new`
    """

    return pa.schema(
        [
            pa.field("op", pa.string(), nullable=False),
            pa.field("transaction", pa.int32(), nullable=False),
            pa.field("old", pa.struct([table.schema.field(name) for name in table.key_columns])),
            pa.field("new", pa.struct(list(table.schema))),
            pa.field("unchanged", pa.list_(pa.int16())),
        ]
    )


@dataclass(frozen=True)
class Lag:
    """How far a slot is behind its publisher."""

    commits: int | None
    """Versions of tables; None if the publisher does not count."""
    bytes: int | None
    """The size of the history that is kept for the slot; None if unknown."""
    seconds: float
    """The age of the oldest unconfirmed commit; 0 if there is none."""
    is_abandoned: bool = False
    """Whether the slot was not read for half of its deadline, after which it is released."""


class CopySource(Protocol):
    """Published tables at one moment."""

    def position(self, table: str) -> int:
        """All changes up to it are in the copy, and no later ones."""
        ...

    def rows(self, table: str) -> pa.RecordBatchReader:
        """The rows, in the table's published schema, filtered; read once, a batch at a time."""
        ...


class Publisher(Protocol):
    """Tables and their changes. One thread at a time uses it.

    All methods raise `PublisherProblem` if the publisher refuses, with what its owner must do, and
    `LostPublisher` if it cannot be reached, where a retry is enough.
    """

    @property
    def origin(self) -> str:
        """Identifies it, without any secret: ``postgresql://host:5432/shop`` or a lake's root."""
        ...

    def offer(self) -> TableOffer:
        """The tables that its publications have now.

        Raises:
            PublisherProblem: A publication does not exist.
        """
        ...

    def copy(self, slot: str, tables: Collection[str]) -> AbstractContextManager[CopySource]:
        """Begin to keep the changes of tables, and read their rows as of that moment.

        The slot is created if it does not exist. If it does, its position stays, and the reader
        must leave out the changes of these tables between the two, by their positions.
        """
        ...

    def create_slot(self, slot: str, tables: Collection[str]) -> Mapping[str, int]:
        """Begin to keep the changes of tables, without a copy; return their positions."""
        ...

    def read(
        self, slot: str, after: Mapping[str, int], confirmed: str | None, *, max_rows: int
    ) -> Batch:
        """Changes after the positions of tables, whole transactions only, without moving the slot.

        A table whose changes cannot be read is in `Batch.refused`, with a `LostSlot` if it must be
        copied again. At least one of the other tables advances, unless the batch is complete.

        Args:
            after: By table, the position of what was applied last.
            confirmed: The last result of `confirming` or `confirm`; None if neither was called.
            max_rows: Stop after the transaction that reaches this number of rows.

        Raises:
            LostSlot: The slot does not exist, the publisher has released it, or another reader has
                moved it, so that changes are missing.
            SlotInUse: Another process reads it.
        """
        ...

    def confirming(self, applied: Mapping[str, int]) -> str:
        """The state to which `confirm` is about to bring the slot, for the caller to store first:
        after a crash between the two, `read` accepts a slot that was moved and one that was not.
        `applied` must not be empty."""
        ...

    def confirm(self, slot: str, applied: Mapping[str, int]) -> str:
        """Release what was applied.

        Returns:
            The state of the slot, opaque to the caller, who stores it: a lake has a version of each
                table, a server one LSN. By it `read` recognizes that another reader has moved the
                slot.
        """
        ...

    def release(self, slot: str, tables: Collection[str]) -> None:
        """Keep nothing for tables that have no position any more, if the slot has one for each."""
        ...

    def drop_slot(self, slot: str) -> None:
        """Stop keeping changes. Does nothing if there is no such slot."""
        ...

    def lag(self, slot: str, applied: Mapping[str, int]) -> Lag: ...
