"""The messages of pgoutput (protocol 1, values as text), many at a time."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dagster_streamtables.replication.postgres.publication_catalog import CatalogColumn
from dagster_streamtables.runtime.delta.arrow import np

BEGIN, COMMIT, RELATION, TRUNCATE = b"BCRT"
INSERT, UPDATE, DELETE = b"IUD"
PADDING = 16
"""Bytes after the last message, so that reading ahead stays inside."""
RELATION_HEAD = struct.Struct(">xI")
COLUMN_TAIL = struct.Struct(">Ii")


@dataclass(frozen=True)
class ServerRelation:
    """A table, as it was when the changes after the message were made."""

    oid: int
    schema: str
    table: str
    setting: str
    """Its REPLICA IDENTITY: d, i, f or n."""
    columns: tuple[CatalogColumn, ...]
    keys: frozenset[str]
    """The columns of the identity; with FULL all."""

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class Messages:
    """Some consecutive messages of one read."""

    data: bytes
    """All of them, concatenated."""
    starts: np.ndarray

    @classmethod
    def of(cls, messages: Sequence[bytes]) -> Messages:
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        starts = np.concatenate(([0], np.cumsum(lengths)))[:-1].astype(np.int64)
        return cls(b"".join((*messages, bytes(PADDING))), starts)

    @cached_property
    def bytes(self) -> np.ndarray:
        return np.frombuffer(self.data, np.uint8)

    @cached_property
    def kinds(self) -> np.ndarray:
        return self.bytes[self.starts]

    @cached_property
    def relations(self) -> np.ndarray:
        """The table of each message that has one; meaningless elsewhere."""
        return self.int32(self.starts + 1) & 0xFFFFFFFF

    def of_kind(self, *kinds: int) -> np.ndarray:
        """The indices of messages."""
        return np.flatnonzero(np.isin(self.kinds, kinds))

    def int32(self, at: np.ndarray) -> np.ndarray:
        return self._integers(at, 4)

    def int64(self, at: np.ndarray) -> np.ndarray:
        return self._integers(at, 8)

    def _integers(self, at: np.ndarray, size: int) -> np.ndarray:
        raw = self.bytes[at[:, None] + np.arange(size)]
        return raw.view(f">i{size}")[:, 0].astype(np.int64)

    def relation(self, index: int) -> ServerRelation:
        at = int(self.starts[index])
        (oid,) = RELATION_HEAD.unpack_from(self.data, at)
        schema, at = self._string(at + RELATION_HEAD.size)
        table, at = self._string(at)
        setting, count = chr(self.data[at]), int.from_bytes(self.data[at + 1 : at + 3], "big")
        at += 3
        columns, keys = [], set()
        for _ in range(count):
            name, behind = self._string(at + 1)
            if self.data[at] & 1:
                keys.add(name)
            columns.append(CatalogColumn(name, *COLUMN_TAIL.unpack_from(self.data, behind)))
            at = behind + COLUMN_TAIL.size
        # The server leaves out the name of its own schema.
        return ServerRelation(
            oid, schema or "pg_catalog", table, setting, tuple(columns), frozenset(keys)
        )

    def truncation_oids(self, index: int) -> list[int]:
        """The tables of a message that truncates them."""
        at = int(self.starts[index]) + 1
        count = int.from_bytes(self.data[at : at + 4], "big")
        return [int(oid) for oid in np.frombuffer(self.data, ">u4", count, at + 5)]

    def _string(self, at: int) -> tuple[str, int]:
        end = self.data.index(0, at)
        return self.data[at:end].decode(), end + 1
