"""`Spool`: record batches that are written once, and read as often as wanted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType

import pyarrow as pa

IN_MEMORY = 64 * 2**20
"""Bytes that stay in memory; more lie in a temporary file."""


@dataclass
class Spool:
    """Batches in memory or, if they are many, in a temporary file, until it is closed."""

    schema: pa.Schema
    first: list[int] = field(default_factory=list[int])
    """The timestamp of each batch."""
    lengths: list[int] = field(default_factory=list[int])
    """The number of rows of each batch."""

    def __post_init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._writer = pa.ipc.new_file(self._file, self.schema)
        self._reader: pa.RecordBatchFileReader | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Append a batch, which has the rows of one timestamp and not none."""
        self._writer.write_batch(batch)
        self.first.append(batch.column(0)[0].as_py())
        self.lengths.append(batch.num_rows)

    def end(self) -> None:
        """Nothing is appended any more."""
        self._writer.close()
        self._reader = pa.ipc.open_file(self._file)

    def batches(self, after: int | None) -> Iterator[pa.RecordBatch]:
        """The batches of later timestamps; None for all."""
        assert self._reader is not None, "only what has ended can be read"
        for number, timestamp in enumerate(self.first):
            if after is None or timestamp > after:
                yield self._reader.get_batch(number)

    def rows(self, after: int | None) -> int:
        """The number of rows of later timestamps; None for all."""
        pairs = zip(self.first, self.lengths, strict=True)
        return sum(rows for timestamp, rows in pairs if after is None or timestamp > after)

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
