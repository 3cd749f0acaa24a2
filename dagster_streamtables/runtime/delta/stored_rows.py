"""Read the stored rows of some keys in this process.

Spark would build a snapshot of a version that no statement has read before, and join over files;
delta-rs has the snapshot, and its statistics skip most files.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.runtime.delta.arrow import plain_schema
from dagster_streamtables.runtime.delta.data_files import UNTOLD, DataFile, live_files
from dagster_streamtables.runtime.delta.data_rows import OnlySpark, alike, read_by_delta_rs
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.key_ranges import condition
from dagster_streamtables.runtime.delta.quote import delta_rs_name
from dagster_streamtables.runtime.delta.types import has_variants

if TYPE_CHECKING:
    import pyarrow as pa

# Features that delta-rs's engine cannot read.
_UNREADABLE = frozenset({"columnMapping", "typeWidening", "vacuumProtocolCheck"})
_LISTED = 2_000
"""Up to this many key values are listed one by one; more become ranges."""


def read_stored_rows(
    log: TableLog,
    keys: Mapping[str, pa.ChunkedArray],
    columns: Sequence[str],
    *,
    limit: int,
) -> pa.Table | None:
    """The stored rows whose key may be among `keys`; may include rows of other keys.

    Args:
        log: The stored table.
        keys: Key column → the values to find; empty for all rows, as for a query without GROUP BY,
            which has one row.
        columns: The columns to read.
        limit: Give up above this many rows.

    Returns:
        Rows with `columns` in that order; None if Spark has to read them.
    """
    import pyarrow as pa

    if not _is_readable(log, columns, whole=not keys):
        return None
    listed = ", ".join(delta_rs_name(name) for name in columns)
    where = " AND ".join(among(name, values) for name, values in keys.items()) or "true"
    sql = f"SELECT {listed} FROM t WHERE {where} LIMIT {limit + 1}"
    try:
        with read_by_delta_rs():
            rows = pa.table(log.query(sql))
    except OnlySpark:
        return None
    rows = rows.cast(plain_schema(rows.schema))
    return rows if rows.num_rows <= limit else None


def among(name: str, values: pa.ChunkedArray) -> str:
    """A condition on a single key column, which a file's statistics can answer."""
    import pyarrow as pa
    import pyarrow.compute as pc

    type_ = values.type
    if not (pa.types.is_integer(type_) or pa.types.is_string(type_) or pa.types.is_date(type_)):
        return "true"
    wanted = pc.unique(values).drop_null()
    null = f"{delta_rs_name(name)} IS NULL"
    if not len(wanted):
        return null
    if len(wanted) > _LISTED:
        return condition(exp.column(name, quoted=True), values) or "true"
    try:
        listed = ", ".join(map(_literal, wanted.to_pylist()))
    except OverflowError:  # a day after 9999 is none of Python's
        return "true"
    found = f"{delta_rs_name(name)} IN ({listed})"
    return f"({found} OR {null})" if values.null_count else f"({found})"


def _literal(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("'", "''")
    return f"DATE '{text}'" if isinstance(value, date) else f"'{text}'"


def stream_rows(log: TableLog, columns: Sequence[str]) -> Iterator[pa.Table] | None:
    """All rows of a table, a batch at a time; None if Spark has to read them."""
    import pyarrow as pa

    if not _is_readable(log, columns, whole=True) or any(map(_is_untold, live_files(log).values())):
        return None
    listed = ", ".join(map(delta_rs_name, columns))
    reader = pa.RecordBatchReader.from_stream(log.query(f"SELECT {listed} FROM t"))
    plain = plain_schema(reader.schema)
    return (pa.Table.from_batches([batch]).cast(plain) for batch in reader)


def _is_readable(log: TableLog, columns: Sequence[str], *, whole: bool) -> bool:
    """Whether delta-rs's engine reads these columns, and as Spark does.

    Rows of some keys are asked only of tables that are written here.
    """
    if log.features & _UNREADABLE or log.maps_columns:
        return False
    return alike(log, every=whole) and not has_variants(log.columns[name] for name in columns)


def _is_untold(file: DataFile) -> bool:
    return any(value is UNTOLD for value in file.partition.values())
