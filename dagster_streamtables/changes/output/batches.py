"""Tables of any size → record batches of a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from dagster_streamtables.changes.output.column_types import whole


def filled(tables: Iterable[pa.Table], size: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of this size, but for the last.

    So the rows of a timestamp are in one batch whenever they fit into one.
    """
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        while table.num_rows:
            part = table.slice(0, size - count)
            table = table.slice(part.num_rows)
            held.append(part)
            count += part.num_rows
            if count == size:
                yield _batch(held)
                held, count = [], 0
    if held:
        yield _batch(held)


def _batch(tables: Sequence[pa.Table]) -> pa.RecordBatch:
    table = pa.concat_tables(tables)
    return pa.RecordBatch.from_arrays([whole(each) for each in table.columns], schema=table.schema)
