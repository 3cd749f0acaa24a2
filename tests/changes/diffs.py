"""Changed rows of one timestamp, as tests write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from changes.table import KV
from dagster_streamtables.changes.output.row_encoder import RowEncoder
from dagster_streamtables.compiler import WEIGHT
from named_rows import tuples

__all__ = ["KV", "chunk", "shown", "tuples"]


def chunk(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Rows that begin with their diff: ``(-1, 1, "a")``."""
    columns = list(zip(*rows, strict=True)) or [()] * (len(schema) + 1)
    diffs = pa.array(columns[0], pa.int64())
    arrays = [pa.array(c, f.type) for c, f in zip(columns[1:], schema, strict=True)]
    return pa.table([*arrays, diffs], names=[*schema.names, WEIGHT])


def shown(shape: RowEncoder, *chunks: pa.Table, timestamp: int = 1) -> list[tuple[Any, ...]]:
    return [row for batch in shape.rows(timestamp, chunks) for row in tuples(batch)]
