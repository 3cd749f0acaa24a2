"""The rows inside of messages: columns of text, cut out of many messages at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.postgres.messages import Messages

if TYPE_CHECKING:
    import pyarrow as pa

TEXT, UNCHANGED = b"tu"
INLINE = 12
"""Bytes that a view of Arrow holds itself; longer values are looked up in the messages."""


@dataclass(frozen=True)
class TextColumn:
    messages: Messages
    starts: np.ndarray
    lengths: np.ndarray
    kinds: np.ndarray
    """For each value: t for a text, n for a NULL, u for one that the server does not tell."""

    @property
    def unchanged(self) -> np.ndarray:
        return self.kinds == UNCHANGED

    def to_arrow(self) -> pa.Array:
        """The bytes of the values; NULL where there are none."""
        import pyarrow as pa

        views = np.zeros((len(self.starts), 16), np.uint8)
        views[:, :4] = self.lengths.astype("<i4")[:, None].view(np.uint8)
        head = self.messages.bytes[self.starts[:, None] + np.arange(INLINE)]
        head[np.arange(INLINE) >= self.lengths[:, None]] = 0
        long = self.lengths > INLINE
        head[long, 4:8] = 0  # the messages are the first and only buffer
        head[long, 8:] = self.starts[long].astype("<i4")[:, None].view(np.uint8)
        views[:, 4:] = head
        known = np.packbits(self.kinds == TEXT, bitorder="little")
        buffers = [pa.py_buffer(each) for each in (known, views, self.messages.data)]
        found = pa.Array.from_buffers(pa.binary_view(), len(views), buffers)
        return found.cast(pa.binary())


def columns_at(
    messages: Messages, at: np.ndarray, count: int
) -> tuple[list[TextColumn], np.ndarray]:
    """
    Args:
        messages: The messages.
        at: Where the rows begin, one in each of some messages.
        count: Of their columns.

    Returns:
        The columns, and where the rows end.
    """
    columns, at = [], at + 2  # the count of columns
    for _ in range(count):
        kinds = messages.bytes[at]
        is_text = kinds == TEXT
        lengths = np.where(is_text, messages.int32(at + 1), 0)
        columns.append(TextColumn(messages, at + 5, lengths, kinds))
        at = np.where(is_text, at + 5 + lengths, at + 1)
    return columns, at
