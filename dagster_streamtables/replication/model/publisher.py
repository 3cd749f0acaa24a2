"""`Publisher`: where a replication reads from, another lake or a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dagster_streamtables.replication.model.batch import Batch
from dagster_streamtables.replication.model.published_table import Offer

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Lag:
    """How far a slot is behind its publisher."""

    commits: int | None
    """Versions of tables; None where the publisher does not count."""
    bytes: int | None
    """Of history that is kept for the slot; None where unknown."""
    seconds: float
    """Since the oldest commit that was not confirmed; 0 if there is none."""
    is_abandoned: bool = False
    """Whether nobody has read the slot for half of its deadline: read it, or it is let go."""


class Copy(Protocol):
    """Published tables at one moment."""

    def position(self, table: str) -> int:
        """Changes behind this position are not in the copy; all before are."""
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

    def offer(self) -> Offer:
        """The tables that its publications have now.

        Raises:
            PublisherProblem: A publication does not exist.
        """
        ...

    def copy(self, slot: str, tables: Collection[str]) -> AbstractContextManager[Copy]:
        """Begin to keep the changes of tables, and read their rows as of that moment.

        The slot is created if it does not exist. If it does, its position stays, and the changes
        of these tables between the two are for the reader to leave out, by their positions.
        """
        ...

    def create_slot(self, slot: str, tables: Collection[str]) -> Mapping[str, int]:
        """Begin to keep the changes of tables, without a copy; return their positions."""
        ...

    def read(
        self, slot: str, after: Mapping[str, int], confirmed: str | None, *, max_rows: int
    ) -> Batch:
        """Changes behind the positions of tables, whole transactions only, without moving the slot.

        A table whose changes cannot be read is in `Batch.refused`, with a `LostSlot` if it must be
        copied again. At least one of the other tables gets on, unless the batch is complete.

        Args:
            slot: The slot.
            after: By table, the position of what was applied last.
            confirmed: What `confirming` or `confirm` returned last; None if neither was called.
            max_rows: Stop after the transaction that reaches so many rows.

        Raises:
            LostSlot: The slot does not exist, the publisher has let it go, or somebody else has
                moved it on, so that changes are missing.
            SlotInUse: Somebody else reads it.
        """
        ...

    def confirming(self, applied: Mapping[str, int]) -> str:
        """What `confirm` is about to bring the slot to, for the caller to store before: after a
        crash between the two, `read` takes a slot that was moved and one that was not. Without
        tables there is nothing to confirm."""
        ...

    def confirm(self, slot: str, applied: Mapping[str, int]) -> str:
        """Tell what need not be kept.

        Returns:
            Where the slot is now, opaque to the caller, who stores it: a lake has a version of each
            table, a server one LSN. By it `read` finds that somebody else has moved the slot.
        """
        ...

    def release(self, slot: str, tables: Collection[str]) -> None:
        """Keep nothing for tables that have no position any more, if the slot has one for each."""
        ...

    def drop_slot(self, slot: str) -> None:
        """Stop keeping changes. Does nothing if there is no such slot."""
        ...

    def lag(self, slot: str, applied: Mapping[str, int]) -> Lag: ...
