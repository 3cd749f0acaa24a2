"""Changes with the columns that a table had → with those that it has later."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster_streamtables.replication.model.errors import LostTable
from dagster_streamtables.replication.model.publisher import PublishedTable, change_schema

if TYPE_CHECKING:
    import pyarrow as pa


def reshape_rows(rows: pa.Table, earlier: PublishedTable, later: PublishedTable) -> pa.Table:
    """
    Raises:
        LostTable: More was done to the columns than to add some, or to drop some: a column
            may have another name, which no message tells.
    """
    import pyarrow as pa

    before, after = set(earlier.schema.names), set(later.schema.names)
    kept = [earlier.schema.field(name) for name in before & after]
    if (
        (before - after and after - before)
        or earlier.identity != later.identity
        or any(later.schema.field(each.name) != each for each in kept)
    ):
        raise LostTable(
            f'a transaction changed columns of "{later.name}" after it had changed its rows',
            why="the server does not tell how its earlier rows became the later ones",
            fix="copy the table again",
        )
    untold = (after - before) & later.untold
    if untold:
        raise LostTable(
            f'a transaction added column "{min(untold)}" to "{later.name}" after it had changed '
            "its rows",
            why="the server does not tell the values that these rows got by its default",
            fix="copy the table again",
        )
    schema = change_schema(later)
    new = _struct(rows["new"], schema.field("new").type, later)
    old = _struct(rows["old"], schema.field("old").type, later)
    parts = [rows["op"], rows["transaction"], old, new, _remap_columns(rows, earlier, later)]
    return pa.Table.from_arrays(parts, schema=schema)


def _struct(rows: pa.ChunkedArray, kind: pa.StructType, table: PublishedTable) -> pa.Array:
    import pyarrow as pa

    found = rows.combine_chunks()
    there = set(found.type.names)
    columns = [
        found.field(each.name)
        if each.name in there
        else pa.array([table.fills.get(each.name)] * len(found), each.type)
        for each in kind
    ]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=found.is_null())


def _remap_columns(rows: pa.Table, earlier: PublishedTable, later: PublishedTable) -> pa.Array:
    """The indices of columns, counted anew."""
    import pyarrow as pa

    places = {name: i for i, name in enumerate(later.schema.names)}
    names = earlier.schema.names
    counted = [
        columns and [places[names[i]] for i in columns if names[i] in places]
        for columns in rows["unchanged"].to_pylist()
    ]
    return pa.array(counted, pa.list_(pa.int16()))
