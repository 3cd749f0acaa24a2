"""The rows of a query, as COPY writes them → record batches."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dagster_streamtables.replication.postgres.table_form import TableForm

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import sql
    from psycopg.abc import Buffer

    from dagster_streamtables.replication.postgres.server import Connection

ROWS, BYTES = 50_000, 8_000_000
"""Of a batch, as the server writes them."""


def stream(
    connection: Connection, query: sql.Composed, form: TableForm
) -> Iterator[pa.RecordBatch]:
    """
    Args:
        connection: In use until the last batch.
        query: Whose columns are those of the form, in that order.
        form: What the values become.

    Raises:
        PublisherProblem: A value cannot be stored.
    """
    from psycopg import sql

    command = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)
    lines: list[Buffer] = []
    size = 0
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        while line := copy.read():  # the server sends each row by itself
            lines.append(line)
            size += len(line)
            if len(lines) >= ROWS or size >= BYTES:
                yield _batch(lines, form)
                lines, size = [], 0
    if lines:
        yield _batch(lines, form)


def _batch(lines: list[Buffer], form: TableForm) -> pa.RecordBatch:
    import pyarrow as pa

    texts = texts_of(b"".join(lines), len(form.columns))
    values = [column.values(text) for column, text in zip(form.columns, texts, strict=True)]
    return pa.RecordBatch.from_arrays(values, schema=form.table.schema)


def texts_of(lines: bytes, count: int) -> list[pa.Array]:
    """The columns of CSV: bytes, and NULL for what is empty without quotes.

    Raises:
        pyarrow.ArrowInvalid: A line has another number of columns.
    """
    import pyarrow as pa
    from pyarrow import csv

    names = [f"c{i}" for i in range(count)]
    # With a line of names, a byte order mark that a value begins with is no mark of the file.
    data = b"".join((",".join(names).encode(), b"\n", lines))
    texts = csv.read_csv(
        io.BytesIO(data),
        # One block, so that no row is too long for it.
        csv.ReadOptions(use_threads=False, block_size=len(data) + 1),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    ).combine_chunks()
    return [column.chunk(0) for column in texts.columns]
