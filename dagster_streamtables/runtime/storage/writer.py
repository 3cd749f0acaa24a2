"""The stored table: its rows replaced or changed, its frontier with them, in one commit.

Spark computes, the smaller writer commits: a MERGE in Spark costs more than a second whatever its
size, one in delta-rs some hundredths. So a change that is here as a table in this process is
committed by delta-rs where the stored table's protocol lets it, and every other one by Spark. Both
writers do the same to the table:

    all     rows are stored in place of everything; the table is created if there is none
    bag     rows of weight n > 0 are stored n times more, of weight -n stored n times less
    keyed   one row a key; 1 stores it in place of the key's row, -1 deletes the key's row
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.runtime.model.state import State, application

FILES = 32
"""Into which a stream table is divided, as to change a row is to write its file anew."""
FILE_BYTES = tuple(size * 2**20 for size in (2, 4, 8, 16))
"""The largest of which there are so many, else the smallest. It takes a tenth to a quarter of a
second to write one; of 100 MB, as Delta's writers make them for want of a size, more than one."""
FILE_ROWS = 100_000, 1_000_000
"""The least and the most for Spark, which counts rows."""
FILE_SIZE = "delta.targetFileSize"
"""A property that delta-rs heeds, and Spark does not know."""

PROPERTIES: Mapping[str, str] = {
    "delta.enableChangeDataFeed": "true",
    # delta-rs cannot leave deletion vectors as they are, and pyarrow cannot read under them.
    "delta.enableDeletionVectors": "false",
    "delta.checkpointInterval": "20",
}


def file_bytes(size: int) -> int:
    """For a file of a table of so many bytes."""
    return max((each for each in FILE_BYTES if each * FILES <= size), default=FILE_BYTES[0])


class NotStored(Exception):
    """A change takes away a row that the table does not hold; nothing was written."""


def lost_race(why: str) -> ConflictingCommit:
    """The error of whoever commits second."""
    return ConflictingCommit(
        "another writer committed to the table during the refresh",
        why=why,
        fix="refresh again; nothing of this attempt was written",
    )


@dataclass(frozen=True)
class Written:
    """What one commit did."""

    inserted: int
    deleted: int
    writer: str


@dataclass(frozen=True)
class Target:
    """A stored table to be written, and what goes into the commit beside the rows."""

    location: str
    state: State
    key: tuple[str, ...] | None
    """The columns that identify a row; None for a bag."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    read: int = -1
    """The version that the refresh found; -1 for a table that it makes."""
    rows: int = 0
    """About how many it has, or will have."""

    @property
    def file_rows(self) -> int:
        """How many rows Spark writes to a file."""
        least, most = FILE_ROWS
        return min(most, max(least, self.rows // FILES))

    def counting(self, inserted: int, deleted: int) -> Target:
        """The same, its account telling the rows: the metrics of a MERGE that puts copies back
        count those, too."""
        told = self.state.account
        told = told and replace(told, rows=(inserted, deleted))
        return replace(self, state=replace(self.state, account=told))

    @property
    def application(self) -> str:
        return application(self.state.table)
