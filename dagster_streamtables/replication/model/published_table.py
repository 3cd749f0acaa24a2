"""`PublishedTable`: what a publisher gives of one table."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dagster_streamtables.errors import StreamTablesError

if TYPE_CHECKING:
    import pyarrow as pa


class Operation(enum.StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"


@dataclass(frozen=True)
class PublishedTable:
    """One table of a publisher, as its publications show it."""

    name: str
    """At the publisher, with its schema: ``public.orders``. Its target has the same name unless
    the replication says otherwise."""
    schema: pa.Schema
    """The published columns, with the types that a Delta table stores."""
    identity: tuple[str, ...] | None
    """The columns that identify a row; None if only the whole row does, in which case equal rows
    are counted."""
    operations: frozenset[Operation] = frozenset(Operation)
    """Those that are published. The initial copy is not one of them."""
    fills: Mapping[str, Any] = field(default_factory=dict)
    """By column, the value of the rows that existed when the column was added: a publisher changes
    them without a word. NULL where a column is not named."""
    untold: frozenset[str] = frozenset()
    """Columns whose values in such rows the publisher does not tell."""
    id: str = ""
    """Of the table at the publisher: one that is dropped and created again has another. Empty where
    `read` itself tells the two apart."""


@dataclass(frozen=True)
class Offer:
    """The tables of some publications."""

    tables: Mapping[str, PublishedTable]
    refused: Mapping[str, StreamTablesError] = field(default_factory=dict)
    """By table, why it cannot be replicated."""

    def require(self) -> Mapping[str, PublishedTable]:
        """
        Returns:
            All tables.

        Raises:
            StreamTablesError: One cannot be replicated.
        """
        for error in self.refused.values():
            raise error
        return self.tables
