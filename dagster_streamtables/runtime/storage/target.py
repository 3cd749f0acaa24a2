"""What is written to a stored table: where, with which rows, and in files of which size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.model.state import State, application

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

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


@dataclass(frozen=True)
class Rows:
    """Rows to be written."""

    local: pa.Table | None
    """The rows, where they came to this process."""
    in_spark: Callable[[], DataFrame]
    """The same rows in Spark, asked for only where Spark writes them."""


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
        told = replace(self.state.account, rows=(inserted, deleted))
        return replace(self, state=replace(self.state, account=told))

    @property
    def application(self) -> str:
        return application(self.state.table)
